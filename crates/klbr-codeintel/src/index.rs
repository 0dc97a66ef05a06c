//! An index over a tree of files: which names stand where, kept small, refreshed by what changed.
//!
//! It holds spans and names, never texts. An answer reads the files that it names, so what it says is what stands
//! there at that moment; a file that changed since is read anew for the answer. Every answer says how many files it
//! rests on and which were left out and why (B-CODE-4).

mod cache;
mod compact;
mod lookup;
mod prefilter;
mod query;
mod scan;
mod skip;
mod survey;
#[cfg(feature = "watch")]
mod watch;
mod work;

pub use cache::CacheError;
pub use lookup::{lookup, lookup_among};
pub use query::{Answer, FileSymbols, Hit, Query, SymbolSearch};
pub use scan::Admits;
pub use skip::{SkipReason, Skipped, Skips};
pub use survey::{Coverage, Surveyed, survey};
#[cfg(feature = "watch")]
pub use watch::{Watch, WatchError};

pub(crate) use compact::Compact;
#[cfg(test)]
pub(crate) use prefilter::Prefilter;

use crate::{
    hash::ContentHash,
    isolate::Isolation,
    language::{Language, LanguageError},
    parse::{Cancel, Limits},
};
use scan::{Found, Stamp};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

/// What an index takes in, and at what cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexOptions {
    /// The bounds of each file.
    pub limits: Limits,
    /// Threads that parse; 0 for one a core.
    pub threads: usize,
    /// Languages taken in; empty for all of this build.
    pub languages: Vec<Language>,
    /// Whether files and folders behind links are taken in. A loop is met once and listed.
    pub follow_links: bool,
    /// Whether hidden files are taken in.
    pub hidden: bool,
    /// Whether `.gitignore` and `.ignore` files are obeyed.
    pub obey_ignore_files: bool,
    /// The most memory that the index itself may hold; files beyond are left out and listed.
    pub max_index_bytes: usize,
    /// The language of a file that is named itself, whatever its name says. A tree's files are told by their names.
    pub read_as: Option<Language>,
    /// A process of its own for hard files, in which even a parser that hangs can be ended.
    pub isolation: Option<Isolation>,
}

impl Default for IndexOptions {
    fn default() -> Self {
        IndexOptions {
            limits: Limits::default(),
            threads: 0,
            languages: Vec::new(),
            follow_links: false,
            hidden: false,
            obey_ignore_files: true,
            max_index_bytes: 1 << 30,
            read_as: None,
            isolation: None,
        }
    }
}

/// How far a build or refresh has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files done.
    pub done: usize,
    /// Files to do.
    pub total: usize,
}

/// Hears of progress, from any thread, as often as a file is done. Must be quick.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Sync);

/// What a build or refresh did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Files of known languages that were found.
    pub files: usize,
    /// Files that were parsed.
    pub parsed: usize,
    /// Files whose stamp had changed but whose text had not.
    pub touched: usize,
    /// Files that are gone.
    pub removed: usize,
    /// Symbols now held, definitions and references.
    pub symbols: usize,
    /// Bytes of memory now held.
    pub bytes: usize,
    /// What was left out.
    pub skipped: Skips,
}

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The root cannot be read.
    #[error("{}: {source}", root.display())]
    Root {
        /// The tree's root.
        root: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// The language of the file named cannot be told.
    #[error("{}: {source}", path.display())]
    Language {
        /// The file.
        path: PathBuf,
        /// Why.
        source: LanguageError,
    },
    /// The caller raised its [`Cancel`]; an index that was there keeps what it had and what was done until then.
    #[error("cancelled")]
    Cancelled,
}

/// The names of a tree and where they stand.
#[derive(Debug)]
pub struct Index {
    root: PathBuf,
    options: IndexOptions,
    files: BTreeMap<PathBuf, Entry>,
    unsupported: usize,
    /// Entries of the tree that are no file to parse: broken links, loops, unreadable folders.
    strays: Vec<Skipped>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    language: Language,
    state: State,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum State {
    Indexed { hash: ContentHash, symbols: Compact },
    Skipped(SkipReason),
}

impl Index {
    /// Reads and parses the whole tree.
    ///
    /// # Errors
    /// [`IndexError`]. A file that cannot be had is no error: the report lists it.
    pub fn build(
        root: &Path,
        options: IndexOptions,
        cancel: &Cancel,
        progress: OnProgress<'_>,
    ) -> Result<(Index, IndexReport), IndexError> {
        let root =
            root.canonicalize().map_err(|source| IndexError::Root { root: root.to_owned(), source })?;
        let mut index = Index { root, options, files: BTreeMap::new(), unsupported: 0, strays: Vec::new() };
        let report = index.refresh(cancel, progress)?;
        Ok((index, report))
    }

