//! Manifests by content: `<home>/policy/<hash>.json`, beside the published trees. What the records of an agent name is
//! found here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use klbr_core::hash::Hash;

use super::Manifest;
use crate::files::{self, Lasting};

/// The manifests of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifests {
    folder: PathBuf,
}

/// Why a manifest was not kept, or cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The file could not be read or written.
    #[error("{}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What names it is no hash.
    #[error("{0:?} names no manifest")]
    NoHash(String),
    /// The file has another content than its name says, or one that this build does not read.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Manifests {
    /// The manifests of a home.
    pub fn new(home: &Path) -> Self {
        Manifests { folder: home.join("policy") }
    }

    /// Where a manifest stands, if it was kept.
    pub fn path(&self, hash: Hash) -> PathBuf {
        self.folder.join(format!("{hash}.json"))
    }

    /// Keeps a manifest under its content's hash. When this returns, it survives a power cut. Blocks.
    ///
    /// # Errors
    ///
    /// Fails as the disk fails; nothing of it is kept then.
    pub fn keep(&self, manifest: &Manifest) -> Result<Hash, KeptError> {
        let bytes = manifest.to_bytes();
        let hash = Hash::of(&bytes);
        let path = self.path(hash);
        match files::write_whole(&path, &bytes, Lasting::Synced) {
            Ok(()) => Ok(hash),
            Err(source) => Err(KeptError::Io { path, source }),
        }
    }

    /// Reads the manifest that this names. Blocks.
    ///
    /// # Errors
    ///
    /// Fails when it is not there, or is not what its name says.
    pub fn read(&self, name: &str) -> Result<Manifest, KeptError> {
        let hash: Hash = name.parse().map_err(|_| KeptError::NoHash(name.to_owned()))?;
        let path = self.path(hash);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(KeptError::Io { path, source }),
        };
        let damaged = |why: String| KeptError::Damaged { path: path.clone(), why };
        if Hash::of(&bytes) != hash {
            return Err(damaged("its content has another hash".to_owned()));
        }
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_found_by_its_content_and_a_changed_one_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let manifests = Manifests::new(home.path());
        let manifest = Manifest { soul: Some("You are Ada.".into()), ..Manifest::default() };
        let hash = manifests.keep(&manifest).unwrap();
        assert_eq!(manifests.keep(&manifest).unwrap(), hash);
        assert_eq!(manifests.read(&hash.to_string()).unwrap(), manifest);
        fs::write(manifests.path(hash), "{}").unwrap();
        assert!(matches!(manifests.read(&hash.to_string()), Err(KeptError::Damaged { .. })));
        assert!(matches!(manifests.read("../../token"), Err(KeptError::NoHash(_))));
        assert!(matches!(manifests.read(&Hash::of(b"x").to_string()), Err(KeptError::Io { .. })));
        assert_eq!(fs::read_dir(home.path().join("policy")).unwrap().count(), 1);
    }
}
