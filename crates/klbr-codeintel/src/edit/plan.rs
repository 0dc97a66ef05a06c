//! Plans edits on a text and proves the result before anything is written. No I/O.

use super::{Candidate, Edit, EditError, Editor, Extent, fit::Fit, rename};
use crate::{
    assemble::paths,
    diagnostics::diagnostics,
    extract::Parsed,
    hash::ContentHash,
    language::{Language, ResolvedLanguage},
    name_path::{NamePath, Selector},
    range::{LineIndex, SourceRange, Span},
    raw::{Def, Raws},
    symbol::SymbolKind,
};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, ops::Range, path::Path};

/// One region that an edit replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The definition that the edit named, as it was.
    pub target: NamePath,
    /// The region in the old text; empty for an insertion.
    pub before: SourceRange,
    /// The region in the new text.
    pub after: SourceRange,
}

/// A proven edit that is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The whole new text.
    pub text: Vec<u8>,
    /// What differs, in the order of the text; everything else is byte-identical.
    pub changes: Vec<Change>,
    /// The difference as a unified diff with three lines of context.
    pub diff: String,
    /// The new text's hash.
    pub hash: ContentHash,
}

/// A text that takes the place of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: Range<usize>,
    pub(super) text: Vec<u8>,
}

/// A text with all that is known about it.
pub(super) struct Subject<'a> {
    pub(super) language: Language,
    pub(super) source: &'a [u8],
    pub(super) parsed: &'a Parsed,
    pub(super) paths: Vec<NamePath>,
    pub(super) lines: LineIndex,
}

impl Subject<'_> {
    pub(super) fn raws(&self) -> &Raws {
        &self.parsed.raws
    }

    pub(super) fn candidate(&self, index: usize) -> Candidate {
        let def = &self.raws().defs[index];
        Candidate {
            target: Selector::exactly(self.paths[index].clone()).to_string(),
            kind: def.kind,
            range: self.lines.range(def.range.range()),
        }
    }

    /// The one definition that the target names.
    pub(super) fn resolve(&self, target: &str) -> Result<usize, EditError> {
        let selector = Selector::parse(target)
            .map_err(|source| EditError::Target { target: target.to_owned(), source })?;
        if let Some(exact) = (0..self.paths.len()).find(|index| selector.is_exactly(&self.paths[*index])) {
            return Ok(exact);
        }
        let found: Vec<usize> =
            (0..self.paths.len()).filter(|index| selector.matches(&self.paths[*index])).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => {
                Err(EditError::NotFound { target: target.to_owned(), similar: self.similar(selector.name()) })
            }
            several => {
                let candidates = several.iter().map(|index| self.candidate(*index)).collect();
                Err(EditError::Ambiguous { target: target.to_owned(), candidates })
            }
        }
    }

    fn similar(&self, name: &str) -> Vec<Candidate> {
        let wanted = name.to_lowercase();
        let near = |index: &usize| {
            let given = self.paths[*index].name().to_lowercase();
            given.contains(&wanted) || (given.len() > 3 && wanted.contains(&given))
        };
        (0..self.paths.len()).filter(near).take(50).map(|index| self.candidate(index)).collect()
    }

    /// The definition, unless its place or extent is in doubt.
    fn sound(&self, index: usize) -> Result<&Def, EditError> {
        let def = &self.raws().defs[index];
        if !def.degraded {
            return Ok(def);
        }
        let first = diagnostics(self.source, self.raws()).into_iter().next();
        let problem = first.map_or_else(|| "unknown".to_owned(), |first| first.to_string());
        Err(EditError::Degraded { target: self.candidate(index), problem })
    }
}

