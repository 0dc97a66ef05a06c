//! Turns a walk's records into symbols: paths that tell twins apart, lines, signatures, documentation.

use crate::{
    lang::{one_line, python, rust},
    language::{Language, ResolvedLanguage},
    name_path::{NamePath, Ordinal, Segment, same_name},
    range::{LineIndex, Span},
    raw::{Def, Raws, Ref},
    symbol::{CodeSymbol, ParseStatus, QuerySupport, Support, SymbolExtraction, SymbolRole},
};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, collections::HashMap};

/// The longest signature shown, in bytes.
const MAX_SIGNATURE: usize = 400;

/// Which symbols are wanted: of one role or of both, of one name or of any.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) role: Option<SymbolRole>,
    pub(crate) name: Option<&'a str>,
}

impl Wanted<'_> {
    fn takes(&self, role: SymbolRole, name: impl FnOnce() -> bool) -> bool {
        self.role.is_none_or(|wanted| wanted == role) && (self.name.is_none() || name())
    }
}

/// The symbols that are wanted, in the order of the text.
pub(crate) fn extraction(
    language: ResolvedLanguage,
    source: &[u8],
    raws: &Raws,
    wanted: Wanted<'_>,
) -> SymbolExtraction {
    let named = |name: &str| wanted.name.is_none_or(|wanted| same_name(wanted, name));
    // Records are ordered instead of symbols, which are large.
    let defs = raws.defs.iter().enumerate();
    let defs = defs
        .filter(|(_, def)| wanted.takes(SymbolRole::Definition, || named(&def.name(source))))
        .map(|(index, def)| (def.range.start, index));
    let refs = raws.refs.iter().enumerate();
    let refs = refs
        .filter(|(_, mention)| wanted.takes(SymbolRole::Reference, || named(&mention.name.text(source))))
        .map(|(index, mention)| (mention.name.start, raws.defs.len() + index));
    let mut order: Vec<(u32, usize)> = defs.chain(refs).collect();
    order.sort_unstable();
    let symbols = match order.is_empty() {
        true => Vec::new(),
        false => symbols(language.name, source, raws, order),
    };
    let status = match raws.problems.len() {
        0 => ParseStatus::Complete,
        errors => ParseStatus::Recovered { errors },
    };
    SymbolExtraction { language, queries: support(language.name), status, symbols }
}

/// Symbols from their records, in that order: definitions by their index, references by theirs behind the definitions.
fn symbols(language: Language, source: &[u8], raws: &Raws, order: Vec<(u32, usize)>) -> Vec<CodeSymbol> {
    let lines = LineIndex::new(source);
    let paths = paths(language, source, raws);
    let container = |index: Option<u32>| index.map(|index| paths[index as usize].clone());
    let mut written = WrittenPaths::default();
    let symbol = |(_, index): (u32, usize)| match index.checked_sub(raws.defs.len()) {
        Some(index) => {
            let mention = &raws.refs[index];
            reference(source, &lines, mention, container(mention.container), &mut written)
        }
        None => {
            let def = &raws.defs[index];
            definition(language, source, &lines, def, paths[index].clone(), container(def.container))
        }
    };
    order.into_iter().map(symbol).collect()
}

/// What may be asked of a language.
pub(crate) fn support(language: Language) -> QuerySupport {
    match language {
        Language::Rust | Language::Python => {
            QuerySupport { definitions: Support::Full, references: Support::Full }
        }
        #[cfg(feature = "_table")]
        _ => QuerySupport { definitions: Support::Partial, references: Support::Partial },
    }
}

fn attached_text<'a>(source: &'a [u8], def: &Def) -> &'a [u8] {
    Span { start: def.attached, end: def.range.start }.slice(source)
}

pub(crate) fn definition(
    language: Language,
    source: &[u8],
    lines: &LineIndex,
    def: &Def,
    name_path: NamePath,
    container: Option<NamePath>,
) -> CodeSymbol {
    let docs = match language {
        Language::Rust => rust::docs(attached_text(source, def)),
        _ => def.docs.and_then(|literal| python::docs(literal.slice(source))),
    };
    CodeSymbol {
        name: def.name(source).into_owned(),
        name_path,
        kind: def.kind,
        role: SymbolRole::Definition,
        range: lines.range(def.range.range()),
        name_range: lines.range(def.name.range()),
        docs,
        attached_range: lines.range(def.attached as usize..def.range.end as usize),
        body_range: def.body.map(|body| lines.range(body.range())),
        signature: Some(signature(source, def)),
        container,
        via_macro: def.via_macro.map(|name| name.text(source).into_owned()),
        degraded: def.degraded,
    }
}

pub(crate) fn signature(source: &[u8], def: &Def) -> String {
    let end = def.body.map_or(def.range.end, |body| body.start);
    let text =
        &source[def.range.start as usize..(end as usize).min(def.range.start as usize + 4 * MAX_SIGNATURE)];
    let mut line = one_line(text);
    if line.len() > MAX_SIGNATURE {
        line.truncate(line.floor_char_boundary(MAX_SIGNATURE));
        line.push('…');
    }
    line
}

/// The paths that references are written with, each made once.
#[derive(Default)]
pub(crate) struct WrittenPaths<'a>(HashMap<&'a [u8], NamePath>);

