//! What each operation needs, and what it answers when it may not be.

use klbr_core::context::paths::resolve;

use super::{Kind, Level, Tree, View, with_ancestors};

/// A refusal, in the words that the model reads; each names the absolute, resolved path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Missing, or hidden in a directory that can be seen.
    #[error("No such file or directory: {0}")]
    NotFound(String),
    /// A passage, something under one, or a name that something hidden has.
    #[error("Access denied: {0} is not open to this session.")]
    NotOpen(String),
    /// A change where only reading is allowed.
    #[error("Read-only: {0} can be read in this session but not changed.")]
    ReadOnly(String),
    /// A commit where only staging is allowed.
    #[error("Not committed: this session may change {0} but not commit it; the change stays staged.")]
    NotCommitted(String),
    /// A commit outside of every repository.
    #[error("Nothing to commit: {0} is not in a repository.")]
    NotInRepository(String),
    /// A directory where a file was meant.
    #[error("Is a directory: {0}")]
    IsDirectory(String),
    /// A file where a directory was meant.
    #[error("Not a directory: {0}")]
    NotDirectory(String),
    /// The target of a move, or a file where a directory was to be made.
    #[error("Already exists: {0}")]
    AlreadyExists(String),
    /// The removal or the move of a mounted repository itself.
    #[error("Not changed: {0} is a mounted repository; a session does not remove or move it.")]
    IsMount(String),
    /// A move into or out of a repository.
    #[error("Not moved: {0} is in another repository than its target, or only one of them is in one.")]
    AcrossMounts(String),
}

impl View {
    /// Whether a file may be read; answers the absolute path.
    ///
    /// # Errors
    ///
    /// [`Denied::NotFound`], [`Denied::NotOpen`], or [`Denied::IsDirectory`] where [`View::list`] is meant.
    pub fn read(&self, tree: &impl Tree, cwd: &str, path: &str) -> Result<String, Denied> {
        let path = resolve(cwd, path);
        match self.look(tree, &path)? {
            Kind::File => Ok(path),
            Kind::Dir | Kind::Mount => Err(Denied::IsDirectory(path)),
        }
    }

    /// Whether a file may be written, made anew with the directories above it if need be; answers the path.
    ///
    /// # Errors
    ///
    /// Fails when it may not be, or when a directory is there, or a file where a directory would have to be.
    pub fn write(&self, tree: &impl Tree, cwd: &str, path: &str) -> Result<String, Denied> {
        let path = resolve(cwd, path);
        match self.make(tree, &path)? {
            None | Some(Kind::File) => Ok(path),
            Some(Kind::Dir | Kind::Mount) => Err(Denied::IsDirectory(path)),
        }
    }

    /// Whether a directory may be made, with those above it if need be; one that is there is no error.
    ///
    /// # Errors
    ///
    /// Fails when it may not be, or when a file is there.
    pub fn mkdir(&self, tree: &impl Tree, cwd: &str, path: &str) -> Result<String, Denied> {
        let path = resolve(cwd, path);
        match self.make(tree, &path)? {
            None | Some(Kind::Dir | Kind::Mount) => Ok(path),
            Some(Kind::File) => Err(Denied::AlreadyExists(path)),
        }
    }

    /// Whether a file, or a directory with all that is in it, may be removed.
    ///
    /// # Errors
    ///
    /// Fails when it may not be, when it is a mount, or when something in it may not be changed.
    pub fn rm(&self, tree: &impl Tree, cwd: &str, path: &str) -> Result<String, Denied> {
        let path = resolve(cwd, path);
        self.take(tree, &path)?;
        Ok(path)
    }

    /// Whether something may be moved; answers both absolute paths.
    ///
    /// # Errors
    ///
    /// Fails when either end may not be changed, when the target is there, or across the edge of a mount.
    pub fn mv(&self, tree: &impl Tree, cwd: &str, from: &str, to: &str) -> Result<(String, String), Denied> {
        let (from, to) = (resolve(cwd, from), resolve(cwd, to));
        self.take(tree, &from)?;
        if self.make(tree, &to)?.is_some() {
            return Err(Denied::AlreadyExists(to));
        }
        if mount_of(tree, &from) != mount_of(tree, &to) {
            return Err(Denied::AcrossMounts(from));
        }
        Ok((from, to))
    }

