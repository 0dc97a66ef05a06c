//! Looks at each file of a tree once, on several threads, and hands over what was made of them in the tree's order.

use super::{
    IndexError, IndexOptions, SkipReason, Skipped, Skips,
    scan::{Admits, Found, area},
    work::{Hand, threads},
};
use crate::{
    assemble::{self, Wanted},
    diagnostics::{Diagnostics, diagnostics},
    hash::ContentHash,
    language::{LanguageSource, ResolvedLanguage},
    parse::{Cancel, ExtractError},
    raw::Raws,
    symbol::{SymbolExtraction, SymbolRole},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::Path,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// How many files a thread may be ahead of the one that is due, so that few answers wait in memory.
const AHEAD: usize = 256;

/// What an answer over several files rests on (B-CODE-4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Files that the answer rests on.
    pub searched: usize,
    /// Files that were not looked at, since enough was found.
    pub left: usize,
    /// Files that it does not rest on, and why.
    pub skipped: Skips,
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files searched, ", self.searched)?;
        if self.left > 0 {
            write!(f, "{} more not looked at, ", self.left)?;
        }
        self.skipped.fmt(f)
    }
}

/// One file of a survey, as it was read.
#[derive(Debug)]
pub struct Surveyed<'a> {
    found: &'a Found,
    source: &'a [u8],
    raws: Raws,
}

impl<'a> Surveyed<'a> {
    pub(super) fn new(found: &'a Found, source: &'a [u8], raws: Raws) -> Self {
        Surveyed { found, source, raws }
    }

    /// The file, relative to the surveyed folder; its name where the file itself was surveyed.
    pub fn path(&self) -> &'a Path {
        &self.found.path
    }

    /// Its text.
    pub fn source(&self) -> &'a [u8] {
        self.source
    }

    /// The hash of its text, which an edit names.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.source)
    }

    /// Its symbols, of one role or of both.
    pub fn symbols(&self, role: Option<SymbolRole>) -> SymbolExtraction {
        self.wanted(Wanted { role, name: None })
    }

    pub(super) fn wanted(&self, wanted: Wanted<'_>) -> SymbolExtraction {
        assemble::extraction(self.language(), self.source, &self.raws, wanted)
    }

    /// Where it leaves its grammar.
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics { language: self.language(), items: diagnostics(self.source, &self.raws) }
    }

    fn language(&self) -> ResolvedLanguage {
        ResolvedLanguage { name: self.found.language, by: LanguageSource::Path }
    }
}

/// Reads and parses a file, or each file of a folder that `admits` lets through: `make` is called on several threads at once, `give` hears what it
/// made in the order of the paths, until it breaks.
///
/// # Errors
/// [`IndexError`] when there is nothing at `path` to read, or when the caller cancelled; `give` may have heard of some
/// files by then.
pub fn survey<T: Send>(
    path: &Path,
    options: &IndexOptions,
    admits: Admits<'_>,
    cancel: &Cancel,
    make: impl Fn(&Surveyed<'_>) -> T + Sync,
    give: impl FnMut(T) -> ControlFlow<()> + Send,
) -> Result<Coverage, IndexError> {
    each(path, options, admits, cancel, |_, _| true, |surveyed| Some(make(surveyed)), give)
}

/// The same; a text that may not `hold` what is looked for is not parsed.
pub(super) fn each<T: Send>(
    path: &Path,
    options: &IndexOptions,
    admits: Admits<'_>,
    cancel: &Cancel,
    hold: impl Fn(&Found, &[u8]) -> bool + Sync,
    make: impl Fn(&Surveyed<'_>) -> Option<T> + Sync,
    mut give: impl FnMut(T) -> ControlFlow<()> + Send,
) -> Result<Coverage, IndexError> {
    let (root, mut scan) = area(path, options, admits, cancel)?;
    scan.files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut coverage = Coverage {
        skipped: Skips { unsupported: scan.unsupported, ..Skips::default() },
        ..Coverage::default()
    };
    scan.strays.into_iter().for_each(|stray| coverage.skipped.add(stray));
    let files = &scan.files;
    let look = |hand: &mut Hand<'_>, found: &Found| -> Result<Option<T>, Unseen> {
        hand.read(&root.join(&found.path), found.stamp)?;
        if !hold(found, &hand.text) {
            return Ok(None);
        }
        let raws = hand.raws(found)?;
        Ok(make(&Surveyed::new(found, &hand.text, raws)))
    };
    let mut heard = 0;
    in_order(options, files, cancel, look, |looked| {
        heard += 1;
        match looked {
            Ok(made) => {
                coverage.searched += 1;
                made.map_or(ControlFlow::Continue(()), &mut give)
            }
            Err(Unseen::Skipped(reason)) => {
                coverage.skipped.add(Skipped { path: files[heard - 1].path.clone(), reason });
                ControlFlow::Continue(())
            }
            Err(Unseen::Cancelled) => ControlFlow::Break(()),
        }
    });
    if cancel.is_cancelled() {
        return Err(IndexError::Cancelled);
    }
    coverage.left = files.len() - heard;
    Ok(coverage)
}

/// Why nothing was made of a file.
enum Unseen {
    Skipped(SkipReason),
    Cancelled,
}

impl From<SkipReason> for Unseen {
    fn from(reason: SkipReason) -> Self {
        Unseen::Skipped(reason)
    }
}

impl From<ExtractError> for Unseen {
    fn from(error: ExtractError) -> Self {
        match error {
            ExtractError::Cancelled => Unseen::Cancelled,
            error => Unseen::Skipped(error.into()),
        }
    }
}

/// What is made and not yet handed over.
struct Queue<T, G> {
    made: BTreeMap<usize, T>,
    due: usize,
    give: G,
}

fn in_order<T: Send, G: FnMut(T) -> ControlFlow<()> + Send>(
    options: &IndexOptions,
    files: &[Found],
    cancel: &Cancel,
    look: impl Fn(&mut Hand<'_>, &Found) -> T + Sync,
    give: G,
) {
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let queue = Mutex::new(Queue { made: BTreeMap::new(), due: 0, give });
    let moved = Condvar::new();
    let has_ended = || ended.load(Ordering::Relaxed) || cancel.is_cancelled();
    let work = || {
        let mut hand = Hand::new(options, cancel);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(found) = files.get(index).filter(|_| !has_ended()) else { break };
            let made = look(&mut hand, found);
            let mut queue = lock(&queue);
            queue.made.insert(index, made);
            while let Some(made) = {
                let due = queue.due;
                queue.made.remove(&due)
            } {
                if has_ended() {
                    break;
                }
                queue.due += 1;
                if (queue.give)(made).is_break() {
                    ended.store(true, Ordering::Relaxed);
                }
            }
            moved.notify_all();
            // The thread whose file is due is never ahead, so that this ends.
            while index > queue.due + AHEAD && !has_ended() {
                queue = moved.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        }
        moved.notify_all();
    };
    match threads(options, files.len()) {
        1 => work(),
        threads => std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work)))),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
