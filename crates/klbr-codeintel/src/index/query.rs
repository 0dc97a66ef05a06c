//! Questions to an index. Each answer reads the files that it names.

use super::{Compact, Coverage, Entry, Index, SkipReason, Skipped, Skips, State};
use crate::{
    assemble,
    extract::Extractor,
    hash::ContentHash,
    language::Language,
    name_path::{NamePathError, Selector},
    range::LineIndex,
    symbol::{CodeSymbol, SymbolKind, SymbolRole},
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A question for the symbols of a name, a path or a path's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What is asked for.
    pub selector: Selector,
    /// Definitions or references.
    pub role: SymbolRole,
    /// Only these kinds; empty for all.
    pub kinds: Vec<SymbolKind>,
    /// Only files whose path (relative to the root) begins so.
    pub below: Option<PathBuf>,
    /// The most hits given; an answer with more says so.
    pub limit: usize,
}

impl Query {
    /// Asks for definitions.
    ///
    /// # Errors
    /// [`NamePathError`] when `name` is no path.
    pub fn definitions(name: &str) -> Result<Self, NamePathError> {
        Ok(Query {
            selector: Selector::parse(name)?,
            role: SymbolRole::Definition,
            kinds: Vec::new(),
            below: None,
            limit: 1000,
        })
    }

    /// Asks for references.
    ///
    /// # Errors
    /// [`NamePathError`] when `name` is no path.
    pub fn references(name: &str) -> Result<Self, NamePathError> {
        Ok(Query { role: SymbolRole::Reference, ..Query::definitions(name)? })
    }

    pub(super) fn takes(&self, symbol: &CodeSymbol) -> bool {
        symbol.role == self.role
            && (self.kinds.is_empty() || self.kinds.contains(&symbol.kind))
            && self.selector.matches(&symbol.name_path)
    }
}

/// A question for definitions whose name holds a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolSearch {
    /// The piece; case counts only if it has capitals. Empty for every name.
    pub text: String,
    /// Only these kinds; empty for all.
    pub kinds: Vec<SymbolKind>,
    /// Only files whose path (relative to the root) begins so.
    pub below: Option<PathBuf>,
    /// The most hits given; an answer with more says so.
    pub limit: usize,
}

/// One symbol and the file it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The file, relative to the root.
    pub path: PathBuf,
    /// Its language.
    pub language: Language,
    /// The hash of the text that the symbol's ranges are of; an edit names it.
    pub hash: ContentHash,
    /// The symbol.
    pub symbol: CodeSymbol,
}

/// The hits with what they rest on: none found among few searched is not the same as none found among all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What was found, by path and place.
    pub hits: Vec<Hit>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Files that the answer rests on.
    pub searched: usize,
    /// Files that were not looked at, since the limit was passed.
    #[serde(default)]
    pub left: usize,
    /// Files that it does not rest on, and why.
    pub skipped: Skips,
}

impl Answer {
    /// What the answer rests on.
    pub fn coverage(&self) -> Coverage {
        Coverage { searched: self.searched, left: self.left, skipped: self.skipped.clone() }
    }
}

/// Everything that an index knows of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSymbols {
    /// The file, relative to the root.
    pub path: PathBuf,
    /// Its language.
    pub language: Language,
    /// The hash of the text.
    pub hash: ContentHash,
    /// Its definitions.
    pub definitions: Vec<CodeSymbol>,
}

impl Index {
    /// The symbols that answer to a query, read anew from the files that hold the name.
    pub fn find(&self, query: &Query) -> Answer {
        let name = query.selector.name();
        let raw = format!("r#{name}");
        self.answer(
            query.below.as_deref(),
            query.limit,
            |entry, hits| {
                let State::Indexed { symbols, .. } = &entry.state else { return };
                let ids = [symbols.find(name), symbols.find(&raw)];
                match query.role {
                    SymbolRole::Definition => collect(symbols.defs().iter().map(|def| def.name), &ids, hits),
                    SymbolRole::Reference => {
                        collect(symbols.refs().iter().map(|mention| mention.name), &ids, hits)
                    }
                }
            },
            query.role,
            |symbol| query.takes(symbol),
        )
    }

    /// The definitions whose names hold a text.
    pub fn search(&self, search: &SymbolSearch) -> Answer {
        let exact = search.text.chars().any(char::is_uppercase);
        let holds = |name: &str| match exact {
            true => name.contains(&search.text),
            false => name.to_lowercase().contains(&search.text),
        };
        let kind = |kind: SymbolKind| search.kinds.is_empty() || search.kinds.contains(&kind);
        self.answer(
            search.below.as_deref(),
            search.limit,
            |entry, hits| {
                let State::Indexed { symbols, .. } = &entry.state else { return };
                let named: Vec<bool> = symbols.names().map(|(_, name)| holds(name)).collect();
                let wanted = |index: &usize| {
                    let def = &symbols.defs()[*index];
                    named[def.name as usize] && kind(def.kind)
                };
                hits.extend((0..symbols.defs().len()).filter(wanted).map(|index| index as u32));
            },
            SymbolRole::Definition,
            |symbol| holds(&symbol.name) && kind(symbol.kind),
        )
    }