    /// Whether what is at a path may be sent to the forge.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be seen, is in no repository, or may not be committed.
    pub fn commit(&self, tree: &impl Tree, cwd: &str, path: &str) -> Result<String, Denied> {
        let path = resolve(cwd, path);
        self.look(tree, &path)?;
        if mount_of(tree, &path).is_none() {
            return Err(Denied::NotInRepository(path));
        }
        match self.level(&path) {
            Level::Commit => Ok(path),
            Level::Stage => Err(Denied::NotCommitted(path)),
            Level::None | Level::Ro => Err(Denied::ReadOnly(path)),
        }
    }

    /// What is at a path, if the agent can see it.
    pub(super) fn look(&self, tree: &impl Tree, path: &str) -> Result<Kind, Denied> {
        match tree.kind(path) {
            Some(kind) if self.level(path) >= Level::Ro => Ok(kind),
            _ => Err(self.unseen(tree, path)),
        }
    }

    /// How a path that the agent cannot see is answered: by the nearest thing above it that it knows of.
    fn unseen(&self, tree: &impl Tree, path: &str) -> Denied {
        let visible = with_ancestors(path).find_map(|ancestor| {
            match (self.is_passage(ancestor), self.is_visible(tree, ancestor)) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            }
        });
        match visible {
            Some(true) => Denied::NotFound(path.to_owned()),
            Some(false) | None => Denied::NotOpen(path.to_owned()),
        }
    }

    /// What is at a path that may be made or changed; nothing when it is new.
    fn make(&self, tree: &impl Tree, path: &str) -> Result<Option<Kind>, Denied> {
        let kind = tree.kind(path);
        match self.level(path) {
            Level::None => {
                let is_taken = kind.is_some()
                    && with_ancestors(path).nth(1).is_some_and(|parent| self.is_visible(tree, parent));
                return Err(if is_taken {
                    Denied::NotOpen(path.to_owned())
                } else {
                    self.unseen(tree, path)
                });
            }
            Level::Ro => return Err(Denied::ReadOnly(path.to_owned())),
            Level::Stage | Level::Commit => {}
        }
        if kind.is_some() {
            return Ok(kind);
        }
        // The directories above that are missing are made too, and have to be allowed themselves.
        for ancestor in with_ancestors(path).skip(1) {
            match (tree.kind(ancestor), self.level(ancestor)) {
                (Some(Kind::File), Level::None) => return Err(Denied::NotOpen(path.to_owned())),
                (Some(Kind::File), _) => return Err(Denied::NotDirectory(ancestor.to_owned())),
                (Some(Kind::Dir | Kind::Mount), _) => break,
                (None, Level::Stage | Level::Commit) => {}
                (None, Level::Ro) => return Err(Denied::ReadOnly(ancestor.to_owned())),
                (None, Level::None) => return Err(Denied::NotOpen(path.to_owned())),
            }
        }
        Ok(None)
    }

    /// What is at a path that may be taken away, with all that is in it.
    fn take(&self, tree: &impl Tree, path: &str) -> Result<Kind, Denied> {
        let kind = self.look(tree, path)?;
        if self.level(path) < Level::Stage {
            return Err(Denied::ReadOnly(path.to_owned()));
        }
        if kind == Kind::Mount {
            return Err(Denied::IsMount(path.to_owned()));
        }
        let mut inside: Vec<String> = children(tree, path, kind);
        while let Some(child) = inside.pop() {
            let kind = tree.kind(&child);
            match self.level(&child) {
                // The hidden name is not told.
                Level::None => return Err(Denied::NotOpen(path.to_owned())),
                Level::Ro => return Err(Denied::ReadOnly(child)),
                Level::Stage | Level::Commit if kind == Some(Kind::Mount) => {
                    return Err(Denied::IsMount(child));
                }
                Level::Stage | Level::Commit => {}
            }
            inside.extend(children(tree, &child, kind.unwrap_or(Kind::File)));
        }
        Ok(kind)
    }
}

fn children(tree: &impl Tree, path: &str, kind: Kind) -> Vec<String> {
    match kind.is_dir() {
        true => tree.entries(path).iter().map(|name| resolve(path, name)).collect(),
        false => Vec::new(),
    }
}

/// The mount that a path is, or lies in.
fn mount_of<'p>(tree: &impl Tree, path: &'p str) -> Option<&'p str> {
    with_ancestors(path).find(|ancestor| tree.kind(ancestor) == Some(Kind::Mount))
}