    /// Walks the tree again and takes in what changed: by stamp (size, time, inode), then by content.
    ///
    /// # Errors
    /// As [`Index::build`].
    pub fn refresh(&mut self, cancel: &Cancel, progress: OnProgress<'_>) -> Result<IndexReport, IndexError> {
        let scan = scan::scan(&self.root, &self.options, &|_| true, cancel)?;
        let before = self.files.len();
        let found: BTreeMap<PathBuf, Found> =
            scan.files.into_iter().map(|found| (found.path.clone(), found)).collect();
        self.files.retain(|path, _| found.contains_key(path));
        let removed = before - self.files.len();
        self.unsupported = scan.unsupported;
        self.strays = scan.strays;
        let todo: Vec<Found> = found
            .into_values()
            .filter(|found| self.files.get(&found.path).is_none_or(|entry| entry.needs(found)))
            .collect();
        let mut report = self.take_in(todo, cancel, progress)?;
        report.removed = removed;
        Ok(report)
    }

    /// Takes in these files alone, which a watcher or an edit told of; those that are gone are removed.
    ///
    /// Paths are absolute or relative to the root; those outside it and those of no known language are passed over.
    /// Ignore files are not looked at: a path given is a path wanted.
    ///
    /// # Errors
    /// As [`Index::build`].
    pub fn refresh_paths(
        &mut self,
        paths: &[PathBuf],
        cancel: &Cancel,
        progress: OnProgress<'_>,
    ) -> Result<IndexReport, IndexError> {
        let mut todo = Vec::new();
        let mut removed = 0;
        for path in paths {
            let Ok(relative) = self.root.join(path).strip_prefix(&self.root).map(Path::to_owned) else {
                continue;
            };
            match scan::found(&self.root, relative.clone(), &self.options) {
                Some(found) if self.files.get(&relative).is_none_or(|entry| entry.needs(&found)) => {
                    todo.push(found)
                }
                Some(_) => {}
                None => removed += usize::from(self.files.remove(&relative).is_some()),
            }
        }
        let mut report = self.take_in(todo, cancel, progress)?;
        report.removed = removed;
        Ok(report)
    }

    fn take_in(
        &mut self,
        todo: Vec<Found>,
        cancel: &Cancel,
        progress: OnProgress<'_>,
    ) -> Result<IndexReport, IndexError> {
        let mut report = IndexReport::default();
        let known: Vec<Option<ContentHash>> = todo.iter().map(|found| self.hash_of(&found.path)).collect();
        let mut held = self.bytes();
        let limit = self.options.max_index_bytes;
        for done in work::run(&self.root, &self.options, &todo, &known, cancel, progress)? {
            let found = &todo[done.index];
            let state = match done.outcome {
                work::Outcome::Same => {
                    report.touched += 1;
                    if let Some(entry) = self.files.get_mut(&found.path) {
                        entry.stamp = found.stamp;
                    }
                    continue;
                }
                work::Outcome::Parsed { hash, symbols } => {
                    report.parsed += 1;
                    held += symbols.heap_bytes();
                    match held > limit {
                        true => State::Skipped(SkipReason::IndexFull),
                        false => State::Indexed { hash, symbols },
                    }
                }
                work::Outcome::Skipped(reason) => State::Skipped(reason),
            };
            self.files
                .insert(found.path.clone(), Entry { stamp: found.stamp, language: found.language, state });
        }
        match cancel.is_cancelled() {
            true => Err(IndexError::Cancelled),
            false => Ok(IndexReport {
                files: self.files.len(),
                symbols: self.compacts().map(|symbols| symbols.len()).sum(),
                bytes: self.bytes(),
                skipped: self.skipped(),
                ..report
            }),
        }
    }

    /// The tree's root, canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The content hash that a file (relative to the root) had when it was taken in.
    pub fn hash_of(&self, path: &Path) -> Option<ContentHash> {
        match &self.files.get(path)?.state {
            State::Indexed { hash, .. } => Some(*hash),
            State::Skipped(_) => None,
        }
    }

    /// What is left out and why.
    pub fn skipped(&self) -> Skips {
        self.skipped_below(None)
    }

    /// The same of the files whose paths begin so; how many are of no known language is known of the whole tree only.
    fn skipped_below(&self, below: Option<&Path>) -> Skips {
        let is_below = |path: &Path| below.is_none_or(|below| path.starts_with(below));
        let mut skips = Skips { unsupported: self.unsupported, ..Skips::default() };
        let strays = self.strays.iter().filter(|stray| is_below(&stray.path));
        strays.for_each(|stray| skips.add(stray.clone()));
        for (path, entry) in self.files.iter().filter(|(path, _)| is_below(path)) {
            if let State::Skipped(reason) = &entry.state {
                skips.add(Skipped { path: path.clone(), reason: reason.clone() });
            }
        }
        skips
    }

    /// Bytes of memory held for symbols.
    pub fn bytes(&self) -> usize {
        self.compacts().map(Compact::heap_bytes).sum()
    }

    fn compacts(&self) -> impl Iterator<Item = &Compact> {
        self.files.values().filter_map(|entry| match &entry.state {
            State::Indexed { symbols, .. } => Some(symbols),
            State::Skipped(_) => None,
        })
    }
}

impl Entry {
    fn needs(&self, found: &Found) -> bool {
        let settled = self.stamp == found.stamp && self.language == found.language;
        !settled || matches!(&self.state, State::Skipped(reason) if reason.may_pass())
    }
}
