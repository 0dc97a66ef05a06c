//! Reads and parses many files on several threads, each with its own parsers.

use super::{Compact, IndexError, IndexOptions, OnProgress, Progress, SkipReason, scan::Found, scan::Stamp};
use crate::{
    extract::Extractor,
    hash::ContentHash,
    isolate::Worker,
    parse::{Cancel, ExtractError},
    raw::Raws,
};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

pub(super) enum Outcome {
    /// The text is the one already known.
    Same,
    Parsed {
        hash: ContentHash,
        symbols: Compact,
    },
    Skipped(SkipReason),
}

pub(super) struct Done {
    pub(super) index: usize,
    pub(super) outcome: Outcome,
}

/// How often a file that changes under the reader is read again.
const TRIES: usize = 3;

pub(super) fn threads(options: &IndexOptions, files: usize) -> usize {
    let wanted = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    wanted.min(files.div_ceil(8)).max(1)
}

/// Does all of `todo`, the largest first so that no thread is left alone with one at the end.
pub(super) fn run(
    root: &Path,
    options: &IndexOptions,
    todo: &[Found],
    known: &[Option<ContentHash>],
    cancel: &Cancel,
    progress: OnProgress<'_>,
) -> Result<Vec<Done>, IndexError> {
    let mut order: Vec<usize> = (0..todo.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(todo[*index].stamp.size()));
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let all = Mutex::new(Vec::with_capacity(todo.len()));
    let work = || {
        let mut hand = Hand::new(options, cancel);
        let mut own = Vec::new();
        while let Some(index) =
            order.get(next.fetch_add(1, Ordering::Relaxed)).copied().filter(|_| !cancel.is_cancelled())
        {
            if let Some(outcome) = hand.take(root, &todo[index], known[index]) {
                own.push(Done { index, outcome });
            }
            let done = finished.fetch_add(1, Ordering::Relaxed) + 1;
            progress(Progress { done, total: todo.len() });
        }
        all.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).append(&mut own);
    };
    match threads(options, todo.len()) {
        1 => work(),
        threads => std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work)))),
    }
    let mut done = all.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|done| done.index);
    Ok(done)
}

/// One thread's tools.
pub(super) struct Hand<'a> {
    options: &'a IndexOptions,
    extractor: Extractor,
    worker: Option<Worker>,
    pub(super) text: Vec<u8>,
}

impl<'a> Hand<'a> {
    pub(super) fn new(options: &'a IndexOptions, cancel: &Cancel) -> Self {
        let extractor = Extractor::new(options.limits).with_cancel(cancel.clone());
        let worker =
            options.isolation.clone().map(|isolation| Worker::new(isolation, options.limits, cancel.clone()));
        Hand { options, extractor, worker, text: Vec::new() }
    }

    /// `None` when the work was cancelled, of which nothing is to be kept.
    fn take(&mut self, root: &Path, found: &Found, known: Option<ContentHash>) -> Option<Outcome> {
        if let Err(reason) = self.read(&root.join(&found.path), found.stamp) {
            return Some(Outcome::Skipped(reason));
        }
        let hash = ContentHash::of(&self.text);
        if known == Some(hash) {
            return Some(Outcome::Same);
        }
        match self.symbols(found) {
            Ok(symbols) => Some(Outcome::Parsed { hash, symbols }),
            Err(ExtractError::Cancelled) => None,
            Err(error) => Some(Outcome::Skipped(error.into())),
        }
    }

    /// Reads the file into the hand's buffer, whole and of one moment.
    pub(super) fn read(&mut self, path: &Path, stamp: Stamp) -> Result<(), SkipReason> {
        let limit = self.options.limits.max_bytes as u64;
        if stamp.size() > limit {
            return Err(SkipReason::TooLarge(stamp.size()));
        }
        let mut stamp = stamp;
        for _ in 0..TRIES {
            match read_once(path, &mut self.text, limit) {
                Ok(after) if after == stamp => return Ok(()),
                Ok(after) => stamp = after,
                Err(error) => return Err(SkipReason::Unreadable(error.to_string())),
            }
        }
        Err(SkipReason::Changing)
    }

    pub(super) fn symbols(&mut self, found: &Found) -> Result<Compact, ExtractError> {
        match &mut self.worker {
            Some(worker) if worker.takes(self.text.len()) => worker.extract(found.language, &self.text),
            _ => {
                let raws = self.extractor.raws(found.language, &self.text)?;
                Ok(Compact::new(&self.text, &raws))
            }
        }
    }

    /// The records themselves, for whoever asks of a file but once.
    pub(super) fn raws(&mut self, found: &Found) -> Result<Raws, ExtractError> {
        match &mut self.worker {
            Some(worker) if worker.takes(self.text.len()) => worker.raws(found.language, &self.text),
            _ => self.extractor.raws(found.language, &self.text),
        }
    }
}

fn read_once(path: &Path, text: &mut Vec<u8>, limit: u64) -> io::Result<Stamp> {
    text.clear();
    let mut file = File::open(path)?;
    (&mut file).take(limit + 1).read_to_end(text)?;
    Ok(Stamp::of(&file.metadata()?))
}