impl<'a> WrittenPaths<'a> {
    fn path(&mut self, text: &'a [u8]) -> NamePath {
        let make = || {
            let text = String::from_utf8_lossy(text);
            let words = text.split([':', '.']).map(str::trim).filter(|word| !word.is_empty());
            let segments: Vec<Segment> = words.map(Segment::new).collect();
            NamePath::new(segments, None).unwrap_or_else(|| NamePath::single(&text))
        };
        self.0.entry(text).or_insert_with(make).clone()
    }
}

pub(crate) fn reference<'a>(
    source: &'a [u8],
    lines: &LineIndex,
    mention: &Ref,
    container: Option<NamePath>,
    paths: &mut WrittenPaths<'a>,
) -> CodeSymbol {
    let written = written_path(source, mention.name);
    let name = mention.name.text(source);
    let name_path = paths.path(written.slice(source));
    let name_range = lines.range(mention.name.range());
    let range = match written == mention.name {
        true => name_range,
        false => lines.range(written.range()),
    };
    CodeSymbol {
        name: name.into_owned(),
        name_path,
        kind: mention.kind,
        role: SymbolRole::Reference,
        range,
        name_range,
        docs: None,
        attached_range: range,
        body_range: None,
        signature: None,
        container,
        via_macro: None,
        degraded: false,
    }
}

/// The dotted or coloned path that ends in the name, as far back as it is made of plain words on one line.
fn written_path(source: &[u8], name: Span) -> Span {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    let mut start = name.start as usize;
    loop {
        let before = &source[..start];
        let Some(rest) = before.strip_suffix(b"::").or_else(|| before.strip_suffix(b".")) else { break };
        let length = rest.iter().rev().take_while(|byte| word(byte)).count();
        if length == 0 || rest[rest.len() - length].is_ascii_digit() {
            break;
        }
        start = rest.len() - length;
    }
    Span { start: start as u32, end: name.end }
}

/// Follows a container's transparent blocks up to the one that takes part in paths.
fn path_parent(raws: &Raws, def: &Def) -> Option<u32> {
    let mut parent = def.container;
    while let Some(index) = parent.filter(|index| !raws.defs[*index as usize].kind.in_paths()) {
        parent = raws.defs[index as usize].container;
    }
    parent
}

struct Paths<'a> {
    language: Language,
    source: &'a [u8],
    raws: &'a Raws,
    parents: Vec<Option<u32>>,
}

impl Paths<'_> {
    fn qualifier(&self, def: &Def) -> Option<String> {
        let attached = attached_text(self.source, def);
        match self.language {
            _ if attached.is_empty() => None,
            Language::Rust => rust::qualifier(attached),
            Language::Python => python::qualifier(attached),
            #[cfg(feature = "_table")]
            _ => None,
        }
    }

    /// The steps down to `index`, with what tells each from its twins.
    fn qualified(&self, index: u32) -> Vec<Segment> {
        let mut steps = Vec::new();
        let mut at = Some(index);
        while let Some(index) = at {
            let def = &self.raws.defs[index as usize];
            let segment = Segment::new(def.name(self.source));
            steps.push(match self.qualifier(def) {
                Some(qualifier) => segment.qualified(qualifier),
                None => segment,
            });
            at = self.parents[index as usize];
        }
        steps.reverse();
        steps
    }
}

/// The path of each definition; equal ones are told apart by content, and where only an ordinal can, by that.
pub(crate) fn paths(language: Language, source: &[u8], raws: &Raws) -> Vec<NamePath> {
    let parents: Vec<Option<u32>> = raws.defs.iter().map(|def| path_parent(raws, def)).collect();
    // A plain path is the pair of its parent's plain path and its name; equal pairs get one number.
    let mut numbers: HashMap<(u32, Cow<'_, str>), u32> = HashMap::with_capacity(raws.defs.len());
    let mut number = Vec::with_capacity(raws.defs.len());
    let mut counts: Vec<u32> = Vec::new();
    let mut plain: Vec<NamePath> = Vec::with_capacity(raws.defs.len());
    for (def, parent) in raws.defs.iter().zip(&parents) {
        let above = parent.map_or(u32::MAX, |parent| number[parent as usize]);
        let next = counts.len() as u32;
        let name = def.name(source);
        let mut segments = parent.map_or_else(Vec::new, |parent| plain[parent as usize].segments().to_vec());
        segments.push(Segment::new(&*name));
        plain.push(NamePath::new(segments, None).unwrap_or_else(|| NamePath::single(&name)));
        let own = *numbers.entry((above, name)).or_insert(next);
        match counts.get_mut(own as usize) {
            Some(count) => *count += 1,
            None => counts.push(1),
        }
        number.push(own);
    }
    let twins: Vec<usize> = (0..plain.len()).filter(|index| counts[number[*index] as usize] > 1).collect();
    if twins.is_empty() {
        return plain;
    }
    let told = Paths { language, source, raws, parents };
    let mut equals: HashMap<Vec<Segment>, Vec<usize>> = HashMap::new();
    for index in twins {
        equals.entry(told.qualified(index as u32)).or_default().push(index);
    }
    for (segments, indexes) in equals {
        let several = indexes.len() > 1;
        for (place, index) in indexes.into_iter().enumerate() {
            let ordinal = several
                .then(|| Ordinal { number: place as u32 + 1, hash: text_hash(source, &raws.defs[index]) });
            plain[index] = NamePath::new(segments.clone(), ordinal).unwrap_or_else(|| plain[index].clone());
        }
    }
    plain
}

fn text_hash(source: &[u8], def: &Def) -> u32 {
    let digest = Sha256::digest(Span { start: def.attached, end: def.range.end }.slice(source));
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}
