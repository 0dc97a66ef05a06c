//! Applies planned edits to files: locked, checked against the hash they were planned on, all files or none.

use super::{
    Change, Edit, EditError, Editor, Planned,
    write::{Held, Prepared, restore},
};
use crate::{hash::ContentHash, name_path::Selector, parse::ExtractError, range::SourceRange};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::TempPath;

/// How an editor treats files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPolicy {
    /// The longest wait for another editor's lock on a file.
    pub lock_timeout: Duration,
}

impl Default for EditPolicy {
    fn default() -> Self {
        EditPolicy { lock_timeout: Duration::from_secs(5) }
    }
}

/// The edits of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    /// The file; a link is followed, and what it names is edited.
    pub path: PathBuf,
    /// The hash of the text that the edits were planned against.
    pub expected: ContentHash,
    /// The language, where neither name nor first line tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What to change, each edit against the text as it is.
    pub edits: Vec<Edit>,
}

/// What was written to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The file that was written.
    pub path: PathBuf,
    /// The regions that differ; everything else is byte-identical.
    pub changes: Vec<Change>,
    /// The difference as a unified diff.
    pub diff: String,
    /// The hash before.
    pub before: ContentHash,
    /// The hash now, which the next edit names.
    pub after: ContentHash,
}

struct Work {
    held: Held,
    text: Vec<u8>,
    planned: Planned,
}

impl Editor {
    /// Applies a batch: all edits of all files, or none. Blocks for locks, reads, parses and `fsync`s.
    ///
    /// A file is replaced whole by a rename: mode, line endings, byte-order mark and final newline stay, the owner where
    /// it may, hard links part. A writer that takes no lock can only be noticed until the rename; a crash of the machine
    /// between the renames of two files leaves the first new and the second old.
    ///
    /// # Errors
    /// [`EditError`]; unless it is [`EditError::HalfWritten`], every file is as it was.
    pub fn apply(&mut self, batch: &[FileEdit]) -> Result<Vec<Applied>, EditError> {
        let deadline = Instant::now() + self.policy.lock_timeout;
        let mut works = Vec::new();
        // In the order of their paths, so that two batches never wait for each other.
        for (path, edit) in merged(batch)? {
            let held = Held::lock(path.clone(), deadline).map_err(|source| io_error(&path, source))?;
            works.push(self.work(held.ok_or(EditError::Locked(path))?, &edit)?);
        }
        commit(&works)?;
        let applied = works.into_iter().map(|work| Applied {
            path: work.held.path,
            changes: work.planned.changes,
            diff: work.planned.diff,
            before: ContentHash::of(&work.text),
            after: work.planned.hash,
        });
        Ok(applied.collect())
    }

    fn work(&mut self, mut held: Held, edit: &FileEdit) -> Result<Work, EditError> {
        let limit = self.extractor.limits().max_bytes as u64;
        if held.size() > limit {
            return Err(ExtractError::TooLarge { bytes: held.size(), limit }.into());
        }
        let text = held.read().map_err(|source| io_error(&held.path, source))?;
        let found = ContentHash::of(&text);
        let language = edit.language.as_deref();
        if found != edit.expected {
            let target = self.whereabouts(&held.path, &text, language, &edit.edits);
            return Err(EditError::Stale { path: held.path, found, target });
        }
        if held.is_read_only() {
            return Err(EditError::ReadOnly(held.path));
        }
        let planned = self.plan(Some(&held.path), &text, language, &edit.edits)?;
        Ok(Work { held, text, planned })
    }

    /// Where the first edit's target stands in a text that is not the expected one.
    fn whereabouts(
        &mut self,
        path: &Path,
        text: &[u8],
        language: Option<&str>,
        edits: &[Edit],
    ) -> Option<SourceRange> {
        let selector = Selector::parse(edits.first()?.target()).ok()?;
        let extraction = self.extractor.extract(Some(path), text, language).ok()?;
        let mut found = extraction.definitions().filter(|symbol| selector.matches(&symbol.name_path));
        match (found.next(), found.next()) {
            (Some(one), None) => Some(one.range),
            _ => None,
        }
    }
}

fn io_error(path: &Path, source: io::Error) -> EditError {
    EditError::Io { path: path.to_owned(), source }
}

/// The batch by canonical path, edits of one file joined.
fn merged(batch: &[FileEdit]) -> Result<BTreeMap<PathBuf, FileEdit>, EditError> {
    let mut files: BTreeMap<PathBuf, FileEdit> = BTreeMap::new();
    for edit in batch {
        let path = fs::canonicalize(&edit.path).map_err(|source| io_error(&edit.path, source))?;
        match files.get_mut(&path) {
            Some(known) if known.expected != edit.expected => return Err(EditError::Contradiction(path)),
            Some(known) => known.edits.extend(edit.edits.iter().cloned()),
            None => {
                files.insert(path, edit.clone());
            }
        }
    }
    Ok(files)
}

/// Everything that can fail for want of space or rights is done before the first rename.
fn commit(works: &[Work]) -> Result<(), EditError> {
    let (mut prepared, mut kept): (Vec<Prepared>, Vec<Option<TempPath>>) = (Vec::new(), Vec::new());
    for work in works {
        let fail = |source| io_error(&work.held.path, source);
        prepared.push(work.held.prepare(&work.planned.text).map_err(fail)?);
        kept.push(if works.len() > 1 { Some(work.held.keep(&work.text).map_err(fail)?) } else { None });
    }
    for work in works {
        if !work.held.is_untouched(&work.text).map_err(|source| io_error(&work.held.path, source))? {
            let found = fs::read(&work.held.path).map_err(|source| io_error(&work.held.path, source))?;
            return Err(EditError::Stale {
                path: work.held.path.clone(),
                found: ContentHash::of(&found),
                target: None,
            });
        }
    }
    for (done, (prepared, work)) in prepared.into_iter().zip(works).enumerate() {
        if let Err(source) = prepared.commit() {
            return Err(undo(&works[..done], kept, &work.held.path, source));
        }
    }
    Ok(())
}

fn undo(done: &[Work], kept: Vec<Option<TempPath>>, path: &Path, source: io::Error) -> EditError {
    let mut not_restored = Vec::new();
    for (work, old) in done.iter().zip(kept) {
        let Some(old) = old else { continue };
        if restore(old, &work.held.path).is_err() {
            not_restored.push(work.held.path.clone());
        }
    }
    match not_restored.is_empty() {
        true => io_error(path, source),
        false => EditError::HalfWritten { path: path.to_owned(), source, not_restored },
    }
}
