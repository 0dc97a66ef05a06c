//! What is logged, and where to: stderr, and a bounded file in the home.
//!
//! People's text and secrets are never logged at level `info` or above. A library installs nothing; a
//! program makes this subscriber its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::{Registry, fmt};

/// How large the log file gets before it is begun anew; the one before it is kept.
const BOUND: u64 = 4 * 1024 * 1024;

/// Reads a filter such as `info` or `klbr_server=debug,warn`; `info` when it is empty.
///
/// # Errors
///
/// Fails when it is none.
pub fn filter(text: &str) -> Result<Targets, ParseError> {
    match text.trim() {
        "" => Ok(Targets::new().with_default(LevelFilter::INFO)),
        text => text.parse(),
    }
}

/// A subscriber that writes to stderr and, if there is one, to the file.
pub fn subscriber(filter: Targets, file: Option<LogFile>) -> impl Subscriber + Send + Sync {
    let to_stderr = fmt::layer().with_ansi(false).with_writer(io::stderr);
    let to_file = file
        .map(|file| fmt::layer().with_ansi(false).with_writer(file.with_max_level(tracing::Level::TRACE)));
    Registry::default().with(to_stderr.and_then(to_file).with_filter(filter))
}

/// A file that is begun anew when it has grown to 4 MiB.
pub struct LogFile(Mutex<Open>);

struct Open {
    path: PathBuf,
    file: File,
    length: u64,
}

impl LogFile {
    /// Opens the file for appending.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be made or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(LogFile(Mutex::new(Open { path: path.into(), file, length })))
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = &'a LogFile;

    fn make_writer(&'a self) -> &'a LogFile {
        self
    }
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.length > BOUND {
            std::fs::rename(&open.path, open.path.with_extension("log.1"))?;
            open.file = OpenOptions::new().append(true).create(true).open(&open.path)?;
            open.length = 0;
        }
        let written = open.file.write(bytes)?;
        open.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_begun_anew_when_it_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("klbrd.log");
        let log = LogFile::open(&path).unwrap();
        let line = vec![b'x'; 1024 * 1024];
        for _ in 0..7 {
            (&log).write_all(&line).unwrap();
        }
        let length = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().len();
        assert_eq!(length("klbrd.log.1"), 5 * 1024 * 1024);
        assert_eq!(length("klbrd.log"), 2 * 1024 * 1024);
    }

    #[test]
    fn filters_are_read_or_refused() {
        assert!(filter("").is_ok() && filter("klbr_server=debug,warn").is_ok());
        assert!(filter("klbr_server=loud").is_err());
    }
}