impl Editor {
    /// Plans `edits` on `source`, all or none, each against the text as it is. Writes nothing.
    ///
    /// # Errors
    /// [`EditError`], with everything needed to ask better.
    pub fn plan(
        &mut self,
        path: Option<&Path>,
        source: &[u8],
        language: Option<&str>,
        edits: &[Edit],
    ) -> Result<Planned, EditError> {
        let language =
            ResolvedLanguage::resolve(path, source, language).map_err(crate::ExtractError::from)?.name;
        let parsed = self.extractor.parsed(language, source)?;
        let paths = paths(language, source, &parsed.raws);
        let subject = Subject { language, source, parsed: &parsed, paths, lines: LineIndex::new(source) };
        let mut pieces: Vec<(usize, Piece)> = Vec::new();
        let mut proven = None;
        for edit in edits {
            let target = subject.resolve(edit.target())?;
            let variants = variants(&subject, target, edit)?;
            let chosen = self.first_proven(&subject, variants)?;
            pieces.extend(chosen.0.into_iter().map(|piece| (target, piece)));
            proven = Some(chosen.1);
        }
        pieces.sort_by_key(|(_, piece)| (piece.at.start, piece.at.end));
        for pair in pieces.windows(2) {
            let (first, second) = (&pair[0].1.at, &pair[1].1.at);
            // Two insertions at one place stand in the order given.
            if second.start < first.end || (second.start == first.start && !first.is_empty()) {
                return Err(EditError::Overlap {
                    range: subject.lines.range(second.start..first.end.max(second.start)),
                });
            }
        }
        let (targets, pieces): (Vec<usize>, Vec<Piece>) = pieces.into_iter().unzip();
        let text = match proven {
            Some(text) if edits.len() == 1 => text,
            _ => self.prove(&subject, &pieces)?,
        };
        Ok(planned(&subject, &targets, &pieces, text, path))
    }

