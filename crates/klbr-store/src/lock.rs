//! The home's lock: one process at a time writes a home, and says who it is (`C-HOME`).

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use klbr_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The name of the lock file within a home.
const NAME: &str = "lock";

/// The lock of a home, held until it is dropped or the process ends, however it ends.
///
/// The file stays where it is; what counts is the lock that the operating system keeps on it, so that a file
/// left behind by a killed process is in nobody's way.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
    holder: Holder,
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Closing the file gives the lock up only once no copy of it is open, and a child that is just being
        // started has one. A lock that cannot be given up goes with the last copy.
        let _ = self.file.unlock();
    }
}

/// Who holds a home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// When it took the lock.
    pub since: Timestamp,
    /// What it calls itself, such as `klbrd 0.1.0`.
    pub program: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}, since {})", self.program, self.pid, self.since)
    }
}

/// A home that could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error(
        "{} is in use by {}",
        home.display(),
        holder.as_ref().map_or("another process".into(), ToString::to_string)
    )]
    Held {
        /// The home.
        home: PathBuf,
        /// Who has it, as far as the lock file can be read.
        holder: Option<Holder>,
    },
    /// The lock file cannot be made, read or locked.
    #[error("{} could not be locked", path.display())]
    Unavailable {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl HomeLock {
    /// Takes the lock of the folder `home` for this process, which calls itself `program`. Never waits.
    ///
    /// # Errors
    ///
    /// Fails with [`LockError::Held`] when another process, or another lock of this one, has it.
    pub fn acquire(home: &Path, program: &str) -> Result<Self, LockError> {
        let path = home.join(NAME);
        let unavailable = |source| LockError::Unavailable { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(unavailable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { home: home.into(), holder: read(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(unavailable(error)),
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let holder = Holder {
            pid: std::process::id(),
            since: Timestamp(i64::try_from(since).unwrap_or(0)),
            program: program.to_owned(),
        };
        write(&mut file, &holder).map_err(unavailable)?;
        Ok(HomeLock { file, holder })
    }

    /// What this lock says about its holder.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn write(file: &mut File, holder: &Holder) -> std::io::Result<()> {
    let text = serde_json::to_string(holder)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_the_home() {
        let home = tempfile::tempdir().unwrap();
        let lock = HomeLock::acquire(home.path(), "klbrd 0.1.0").unwrap();
        let refused = HomeLock::acquire(home.path(), "klbr").unwrap_err();
        let LockError::Held { holder, .. } = &refused else { panic!("{refused}") };
        assert_eq!(holder.as_ref(), Some(lock.holder()));
        let said = refused.to_string();
        let process = format!("in use by klbrd 0.1.0 (process {}, since 20", std::process::id());
        assert!(said.contains(&process), "{said}");
        drop(lock);
        HomeLock::acquire(home.path(), "klbr").unwrap();
    }

    #[test]
    fn a_copy_of_the_file_in_a_child_that_is_being_started_keeps_no_lock() {
        let home = tempfile::tempdir().unwrap();
        let lock = HomeLock::acquire(home.path(), "klbrd").unwrap();
        let copy = lock.file.try_clone().unwrap();
        drop(lock);
        HomeLock::acquire(home.path(), "klbrd").unwrap();
        drop(copy);
    }

    #[test]
    fn a_file_that_was_left_behind_is_in_nobodys_way() {
        let home = tempfile::tempdir().unwrap();
        for left in ["", "not json", &"x".repeat(10_000), r#"{"pid":1,"since":0,"program":"gone"}"#] {
            std::fs::write(home.path().join(NAME), left).unwrap();
            let lock = HomeLock::acquire(home.path(), "klbr").unwrap();
            let refused = HomeLock::acquire(home.path(), "other").unwrap_err();
            assert!(refused.to_string().contains("in use by klbr (process"), "{refused}");
            drop(lock);
        }
        let absent = HomeLock::acquire(&home.path().join("absent"), "klbr").unwrap_err();
        assert!(matches!(absent, LockError::Unavailable { .. }), "{absent}");
    }
}
