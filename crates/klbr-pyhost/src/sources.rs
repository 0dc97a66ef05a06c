//! The Python package, carried inside the binary and put on disk by content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use klbr_core::hash::Hash;

use crate::files;

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../python/klbr/", $name)))),*]
    };
}

/// Every file of the package, by its path in it.
const FILES: &[(&str, &str)] = sources![
    "__init__.py",
    "_answers.py",
    "_functions.py",
    "_link.py",
    "_log.py",
    "_protocol.py",
    "_types.py",
    "hooks.py",
    "policy/__init__.py",
    "policy/attention.py",
    "policy/context.py",
    "policy/model.py",
    "policy/social.py",
    "py.typed",
    "workbench.py",
    "worker.py",
];

/// The Python package `klbr`, as this build knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources;

impl Sources {
    /// The hash over all its files.
    pub fn hash(self) -> Hash {
        let mut all = Vec::new();
        for (name, text) in FILES {
            all.extend((name.len() as u64).to_be_bytes());
            all.extend(name.as_bytes());
            all.extend((text.len() as u64).to_be_bytes());
            all.extend(text.as_bytes());
        }
        Hash::of(&all)
    }

    /// The files, by their path in the package.
    pub fn files(self) -> &'static [(&'static str, &'static str)] {
        FILES
    }

    /// Where under `folder` it is put: a folder of its own that its hash names.
    pub fn place(self, folder: &Path) -> PathBuf {
        folder.join(&self.hash().to_string()[..16])
    }

    /// Puts the package under `folder`, in a folder of its own that its hash names, and answers with that. What stands
    /// there already is kept if it is whole.
    ///
    /// # Errors
    ///
    /// Fails when the folder cannot be written.
    pub fn install(self, folder: &Path) -> io::Result<PathBuf> {
        let target = self.place(folder);
        let is_whole = FILES.iter().all(|(name, text)| {
            fs::read(target.join("klbr").join(name)).is_ok_and(|found| found == text.as_bytes())
        });
        if is_whole {
            return Ok(target);
        }
        fs::create_dir_all(folder)?;
        let made = files::Scratch::new(folder)?;
        for (name, text) in FILES {
            let path = made.path().join("klbr").join(name);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(path, text)?;
        }
        made.keep_as(&target)?;
        Ok(target)
    }
}
