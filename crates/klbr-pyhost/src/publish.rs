//! Published trees: a copy of a source folder under the home, named by its content. What runs is the copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use klbr_core::hash::Hash;

use crate::files::Scratch;

/// Published trees of a home: `<home>/policy/<hash>/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trees {
    folder: PathBuf,
}

/// The most that one tree may hold.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 256 << 20;

/// Why a tree was not published, or is not what its name says.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it cannot be published.
    #[error("{path}: {reason}")]
    Unfit {
        /// What.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// No tree of this hash was published.
    #[error("no tree {0} was published here")]
    Missing(Hash),
    /// What stands under the hash has another content.
    #[error("the tree {expected} was changed after it was published; it is {found} now")]
    Changed {
        /// Its name.
        expected: Hash,
        /// What it is.
        found: Hash,
    },
}

impl Trees {
    /// The trees of a home.
    pub fn new(home: &Path) -> Self {
        Trees { folder: home.join("policy") }
    }

    /// Where a tree stands, if it was published.
    pub fn path(&self, tree: Hash) -> PathBuf {
        self.folder.join(tree.to_string())
    }

    /// Copies a source folder under its content's hash: whole or not at all, synced before it has its name.
    ///
    /// Bytecode, hidden files and folders are left out.
    ///
    /// # Errors
    ///
    /// Fails on links and special files, on names that are not UTF-8, on too much, and as the disk fails.
    pub fn publish(&self, source: &Path) -> Result<Hash, TreeError> {
        let files = list(source)?;
        let hash = hash(&files);
        if self.verify(hash).is_ok() {
            return Ok(hash);
        }
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| TreeError::Io { path, source }
        };
        fs::create_dir_all(&self.folder).map_err(at(&self.folder))?;
        let made = Scratch::new(&self.folder).map_err(at(&self.folder))?;
        for (name, content) in &files {
            let path = made.path().join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(at(parent))?;
            }
            write_synced(&path, content).map_err(at(&path))?;
        }
        made.keep_as(&self.path(hash)).map_err(at(&self.folder))?;
        Ok(hash)
    }

    /// Checks that a tree is there and unchanged.
    ///
    /// # Errors
    ///
    /// Fails when it is not.
    pub fn verify(&self, tree: Hash) -> Result<PathBuf, TreeError> {
        let path = self.path(tree);
        if !path.is_dir() {
            return Err(TreeError::Missing(tree));
        }
        match hash(&list(&path)?) {
            found if found == tree => Ok(path),
            found => Err(TreeError::Changed { expected: tree, found }),
        }
    }
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let mut file = fs::File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The files below a folder by their name there, sorted.
fn list(root: &Path) -> Result<Vec<(String, Vec<u8>)>, TreeError> {
    let mut files = Vec::new();
    let mut bytes = 0;
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = |source| TreeError::Io { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let unfit = |reason| TreeError::Unfit { path: path.clone(), reason };
            let name = entry.file_name().into_string().map_err(|_| unfit("its name is not UTF-8"))?;
            if name.starts_with('.') || name == "__pycache__" || name.ends_with(".pyc") {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                let content =
                    fs::read(&path).map_err(|source| TreeError::Io { path: path.clone(), source })?;
                bytes += content.len() as u64;
                if files.len() >= MAX_FILES || bytes > MAX_BYTES {
                    return Err(unfit("the tree is too large: 10,000 files and 256 MiB at most"));
                }
                let inside = path.strip_prefix(root).expect("it was found below the root");
                files.push((inside.to_string_lossy().into_owned(), content));
            } else {
                return Err(unfit("only plain files are published: a link could lead anywhere"));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn hash(files: &[(String, Vec<u8>)]) -> Hash {
    let mut all = b"klbr tree 1\n".to_vec();
    for (name, content) in files {
        all.extend((name.len() as u64).to_be_bytes());
        all.extend(name.as_bytes());
        all.extend(Hash::of(content).0);
    }
    Hash::of(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_named_by_its_content_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let source = tempfile::tempdir().unwrap();
        fs::create_dir_all(source.path().join("p/__pycache__")).unwrap();
        fs::write(source.path().join("p/__init__.py"), "x = 1\n").unwrap();
        fs::write(source.path().join("p/__pycache__/a.pyc"), "y").unwrap();
        let trees = Trees::new(home.path());
        let first = trees.publish(source.path()).unwrap();
        assert_eq!(trees.publish(source.path()).unwrap(), first);
        assert!(!trees.path(first).join("p/__pycache__").exists());

        fs::write(source.path().join("p/__init__.py"), "x = 2\n").unwrap();
        assert_eq!(fs::read_to_string(trees.path(first).join("p/__init__.py")).unwrap(), "x = 1\n");
        let second = trees.publish(source.path()).unwrap();
        assert_ne!(first, second);
        trees.verify(first).unwrap();
        let left: Vec<_> = fs::read_dir(home.path().join("policy")).unwrap().collect();
        assert_eq!(left.len(), 2);
    }

    #[test]
    fn a_changed_tree_is_refused_and_published_anew() {
        let home = tempfile::tempdir().unwrap();
        let source = tempfile::tempdir().unwrap();
        fs::write(source.path().join("p.py"), "x = 1\n").unwrap();
        let trees = Trees::new(home.path());
        let tree = trees.publish(source.path()).unwrap();
        fs::write(trees.path(tree).join("p.py"), "x = 2\n").unwrap();
        assert!(matches!(trees.verify(tree), Err(TreeError::Changed { .. })));
        assert_eq!(trees.publish(source.path()).unwrap(), tree);
        trees.verify(tree).unwrap();
    }

    #[test]
    fn a_link_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let source = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", source.path().join("p.py")).unwrap();
        assert!(matches!(Trees::new(home.path()).publish(source.path()), Err(TreeError::Unfit { .. })));
    }
}
