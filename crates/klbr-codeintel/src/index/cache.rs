//! An index on a disk. A cache file is trusted only whole: its magic, its version and its hash must all be right, and
//! then the tree is still looked over for what changed.

use super::{Entry, Index, IndexError, IndexOptions, IndexReport, OnProgress, Skipped};
use crate::{hash::ContentHash, parse::Cancel};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// Changes whenever a record's meaning or a grammar does.
const MAGIC: &[u8] = b"klbr-codeintel index 1\n";

/// Why a cache file is not used. None of these keeps an index from being built anew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The cache file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Another version wrote it.
    #[error("{} is of another version", .0.display())]
    Version(PathBuf),
    /// It is not as it was written.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// It is of another tree, or was made with other options.
    #[error("{} is of another tree or other options", .0.display())]
    Foreign(PathBuf),
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    key: String,
    files: Cow<'a, BTreeMap<PathBuf, Entry>>,
    unsupported: usize,
    strays: Cow<'a, [Skipped]>,
}

/// What must be the same for an index to be the one wanted.
fn key(root: &Path, options: &IndexOptions) -> String {
    let languages: Vec<&str> = crate::Language::ALL.iter().map(|language| language.name()).collect();
    format!(
        "{root:?} {:?} {:?} {languages:?}",
        options.limits,
        (&options.languages, options.follow_links, options.hidden)
    )
}

impl Index {
    /// Loads an index and refreshes it, or builds it when the cache file cannot be used; then the reason is told too.
    ///
    /// # Errors
    /// As [`Index::build`].
    pub fn open(
        root: &Path,
        options: IndexOptions,
        cache: &Path,
        cancel: &Cancel,
        progress: OnProgress<'_>,
    ) -> Result<(Index, IndexReport, Option<CacheError>), IndexError> {
        match Index::load(root, options.clone(), cache) {
            Ok(mut index) => {
                let report = index.refresh(cancel, progress)?;
                Ok((index, report, None))
            }
            Err(reason) => {
                let (index, report) = Index::build(root, options, cancel, progress)?;
                Ok((index, report, Some(reason)))
            }
        }
    }

    /// Loads an index as it was saved; files may have changed since.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn load(root: &Path, options: IndexOptions, cache: &Path) -> Result<Index, CacheError> {
        let fail = |source| CacheError::Io { path: cache.to_owned(), source };
        let root = root.canonicalize().map_err(fail)?;
        let bytes = fs::read(cache).map_err(fail)?;
        let body = bytes.strip_prefix(MAGIC).ok_or_else(|| CacheError::Version(cache.to_owned()))?;
        let damaged = || CacheError::Damaged(cache.to_owned());
        let (hash, body) = body.split_at_checked(65).ok_or_else(damaged)?;
        if hash != format!("{}\n", ContentHash::of(body)).as_bytes() {
            return Err(damaged());
        }
        let stored: Stored<'_> = postcard::from_bytes(body).map_err(|_| damaged())?;
        if stored.key != key(&root, &options) {
            return Err(CacheError::Foreign(cache.to_owned()));
        }
        let (files, strays) = (stored.files.into_owned(), stored.strays.into_owned());
        Ok(Index { root, options, files, unsupported: stored.unsupported, strays })
    }

    /// Saves the index, whole or not at all.
    ///
    /// # Errors
    /// [`CacheError::Io`].
    pub fn save(&self, cache: &Path) -> Result<(), CacheError> {
        let fail = |source| CacheError::Io { path: cache.to_owned(), source };
        let stored = Stored {
            key: key(&self.root, &self.options),
            files: Cow::Borrowed(&self.files),
            unsupported: self.unsupported,
            strays: Cow::Borrowed(&self.strays),
        };
        let body = postcard::to_stdvec(&stored).map_err(|error| fail(io::Error::other(error)))?;
        let folder = cache.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        file.write_all(MAGIC).map_err(fail)?;
        file.write_all(format!("{}\n", ContentHash::of(&body)).as_bytes()).map_err(fail)?;
        file.write_all(&body).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        file.persist(cache).map_err(|error| fail(error.error))?;
        Ok(())
    }
}
