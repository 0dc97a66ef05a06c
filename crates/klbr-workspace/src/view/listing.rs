//! How a directory is listed.

use klbr_core::context::paths::resolve;

use super::{Denied, Kind, Level, Tree, View};

/// The most lines of a listing.
const MAX_LINES: usize = 400;
/// The deepest that a listing goes.
const MAX_DEPTH: u32 = 6;
const MORE: &str = "(more entries — list a directory further down)";

impl View {
    /// The entries of a directory that the agent sees, as it reads them: directories first, then by name; a
    /// directory with `/`, a mount with ` [mount]`, and what it may not change in a directory that it may with
    /// ` [read-only]`.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be seen, or is a file.
    pub fn list(&self, tree: &impl Tree, cwd: &str, path: &str) -> Result<Vec<String>, Denied> {
        let path = resolve(cwd, path);
        self.look_in(tree, &path)?;
        Ok(self.entries(tree, &path).into_iter().map(|entry| entry.line).collect())
    }

    /// A directory and those in it as a tree, `depth` levels in all (1 to 6), each two spaces further in; at most
    /// 400 lines, then a line that says that there are more.
    ///
    /// # Errors
    ///
    /// As [`View::list`].
    pub fn list_tree(
        &self,
        tree: &impl Tree,
        cwd: &str,
        path: &str,
        depth: u32,
    ) -> Result<Vec<String>, Denied> {
        let path = resolve(cwd, path);
        self.look_in(tree, &path)?;
        let depth = depth.clamp(1, MAX_DEPTH);
        let mut lines = Vec::new();
        // A stack of what is still to be written; the next entry is the last.
        let mut waiting: Vec<(u32, Entry)> =
            self.entries(tree, &path).into_iter().rev().map(|e| (0, e)).collect();
        while let Some((level, entry)) = waiting.pop() {
            if lines.len() == MAX_LINES {
                lines.push(MORE.to_owned());
                break;
            }
            lines.push(format!("{}{}", "  ".repeat(level as usize), entry.line));
            if entry.is_dir && level + 1 < depth {
                let inner = self.entries(tree, &entry.path).into_iter().rev();
                waiting.extend(inner.map(|entry| (level + 1, entry)));
            }
        }
        Ok(lines)
    }

    fn look_in(&self, tree: &impl Tree, path: &str) -> Result<(), Denied> {
        match self.look(tree, path)? {
            Kind::Dir | Kind::Mount => Ok(()),
            Kind::File => Err(Denied::NotDirectory(path.to_owned())),
        }
    }

    fn entries(&self, tree: &impl Tree, directory: &str) -> Vec<Entry> {
        let is_writable = self.level(directory) >= Level::Stage;
        let mut entries: Vec<Entry> = Vec::new();
        for name in tree.entries(directory) {
            let path = resolve(directory, &name);
            let (level, Some(kind)) = (self.level(&path), tree.kind(&path)) else { continue };
            if level < Level::Ro {
                continue;
            }
            let mut line = name.clone();
            match kind {
                Kind::File => {}
                Kind::Dir => line.push('/'),
                Kind::Mount => line.push_str("/ [mount]"),
            }
            if is_writable && level == Level::Ro {
                line.push_str(" [read-only]");
            }
            entries.push(Entry { is_dir: kind.is_dir(), name, path, line });
        }
        entries.sort_by(|a, b| b.is_dir.cmp(&a.is_dir).then_with(|| a.name.cmp(&b.name)));
        entries
    }
}

struct Entry {
    is_dir: bool,
    name: String,
    path: String,
    line: String,
}
