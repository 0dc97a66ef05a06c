//! Replaces files so that a reader, a crash or a full disk meets the old text or the new one, never a part.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use tempfile::{NamedTempFile, TempPath};

/// How long a waiting editor sleeps between two looks at a lock.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// A file that this editor alone holds, by an advisory lock on the file behind the canonical path.
pub(super) struct Held {
    pub(super) path: PathBuf,
    file: File,
    metadata: Metadata,
}

impl Held {
    /// Waits for the lock until `deadline`; `None` when it comes first.
    ///
    /// Editors replace files instead of writing into them, so after the lock is had the path is looked at again: when
    /// it names another file by then, that one is to be locked.
    pub(super) fn lock(path: PathBuf, deadline: Instant) -> io::Result<Option<Held>> {
        loop {
            if !fs::metadata(&path)?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
            let file = File::open(&path)?;
            match file.try_lock() {
                Ok(()) => {
                    let metadata = file.metadata()?;
                    if same_file(&metadata, &fs::metadata(&path)?) {
                        return Ok(Some(Held { path, file, metadata }));
                    }
                }
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.metadata.len()
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.metadata.permissions().readonly()
            || File::options()
                .append(true)
                .open(&self.path)
                .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::with_capacity(self.metadata.len() as usize);
        self.file.read_to_end(&mut text)?;
        Ok(text)
    }

    /// Writes `text` beside the file, with its mode and, where it may, its owner, and brings it to the disk.
    pub(super) fn prepare(&self, text: &[u8]) -> io::Result<Prepared> {
        let mut new = self.beside(".new")?;
        new.write_all(text)?;
        self.adopt(new.as_file())?;
        new.as_file().sync_all()?;
        Ok(Prepared { path: self.path.clone(), new: new.into_temp_path() })
    }

    /// Keeps the file's present text beside it, so that a batch can be undone.
    pub(super) fn keep(&self, text: &[u8]) -> io::Result<TempPath> {
        let mut old = self.beside(".old")?;
        old.write_all(text)?;
        self.adopt(old.as_file())?;
        old.as_file().sync_all()?;
        Ok(old.into_temp_path())
    }

    /// Whether the path still names the file that was read, with that text.
    pub(super) fn is_untouched(&self, text: &[u8]) -> io::Result<bool> {
        Ok(same_file(&self.metadata, &fs::metadata(&self.path)?) && fs::read(&self.path)? == text)
    }

    fn beside(&self, suffix: &str) -> io::Result<NamedTempFile> {
        let folder = self.path.parent().unwrap_or_else(|| Path::new("/"));
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        tempfile::Builder::new().prefix(&format!(".{name}.")).suffix(suffix).tempfile_in(folder)
    }

    fn adopt(&self, new: &File) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let (mine, theirs) = (new.metadata()?, &self.metadata);
            if (mine.uid(), mine.gid()) != (theirs.uid(), theirs.gid()) {
                // Only root may give a file away; without that right the editor becomes its owner.
                let _ = fchown(new, Some(theirs.uid()), Some(theirs.gid()));
            }
        }
        new.set_permissions(self.metadata.permissions())
    }
}

/// A new text on the disk beside the file that it will replace. Dropped, it is gone.
pub(super) struct Prepared {
    path: PathBuf,
    new: TempPath,
}

impl Prepared {
    pub(super) fn commit(self) -> io::Result<()> {
        self.new.persist(&self.path).map_err(|error| error.error)?;
        sync_folder(&self.path);
        Ok(())
    }
}

/// Puts a kept text back. When that fails it stays where it was kept.
pub(super) fn restore(old: TempPath, path: &Path) -> io::Result<()> {
    match old.persist(path) {
        Ok(()) => {
            sync_folder(path);
            Ok(())
        }
        Err(failed) => {
            let _ = failed.path.keep();
            Err(failed.error)
        }
    }
}

/// Brings a rename to the disk. Not every file system can; there a power cut may bring the old text back, whole.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}

#[cfg(unix)]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len() && one.modified().ok() == other.modified().ok()
}