    /// The definitions of one file (relative to the root) as it is now, or `None` when it is not in the index or cannot
    /// be read.
    pub fn file(&self, path: &Path) -> Option<FileSymbols> {
        let entry = self.files.get(path)?;
        let State::Indexed { hash, symbols } = &entry.state else { return None };
        let source = std::fs::read(self.root.join(path)).ok()?;
        let found = ContentHash::of(&source);
        let definitions = match found == *hash {
            true => {
                let all: Vec<u32> = (0..symbols.defs().len() as u32).collect();
                assembled(entry.language, &source, symbols, &all, SymbolRole::Definition)
            }
            false => fresh(self, entry.language, &source)
                .ok()?
                .into_iter()
                .filter(|symbol| symbol.role == SymbolRole::Definition)
                .collect(),
        };
        Some(FileSymbols { path: path.to_owned(), language: entry.language, hash: found, definitions })
    }

    fn answer(
        &self,
        below: Option<&Path>,
        limit: usize,
        candidates: impl Fn(&Entry, &mut Vec<u32>),
        role: SymbolRole,
        takes: impl Fn(&CodeSymbol) -> bool,
    ) -> Answer {
        let mut answer = Answer { skipped: self.skipped_below(below), ..Answer::default() };
        let mut places = Vec::new();
        for (path, entry) in
            self.files.iter().filter(|(path, _)| below.is_none_or(|below| path.starts_with(below)))
        {
            let State::Indexed { hash, symbols } = &entry.state else { continue };
            if answer.more {
                answer.left += 1;
                continue;
            }
            places.clear();
            candidates(entry, &mut places);
            if places.is_empty() {
                answer.searched += 1;
                continue;
            }
            let anew = |source: Vec<u8>| {
                let found = ContentHash::of(&source);
                let symbols = match found == *hash {
                    true => assembled(entry.language, &source, symbols, &places, role),
                    false => fresh(self, entry.language, &source)?,
                };
                Ok((found, symbols))
            };
            let read = std::fs::read(self.root.join(path));
            let read = read.map_err(|error| SkipReason::Unreadable(error.to_string())).and_then(anew);
            let (found, symbols) = match read {
                Ok(read) => read,
                Err(reason) => {
                    answer.skipped.add(Skipped { path: path.clone(), reason });
                    continue;
                }
            };
            answer.searched += 1;
            for symbol in symbols.into_iter().filter(|symbol| symbol.role == role && takes(symbol)) {
                if answer.hits.len() == limit {
                    answer.more = true;
                    break;
                }
                answer.hits.push(Hit { path: path.clone(), language: entry.language, hash: found, symbol });
            }
        }
        answer
    }
}

fn collect(names: impl Iterator<Item = u32>, wanted: &[Option<u32>; 2], hits: &mut Vec<u32>) {
    if wanted.iter().any(Option::is_some) {
        hits.extend(
            names.enumerate().filter(|(_, name)| wanted.contains(&Some(*name))).map(|(at, _)| at as u32),
        );
    }
}

/// The symbols of a text that is no longer the one taken in.
fn fresh(index: &Index, language: Language, source: &[u8]) -> Result<Vec<CodeSymbol>, SkipReason> {
    let extraction = Extractor::new(index.options.limits).extract(None, source, Some(language.name()));
    extraction.map(|extraction| extraction.symbols).map_err(SkipReason::from)
}

/// Symbols from their records and the text that the records are of.
fn assembled(
    language: Language,
    source: &[u8],
    symbols: &Compact,
    places: &[u32],
    role: SymbolRole,
) -> Vec<CodeSymbol> {
    let raws = symbols.raws();
    let lines = LineIndex::new(source);
    let paths = assemble::paths(language, source, &raws);
    let container = |index: Option<u32>| index.map(|index| paths[index as usize].clone());
    let mut written = assemble::WrittenPaths::default();
    let made = places.iter().map(|place| match role {
        SymbolRole::Definition => {
            let def = &raws.defs[*place as usize];
            assemble::definition(
                language,
                source,
                &lines,
                def,
                paths[*place as usize].clone(),
                container(def.container),
            )
        }
        SymbolRole::Reference => {
            let mention = &raws.refs[*place as usize];
            assemble::reference(source, &lines, mention, container(mention.container), &mut written)
        }
    });
    made.collect()
}
