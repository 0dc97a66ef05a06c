//! The disk as a view is asked about it, links followed.

use std::fs;
use std::path::{Path, PathBuf};

use klbr_core::context::paths::below;

use super::Code;
use crate::view::{Denied, Kind, Level, Tree};

/// The machine's own tree.
struct Disk;

impl Tree for Disk {
    fn kind(&self, path: &str) -> Option<Kind> {
        let metadata = fs::metadata(path).ok()?;
        Some(if metadata.is_dir() { Kind::Dir } else { Kind::File })
    }

    fn entries(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// Something that an agent may look at.
pub(super) struct Place {
    /// Where it really is.
    pub(super) real: PathBuf,
    /// How the agent calls it: relative to the root.
    pub(super) name: String,
    pub(super) is_folder: bool,
}

impl Code {
    /// What a path of the agent's means, if it may look at it.
    pub(super) fn look(&self, path: &str) -> Result<Place, Denied> {
        let (seen, is_folder) = match self.0.view.read(&Disk, &self.0.root, path) {
            Ok(path) => (path, false),
            Err(Denied::IsDirectory(path)) => (path, true),
            Err(denied) => return Err(denied),
        };
        self.place(seen, is_folder, Level::Ro)
    }

    /// A file that the agent may change.
    pub(super) fn change(&self, path: &str) -> Result<Place, Denied> {
        // What is to be changed has to be there: a missing file is answered as for a reader.
        let seen = self.0.view.read(&Disk, &self.0.root, path)?;
        self.0.view.write(&Disk, &self.0.root, path)?;
        self.place(seen, false, Level::Stage)
    }

    /// A link is only as open as what it leads to.
    fn place(&self, seen: String, is_folder: bool, least: Level) -> Result<Place, Denied> {
        let real = fs::canonicalize(&seen).map_err(|_| Denied::NotFound(seen.clone()))?;
        match real.to_str().map(|real| self.0.view.level(real)) {
            Some(level) if level >= least => {}
            Some(Level::Ro) => return Err(Denied::ReadOnly(seen)),
            _ => return Err(Denied::NotOpen(seen)),
        }
        let name = below(&self.0.root, &seen).filter(|name| !name.is_empty()).unwrap_or(".").to_owned();
        Ok(Place { real, name, is_folder })
    }

    /// Whether a file below a place may be looked at.
    pub(super) fn admits(&self, place: &Place, below: &Path) -> bool {
        let real = if place.is_folder { place.real.join(below) } else { place.real.clone() };
        real.to_str().is_some_and(|real| self.0.view.level(real) >= Level::Ro)
    }
}

impl Place {
    /// How the agent calls a file below it.
    pub(super) fn called(&self, below: &Path) -> String {
        match (self.is_folder, self.name.as_str()) {
            (false, name) => name.to_owned(),
            (true, ".") => below.display().to_string(),
            (true, name) => format!("{name}/{}", below.display()),
        }
    }
}
