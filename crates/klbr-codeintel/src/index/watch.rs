//! Follows a tree's changes as the system tells them. What it tells is a hint: stamps and hashes decide what changed.

use super::{Index, IndexError, IndexReport, OnProgress};
use crate::{language::Language, parse::Cancel};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// Why a tree cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", root.display())]
pub struct WatchError {
    root: PathBuf,
    reason: String,
}

/// A tree that is being watched, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    _watcher: RecommendedWatcher,
    events: Receiver<notify::Result<notify::Event>>,
}

/// What a number of events come to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    paths: BTreeSet<PathBuf>,
    /// Events were lost, or folders came or went: only a look over the tree tells.
    all: bool,
}

impl Watch {
    /// Begins to watch the index's tree.
    ///
    /// # Errors
    /// [`WatchError`], for instance when the system's limit of watches is reached; then [`Index::refresh`] at intervals
    /// does the same.
    pub fn new(root: &Path) -> Result<Self, WatchError> {
        let fail = |reason: notify::Error| WatchError { root: root.to_owned(), reason: reason.to_string() };
        let (sender, events) = channel();
        let mut watcher = notify::recommended_watcher(sender).map_err(fail)?;
        watcher.watch(root, RecursiveMode::Recursive).map_err(fail)?;
        Ok(Watch { _watcher: watcher, events })
    }

    /// Waits for the first change until `timeout`, then gathers until nothing comes for `quiet`.
    fn next(&self, timeout: Duration, quiet: Duration) -> Option<Changes> {
        let mut changes = Changes::default();
        let mut wait = timeout;
        let end = Instant::now() + timeout + quiet * 10;
        let mut heard = false;
        while let Ok(event) =
            self.events.recv_timeout(wait.min(end.saturating_duration_since(Instant::now())))
        {
            heard |= changes.add(event);
            wait = quiet;
        }
        heard.then_some(changes)
    }
}

impl Changes {
    fn add(&mut self, event: notify::Result<notify::Event>) -> bool {
        let Ok(event) = event else {
            self.all = true;
            return true;
        };
        if matches!(event.kind, EventKind::Access(_)) {
            return false;
        }
        self.all |= event.need_rescan();
        self.paths.extend(event.paths);
        true
    }
}

impl Index {
    /// Waits until the tree changes or `timeout` is over, and takes in what changed; `None` when nothing did.
    ///
    /// Changes that follow each other within `quiet` are taken in together. New files and folders make it look over the
    /// tree, which is how ignore files are obeyed; files it knows are looked at alone.
    ///
    /// # Errors
    /// As [`Index::refresh`].
    pub fn follow(
        &mut self,
        watch: &Watch,
        timeout: Duration,
        quiet: Duration,
        cancel: &Cancel,
        progress: OnProgress<'_>,
    ) -> Result<Option<IndexReport>, IndexError> {
        let Some(changes) = watch.next(timeout, quiet) else { return Ok(None) };
        let relative = |path: &PathBuf| path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        let paths: Vec<PathBuf> = changes.paths.iter().map(relative).collect();
        let known = |path: &PathBuf| self.files.contains_key(path);
        let new = |path: &PathBuf| {
            let whole = self.root.join(path);
            !known(path)
                && (whole.is_dir()
                    || !whole.exists()
                    || Language::of_path(path).is_ok()
                    || is_ignore_file(path))
        };
        match changes.all || paths.iter().any(new) {
            true => self.refresh(cancel, progress).map(Some),
            false => self.refresh_paths(&paths, cancel, progress).map(Some),
        }
    }
}

fn is_ignore_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore")
}