    /// The first way of fitting an edit whose result holds; the first way's refusal when none does.
    fn first_proven(
        &mut self,
        subject: &Subject<'_>,
        variants: Vec<Vec<Piece>>,
    ) -> Result<(Vec<Piece>, Vec<u8>), EditError> {
        let mut refusal = None;
        for pieces in variants {
            match self.prove(subject, &pieces) {
                Ok(text) => return Ok((pieces, text)),
                Err(error @ (EditError::ParsesWorse { .. } | EditError::MovesOthers(_))) => {
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refusal.expect("every edit has at least one way of fitting it"))
    }

    /// The text with the pieces in place, if it parses no worse and moves nothing else.
    fn prove(&mut self, subject: &Subject<'_>, pieces: &[Piece]) -> Result<Vec<u8>, EditError> {
        let text = splice(subject.source, pieces);
        let result = self.extractor.parsed(subject.language, &text)?;
        let (before, after) = (&subject.raws().problems, &result.raws.problems);
        let broken = |raws: &Raws| -> usize {
            raws.problems.iter().map(|problem| (problem.span.end - problem.span.start) as usize).sum()
        };
        let grown = text.len().saturating_sub(subject.source.len());
        if after.len() > before.len()
            || broken(&result.raws) > broken(subject.raws()) + if before.is_empty() { 0 } else { grown }
        {
            let first = diagnostics(&text, &result.raws).into_iter().next();
            return Err(EditError::ParsesWorse { before: before.len(), after: after.len(), first });
        }
        match moved(subject, pieces, &text, &result.raws) {
            Some(index) => Err(EditError::MovesOthers(subject.candidate(index))),
            None => Ok(text),
        }
    }
}

fn splice(source: &[u8], pieces: &[Piece]) -> Vec<u8> {
    let mut text =
        Vec::with_capacity(source.len() + pieces.iter().map(|piece| piece.text.len()).sum::<usize>());
    let mut at = 0;
    for piece in pieces {
        text.extend_from_slice(&source[at..piece.at.start]);
        text.extend_from_slice(&piece.text);
        at = piece.at.end;
    }
    text.extend_from_slice(&source[at..]);
    text
}

/// Where a byte outside all pieces comes to stand; `None` inside one.
fn shifted(byte: usize, pieces: &[Piece]) -> Option<usize> {
    let mut place = byte;
    for piece in pieces.iter().take_while(|piece| piece.at.start <= byte) {
        if byte < piece.at.end {
            return None;
        }
        place = place + piece.text.len() - piece.at.len();
    }
    Some(place)
}

/// The first definition outside the pieces that the new text has not in the same place of the same container.
///
/// Attributes are left out: which assignment in a class comes first, and so defines, may change by right.
fn moved(subject: &Subject<'_>, pieces: &[Piece], text: &[u8], result: &Raws) -> Option<usize> {
    let place_of = |raws: &Raws, def: &Def| {
        def.container.map(|container| raws.defs[container as usize].name.start as usize)
    };
    let found: HashMap<usize, &Def> = result.defs.iter().map(|def| (def.name.start as usize, def)).collect();
    let old = subject.raws();
    (0..old.defs.len()).find(|index| {
        let def = &old.defs[*index];
        let Some(place) =
            shifted(def.name.start as usize, pieces).filter(|_| def.kind != SymbolKind::Attribute)
        else {
            return false;
        };
        let container = place_of(old, def).map(|container| shifted(container, pieces));
        match (found.get(&place), container) {
            (None, _) => true,
            (Some(_), Some(None)) => false,
            (Some(new), container) => {
                let same_name = new.name.slice(text) == def.name.slice(subject.source);
                // What is attached to a neighbour stays its own, unless the edit stands right before it.
                let attached = def.attached as usize;
                let beside =
                    pieces.iter().any(|piece| piece.at.start <= attached && attached <= piece.at.end);
                let same_attached = beside || shifted(attached, pieces) == Some(new.attached as usize);
                !same_name || !same_attached || place_of(result, new) != container.flatten()
            }
        }
    })
}

fn variants(subject: &Subject<'_>, target: usize, edit: &Edit) -> Result<Vec<Vec<Piece>>, EditError> {
    let def = subject.sound(target)?;
    let fit = Fit::new(subject.language, subject.source);
    let at = |span: Span| span.range();
    let single = |texts: Vec<Vec<u8>>, at: Range<usize>| {
        texts.into_iter().map(|text| vec![Piece { at: at.clone(), text }]).collect()
    };
    Ok(match edit {
        Edit::ReplaceSymbol { text, extent, .. } => {
            // Without the definition, what was attached would become its neighbour's.
            let start = match extent {
                Extent::Definition if !text.trim().is_empty() => def.range.start,
                _ => def.attached,
            };
            let at = start as usize..def.range.end as usize;
            single(fit.replacement(text, at.clone()), at)
        }
        Edit::ReplaceSymbolBody { text, .. } => {
            let body = def.body.ok_or_else(|| EditError::NoBody(subject.candidate(target)))?;
            single(fit.body(text, at(body), def.range.start as usize), at(body))
        }
        Edit::InsertBefore { text, .. } => fit.before(text, def.attached as usize),
        Edit::InsertAfter { text, .. } => fit.after(text, def.range.start as usize, def.range.end as usize),
        Edit::RenameInFile { name, .. } => vec![rename::pieces(subject, target, name)?],
    })
}

fn planned(
    subject: &Subject<'_>,
    targets: &[usize],
    pieces: &[Piece],
    text: Vec<u8>,
    path: Option<&Path>,
) -> Planned {
    let lines = LineIndex::new(&text);
    let mut grown = 0isize;
    let mut changes = Vec::with_capacity(pieces.len());
    for (target, piece) in targets.iter().zip(pieces) {
        let start = piece.at.start.saturating_add_signed(grown);
        changes.push(Change {
            target: subject.paths[*target].clone(),
            before: subject.lines.range(piece.at.clone()),
            after: lines.range(start..start + piece.text.len()),
        });
        grown += piece.text.len() as isize - piece.at.len() as isize;
    }
    let diff = unified(subject.source, &text, path);
    Planned { hash: ContentHash::of(&text), diff, changes, text }
}

fn unified(old: &[u8], new: &[u8], path: Option<&Path>) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let name = path.map_or_else(|| "text".to_owned(), |path| path.display().to_string());
    let diff = similar::TextDiff::from_lines(&*old, &*new);
    diff.unified_diff().context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}
