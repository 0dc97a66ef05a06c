//! Finds the files of a tree and stamps them, without reading any.

use super::{IndexError, IndexOptions, SkipReason, Skipped};
use crate::{
    language::{Language, LanguageError, ResolvedLanguage},
    parse::Cancel,
};
use ignore::{WalkBuilder, WalkState};
use serde::{Deserialize, Serialize};
use std::{
    fs::{File, Metadata},
    io::Read,
    path::{Path, PathBuf},
    sync::Mutex,
    time::UNIX_EPOCH,
};

/// What tells that a file was written to, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    size: u64,
    modified_nanos: u64,
    changed_nanos: u64,
    inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        #[cfg(unix)]
        let (changed_nanos, inode) = {
            use std::os::unix::fs::MetadataExt;
            (
                (metadata.ctime() as u64)
                    .wrapping_mul(1_000_000_000)
                    .wrapping_add(metadata.ctime_nsec() as u64),
                metadata.ino(),
            )
        };
        #[cfg(not(unix))]
        let (changed_nanos, inode) = (0, 0);
        let modified_nanos = modified.map_or(0, |time| time.as_nanos() as u64);
        Stamp { size: metadata.len(), modified_nanos, changed_nanos, inode }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// Whether a file, by its path below the folder, may be looked at and told of at all.
pub type Admits<'a> = &'a (dyn Fn(&Path) -> bool + Sync);

/// A file of a known language.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
    pub(super) language: Language,
}

#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<Found>,
    pub(super) unsupported: usize,
    pub(super) strays: Vec<Skipped>,
}

pub(super) fn walker(root: &Path, options: &IndexOptions) -> ignore::WalkParallel {
    WalkBuilder::new(root)
        .standard_filters(options.obey_ignore_files)
        .require_git(false)
        .hidden(!options.hidden)
        .follow_links(options.follow_links)
        .threads(options.threads)
        .build_parallel()
}

/// A folder with the files in it, or the folder of a file with that file alone.
pub(super) fn area(
    path: &Path,
    options: &IndexOptions,
    admits: Admits<'_>,
    cancel: &Cancel,
) -> Result<(PathBuf, Scan), IndexError> {
    let fail = |source| IndexError::Root { root: path.to_owned(), source };
    let whole = path.canonicalize().map_err(fail)?;
    let metadata = std::fs::metadata(&whole).map_err(fail)?;
    let (Some(folder), Some(name), false) = (whole.parent(), whole.file_name(), metadata.is_dir()) else {
        return Ok((whole.clone(), scan(&whole, options, admits, cancel)?));
    };
    let language = match options.read_as {
        Some(language) => language,
        None => told(path).map_err(|source| IndexError::Language { path: path.to_owned(), source })?,
    };
    let found = Found { path: PathBuf::from(name), stamp: Stamp::of(&metadata), language };
    Ok((folder.to_owned(), Scan { files: vec![found], ..Scan::default() }))
}

/// Walks the tree on several threads.
pub(super) fn scan(
    root: &Path,
    options: &IndexOptions,
    admits: Admits<'_>,
    cancel: &Cancel,
) -> Result<Scan, IndexError> {
    std::fs::read_dir(root).map_err(|source| IndexError::Root { root: root.to_owned(), source })?;
    let scan = Mutex::new(Scan::default());
    walker(root, options).run(|| {
        let mut own = Own { scan: Scan::default(), all: &scan };
        Box::new(move |entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) => own.take(root, options, admits, &entry),
                Err(error) => {
                    own.scan.strays.extend(Some(stray(root, &error)).filter(|stray| admits(&stray.path)))
                }
            }
            WalkState::Continue
        })
    });
    match cancel.is_cancelled() {
        true => Err(IndexError::Cancelled),
        false => Ok(scan.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())),
    }
}

/// What one thread of the walk found; joined to the rest when the thread ends.
struct Own<'a> {
    scan: Scan,
    all: &'a Mutex<Scan>,
}

impl Own<'_> {
    fn take(&mut self, root: &Path, options: &IndexOptions, admits: Admits<'_>, entry: &ignore::DirEntry) {
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else { return };
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
        if !kind.is_file() || !admits(&path) {
            return;
        }
        match (language(entry.path(), options), entry.metadata()) {
            (None, _) => self.scan.unsupported += 1,
            (Some(language), Ok(metadata)) => {
                self.scan.files.push(Found { path, stamp: Stamp::of(&metadata), language })
            }
            (Some(_), Err(error)) => {
                let reason = SkipReason::Unreadable(error.to_string());
                self.scan.strays.push(Skipped { path, reason });
            }
        }
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.files.append(&mut self.scan.files);
        all.strays.append(&mut self.scan.strays);
        all.unsupported += self.scan.unsupported;
    }
}

fn stray(root: &Path, error: &ignore::Error) -> Skipped {
    fn path(error: &ignore::Error) -> Option<&Path> {
        match error {
            ignore::Error::WithPath { path, .. } => Some(path),
            ignore::Error::Loop { child, .. } => Some(child),
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path(err),
            _ => None,
        }
    }
    fn is_loop(error: &ignore::Error) -> bool {
        match error {
            ignore::Error::Loop { .. } => true,
            ignore::Error::WithPath { err, .. }
            | ignore::Error::WithDepth { err, .. }
            | ignore::Error::WithLineNumber { err, .. } => is_loop(err),
            _ => false,
        }
    }
    let reason = match is_loop(error) {
        true => SkipReason::Link(error.to_string()),
        false => SkipReason::Unreadable(error.to_string()),
    };
    let path = path(error).unwrap_or(root);
    Skipped { path: path.strip_prefix(root).unwrap_or(path).to_owned(), reason }
}

/// The file's language, if it is one that is wanted.
pub(super) fn language(path: &Path, options: &IndexOptions) -> Option<Language> {
    let found = told(path).ok();
    found.filter(|language| options.languages.is_empty() || options.languages.contains(language))
}

/// The language that the file's name tells. Only a file without an ending is opened for its first line.
fn told(path: &Path) -> Result<Language, LanguageError> {
    match Language::of_path(path) {
        Err(LanguageError::Undetermined) if path.extension().is_none() => {
            let mut first = [0; 128];
            let length = File::open(path).and_then(|mut file| file.read(&mut first)).unwrap_or(0);
            ResolvedLanguage::resolve(None, &first[..length], None).map(|resolved| resolved.name)
        }
        settled => settled,
    }
}

/// The file at that place below the root, if it is one to parse.
pub(super) fn found(root: &Path, path: PathBuf, options: &IndexOptions) -> Option<Found> {
    let whole = root.join(&path);
    let metadata = match options.follow_links {
        true => std::fs::metadata(&whole),
        false => std::fs::symlink_metadata(&whole),
    };
    let metadata = metadata.ok().filter(Metadata::is_file)?;
    Some(Found { language: language(&whole, options)?, stamp: Stamp::of(&metadata), path })
}
