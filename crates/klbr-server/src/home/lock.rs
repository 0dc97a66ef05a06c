//! The lock: one process at a time owns a home.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The lock of a home, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

/// A home that could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process owns the home.
    #[error("{} is held by {holder}", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who, as far as the file says.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("{} cannot be locked", path.display())]
    Unusable {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl HomeLock {
    /// Takes the lock, or says at once who holds it.
    ///
    /// # Errors
    ///
    /// Fails when another process holds it, or the file cannot be used.
    pub fn acquire(home: &Path, program: &str) -> Result<Self, LockError> {
        let path = &home.join("lock");
        let unusable = |source| LockError::Unusable { path: path.into(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let holder = match text.trim() {
                    "" => "another process".to_owned(),
                    named => named.to_owned(),
                };
                return Err(LockError::Held { path: path.into(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        file.set_len(0).map_err(unusable)?;
        writeln!(file, "{program} (process {})", std::process::id()).map_err(unusable)?;
        Ok(HomeLock { _file: file })
    }
}
