//! The home directory: where things are, and the small files that the daemon keeps there (`C-HOME`).

mod token;

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use klbr_core::ids::AgentName;
use sha2::{Digest as _, Sha256};

use crate::api::Address;
pub(crate) use token::random_hex;
pub use token::{Token, TokenError};

/// A home directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    dir: PathBuf,
}

impl Home {
    /// The home at `dir`. Touches nothing.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Home { dir: dir.into() }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The database of all its agents.
    pub fn database(&self) -> PathBuf {
        self.dir.join("klbr.db")
    }

    /// The file that its owner holds.
    pub fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// The operator's token.
    pub fn token(&self) -> PathBuf {
        self.dir.join("token")
    }

    /// What belongs to one agent; where its processes begin when it has no folder to work in.
    pub fn agent(&self, name: &AgentName) -> PathBuf {
        self.dir.join("agents").join(name.as_str())
    }

    /// What policy is made of: published trees and manifests, each under its content's hash.
    pub fn policy(&self) -> PathBuf {
        self.dir.join("policy")
    }

    /// What lives only as long as a daemon.
    pub fn run(&self) -> PathBuf {
        self.dir.join("run")
    }

    /// Where the daemon listens, while one does.
    pub fn address(&self) -> PathBuf {
        self.run().join("address.json")
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.run().join("klbrd.log")
    }

    /// Makes the directories that are missing, for their owner alone.
    ///
    /// # Errors
    ///
    /// Fails when they cannot be made.
    pub fn create(&self) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.run())
    }

    /// Where the daemon that holds this home listens; none when there is no such file, or no sense in it.
    pub fn read_address(&self) -> Option<Address> {
        serde_json::from_slice(&std::fs::read(self.address()).ok()?).ok()
    }

    pub(crate) fn write_address(&self, address: &Address) -> io::Result<()> {
        let text = serde_json::to_vec(address).map_err(io::Error::other)?;
        write_atomically(&self.address(), &text)
    }

    pub(crate) fn remove_address(&self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(self.address());
    }

    /// A name for this home that says nothing about where it is.
    pub(crate) fn fingerprint(&self) -> String {
        let path = std::fs::canonicalize(&self.dir).unwrap_or_else(|_| self.dir.clone());
        hex(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..8])
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes a file that only its owner may read; whoever reads it meanwhile sees the old or the new one.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
