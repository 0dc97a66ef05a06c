//! One file's symbols in little memory: sorted names once each, and spans that point at them.

use crate::{
    range::Span,
    raw::{Def, Label, Raws, Ref},
    symbol::SymbolKind,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// The symbols of one text, without the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compact {
    /// The names, sorted, one after another.
    names: Box<str>,
    /// Where each name ends.
    ends: Box<[u32]>,
    defs: Box<[CompactDef]>,
    refs: Box<[CompactRef]>,
    pub(crate) problems: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompactDef {
    pub(crate) name: u32,
    name_start: u32,
    name_end: u32,
    start: u32,
    end: u32,
    attached: u32,
    body_start: u32,
    body_end: u32,
    docs_start: u32,
    docs_end: u32,
    macro_start: u32,
    macro_end: u32,
    container: u32,
    pub(crate) kind: SymbolKind,
    composed: bool,
    degraded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompactRef {
    pub(crate) name: u32,
    start: u32,
    container: u32,
    kind: SymbolKind,
}

fn span(start: u32, end: u32) -> Option<Span> {
    (start != NONE).then_some(Span { start, end })
}

fn ends(span: Option<Span>) -> (u32, u32) {
    span.map_or((NONE, NONE), |span| (span.start, span.end))
}

impl Compact {
    pub(crate) fn new(source: &[u8], raws: &Raws) -> Self {
        let mut places: BTreeMap<Box<str>, u32> = BTreeMap::new();
        raws.defs.iter().for_each(|def| {
            places.entry(def.name(source).into()).or_default();
        });
        raws.refs.iter().for_each(|mention| {
            let name = mention.name.text(source);
            if !places.contains_key(&*name) {
                places.insert(name.into(), 0);
            }
        });
        let (mut names, mut name_ends) = (String::new(), Vec::with_capacity(places.len()));
        for (index, (name, place)) in places.iter_mut().enumerate() {
            *place = index as u32;
            names.push_str(name);
            name_ends.push(names.len() as u32);
        }
        let def = |def: &Def| {
            let (body_start, body_end) = ends(def.body);
            let (docs_start, docs_end) = ends(def.docs);
            let (macro_start, macro_end) = ends(def.via_macro);
            CompactDef {
                name: places[&*def.name(source)],
                name_start: def.name.start,
                name_end: def.name.end,
                start: def.range.start,
                end: def.range.end,
                attached: def.attached,
                body_start,
                body_end,
                docs_start,
                docs_end,
                macro_start,
                macro_end,
                container: def.container.unwrap_or(NONE),
                kind: def.kind,
                composed: matches!(def.label, Label::Composed(_)),
                degraded: def.degraded,
            }
        };
        let mention = |mention: &Ref| CompactRef {
            name: places[&*mention.name.text(source)],
            start: mention.name.start,
            container: mention.container.unwrap_or(NONE),
            kind: mention.kind,
        };
        Compact {
            defs: raws.defs.iter().map(def).collect(),
            refs: raws.refs.iter().map(mention).collect(),
            names: names.into(),
            ends: name_ends.into(),
            problems: raws.problems.len() as u32,
        }
    }

    pub(crate) fn name(&self, index: u32) -> &str {
        let end = self.ends.get(index as usize).map_or(0, |end| *end as usize);
        let start = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before as usize))
            .map_or(0, |start| *start as usize);
        self.names.get(start..end).unwrap_or_default()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.ends.len() as u32).map(|index| (index, self.name(index)))
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.ends.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle).cmp(name) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    pub(crate) fn defs(&self) -> &[CompactDef] {
        &self.defs
    }

    pub(crate) fn refs(&self) -> &[CompactRef] {
        &self.refs
    }

    pub(crate) fn len(&self) -> usize {
        self.defs.len() + self.refs.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.names.len() + size_of_val(&*self.ends) + size_of_val(&*self.defs) + size_of_val(&*self.refs)
    }

    /// The records that the walk made, for the same text.
    pub(crate) fn raws(&self) -> Raws {
        let def = |def: &CompactDef| Def {
            label: match def.composed {
                true => Label::Composed(self.name(def.name).into()),
                false => Label::At(Span { start: def.name_start, end: def.name_end }),
            },
            kind: def.kind,
            name: Span { start: def.name_start, end: def.name_end },
            range: Span { start: def.start, end: def.end },
            attached: def.attached,
            body: span(def.body_start, def.body_end),
            docs: span(def.docs_start, def.docs_end),
            container: (def.container != NONE).then_some(def.container),
            via_macro: span(def.macro_start, def.macro_end),
            degraded: def.degraded,
        };
        Raws {
            defs: self.defs.iter().map(def).collect(),
            refs: self.refs.iter().map(|r| self.raw_ref(r)).collect(),
            problems: Vec::new(),
        }
    }

    pub(crate) fn raw_ref(&self, mention: &CompactRef) -> Ref {
        Ref {
            name: Span { start: mention.start, end: mention.start + self.name(mention.name).len() as u32 },
            kind: mention.kind,
            container: (mention.container != NONE).then_some(mention.container),
        }
    }
}
