//! Folders and files that appear whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers the folders that this process makes.
static MADE: AtomicU64 = AtomicU64::new(1);

/// A folder that is being filled. Dropping it removes it.
pub(crate) struct Scratch {
    path: PathBuf,
    is_kept: bool,
}

impl Scratch {
    /// An empty folder in `parent`.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        loop {
            let name = format!(".new-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
            let path = parent.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch { path, is_kept: false }),
                // Left behind by a process of the same id that died.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. What had the name before is removed: the caller found it damaged.
    pub(crate) fn keep_as(mut self, target: &Path) -> io::Result<()> {
        if fs::rename(&self.path, target).is_err() {
            let old = Scratch::new(target.parent().unwrap_or(Path::new(".")))?;
            // Two renames: whoever opens the name in between finds nothing, never half of it.
            match fs::rename(target, old.path.join("old")) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            fs::rename(&self.path, target)?;
        }
        self.is_kept = true;
        if let Some(parent) = target.parent() {
            fs::File::open(parent)?.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            // Left behind, it is a hidden folder that nobody reads.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Whether a file outlives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    Synced,
    AsItComes,
}

/// Puts bytes under a name: whoever reads it sees the old or the new ones.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], lasting: Lasting) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    fs::create_dir_all(folder)?;
    let made = Scratch::new(folder)?;
    let file = made.path().join("file");
    let mut writer = fs::File::create_new(&file)?;
    io::Write::write_all(&mut writer, bytes)?;
    if lasting == Lasting::AsItComes {
        return fs::rename(&file, path);
    }
    writer.sync_all()?;
    fs::rename(&file, path)?;
    fs::File::open(folder)?.sync_all()
}
