//! The file system as one agent sees it: levels, passages, and what each operation answers.
//!
//! Owns the decision and the words of every refusal. Refuses to touch a disk: the caller describes the tree, and
//! carries out what was allowed. A path that the agent cannot see is answered by what it already knows, so that
//! a hidden entry and a missing one read the same.

mod listing;
mod operations;

use std::collections::BTreeMap;

use klbr_core::context::paths::{below, resolve};
use serde::{Deserialize, Serialize};

pub use operations::Denied;

/// How much an agent may do at a path. Ordered: each level allows what the one before does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing: the path does not exist for the agent.
    #[default]
    None,
    /// Reading.
    Ro,
    /// Reading and changing; in a repository the change is staged.
    Stage,
    /// Also sending a change to the forge.
    Commit,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Bytes.
    File,
    /// A directory.
    Dir,
    /// A directory that is a repository on a forge.
    Mount,
}

impl Kind {
    /// Whether it has entries.
    pub fn is_dir(self) -> bool {
        match self {
            Kind::File => false,
            Kind::Dir | Kind::Mount => true,
        }
    }
}

/// What is there, whoever looks.
pub trait Tree {
    /// What an absolute, resolved path is; nothing when it is missing.
    fn kind(&self, path: &str) -> Option<Kind>;

    /// The names in a directory, in any order; none when it is missing or a file.
    fn entries(&self, directory: &str) -> Vec<String>;
}

/// What an agent may see and change: grants, and the most that a grant may amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    grants: BTreeMap<String, Level>,
    floor: BTreeMap<String, Level>,
}

impl View {
    /// A view that sees nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Grants a level at a path and below; the most specific grant wins.
    #[must_use]
    pub fn grant(mut self, path: &str, level: Level) -> Self {
        self.grants.insert(resolve("/", path), level);
        self
    }

    /// Sets the most that any grant amounts to at a path and below; the most specific one applies.
    #[must_use]
    pub fn floor(mut self, path: &str, most: Level) -> Self {
        self.floor.insert(resolve("/", path), most);
        self
    }

    /// The level at an absolute, resolved path: the grant's, lowered to the floor.
    pub fn level(&self, path: &str) -> Level {
        let granted = most_specific(&self.grants, path).unwrap_or(Level::None);
        most_specific(&self.floor, path).map_or(granted, |most| granted.min(most))
    }

    /// Whether a path is at none, with something granted below it.
    pub fn is_passage(&self, path: &str) -> bool {
        let mut changes = self.grants.keys().chain(self.floor.keys());
        self.level(path) == Level::None
            && changes
                .any(|other| other != path && below(path, other).is_some() && self.level(other) >= Level::Ro)
    }

    /// The granted paths with their levels, as an agent is told them; those at none are left out.
    pub fn granted(&self) -> impl Iterator<Item = (&str, Level)> {
        let levels = self.grants.keys().map(|path| (path.as_str(), self.level(path)));
        levels.filter(|(_, level)| *level >= Level::Ro)
    }

    fn is_visible(&self, tree: &impl Tree, path: &str) -> bool {
        self.level(path) >= Level::Ro && tree.kind(path).is_some()
    }
}

fn most_specific(levels: &BTreeMap<String, Level>, path: &str) -> Option<Level> {
    with_ancestors(path).find_map(|path| levels.get(path)).copied()
}

/// A resolved path, then the directories above it, innermost first, `/` last.
pub(crate) fn with_ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match path.rsplit_once('/') {
        Some(("", "")) | None => None,
        Some(("", _)) => Some("/"),
        Some((parent, _)) => Some(parent),
    })
}

/// A tree that is all in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTree {
    kinds: BTreeMap<String, Kind>,
}

impl MemoryTree {
    /// An empty tree: the root alone.
    pub fn new() -> Self {
        MemoryTree { kinds: BTreeMap::from([("/".to_owned(), Kind::Dir)]) }
    }

    /// Adds what is at a path; the directories above it are implied.
    #[must_use]
    pub fn with(mut self, path: &str, kind: Kind) -> Self {
        let path = resolve("/", path);
        for parent in with_ancestors(&path).skip(1) {
            self.kinds.entry(parent.to_owned()).or_insert(Kind::Dir);
        }
        self.kinds.insert(path, kind);
        self
    }
}

impl Tree for MemoryTree {
    fn kind(&self, path: &str) -> Option<Kind> {
        self.kinds.get(path).copied()
    }

    fn entries(&self, directory: &str) -> Vec<String> {
        let names = self.kinds.keys().filter_map(|path| below(directory, path));
        names.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }
}
