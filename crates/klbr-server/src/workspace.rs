//! The folder that an agent works in, as its prompt tells it: where that is, and its instruction files.
//!
//! Owns reading them anew for each frame, so that a change on disk is a note there. Refuses files that are not the
//! folder's own, files of the home, and to hand an endless one on.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::context::paths::{env_lines, prompt_name};
use klbr_core::context::prefix::Facts;
use klbr_core::runtime::surroundings::Surroundings;
use klbr_workspace::instructions::{chain, name};

use crate::config::Config;

/// The most of one file that is told, in bytes.
const MOST: usize = 32 << 10;

/// How long the disk may take; what it told before is told again then.
const PATIENCE: Duration = Duration::from_secs(1);

/// The folder that an agent works in.
pub(crate) struct Workspace(Arc<Inner>);

struct Inner {
    /// Canonical.
    root: String,
    /// Canonical, the root or below it.
    start: String,
    /// The home, which holds the token; canonical.
    home: PathBuf,
    environment: String,
    /// The files as they were last read, under their names in the prompt.
    last: Mutex<Vec<(String, String)>>,
}

impl Workspace {
    /// The folder that a configuration names, if it names one. Blocks while the files are first read.
    ///
    /// # Errors
    ///
    /// Fails with the folder that is not there, or whose path is not UTF-8.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, (PathBuf, io::Error)> {
        let Some(workspace) = &config.workspace else { return Ok(None) };
        let (root, start) = (canonical(&workspace.root)?, canonical(&workspace.start)?);
        let mut lines = env_lines(&root, &start);
        if let Some(code) = &config.code {
            let code = canonical(&code.root)?;
            if code != root {
                let code = prompt_name(&root, None, &code);
                lines.push(format!(
                    "Code actions (code_…) take paths relative to {code}, not to the project root."
                ));
            }
        }
        let home = config.home.canonicalize().map_err(|error| (config.home.clone(), error))?;
        let inner = Inner { root, start, home, environment: lines.join("\n"), last: Mutex::default() };
        inner.read();
        Ok(Some(Workspace(Arc::new(inner))))
    }
}

fn canonical(path: &Path) -> Result<String, (PathBuf, io::Error)> {
    let failed = |error| (path.to_owned(), error);
    let path = path.canonicalize().map_err(failed)?.into_os_string().into_string();
    path.map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8")))
}

#[async_trait]
impl Surroundings for Workspace {
    async fn facts(&self) -> Facts {
        let inner = self.0.clone();
        let reading = tokio::task::spawn_blocking(move || inner.read());
        if tokio::time::timeout(PATIENCE, reading).await.is_err() {
            tracing::warn!(root = %self.0.root, "the instruction files are not read in time: told as they were");
        }
        Facts {
            environment: self.0.environment.clone(),
            instructions: self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..Facts::default()
        }
    }
}

impl Inner {
    /// Reads the files as they are now. While the folder itself cannot be reached they stay as they were.
    fn read(&self) {
        if !Path::new(&self.root).is_dir() {
            return;
        }
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut files = Vec::new();
        for path in chain(&self.root, &self.start, |file| self.is_own(file)) {
            let name = name(&self.root, &path);
            let text = match told(Path::new(&path)) {
                Ok(text) => text,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
                {
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%path, %error, "an instruction file cannot be read: it is told as it was");
                    let known = before.iter().find(|(known, _)| *known == name);
                    known.map(|(_, text)| text.clone()).unwrap_or_default()
                }
            };
            if !text.trim().is_empty() {
                files.push((name, text));
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Whether a file really is one within the folder: a link to elsewhere is not read.
    fn is_own(&self, file: &str) -> bool {
        let is_within = |real: PathBuf| real.starts_with(&self.root) && !real.starts_with(&self.home);
        fs::canonicalize(file).is_ok_and(is_within)
            && fs::metadata(file).is_ok_and(|metadata| metadata.is_file())
    }
}

/// A file as it is told: text, without a byte order mark, and not more than [`MOST`] of it.
fn told(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    file.take(MOST as u64 + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > MOST;
    // A character that the cut goes through is left out.
    let mut end = bytes.len().min(MOST);
    while is_cut && end > MOST - 4 && (bytes[end] & 0xC0) == 0x80 {
        end -= 1;
    }
    let text = String::from_utf8_lossy(&bytes[..end]);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    Ok(if is_cut { format!("{text}\n[cut here: the file has {size} bytes]") } else { text })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::{CodeConfig, WorkspaceConfig};

    /// A folder with a home beside it.
    fn world() -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        for path in ["home", "app/packages/web", "app/packages/lib"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let mut config = Config::new(folder.path().join("home"));
        let root = folder.path().join("app");
        config.workspace = Some(WorkspaceConfig { start: root.join("packages/web"), root });
        (folder, config)
    }

    fn names(workspace: &Workspace) -> Vec<String> {
        workspace.0.read();
        workspace.0.last.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    #[tokio::test]
    async fn files_are_stacked_under_their_names_and_no_path_of_the_machine_is_told() {
        let (folder, mut config) = world();
        let app = folder.path().join("app");
        fs::write(app.join("AGENTS.md"), "\u{feff}Use tabs.\r\n").unwrap();
        fs::write(app.join("CLAUDE.md"), "never both").unwrap();
        fs::write(app.join("packages/CLAUDE.md"), b"caf\xff").unwrap();
        fs::write(app.join("packages/web/AGENTS.md"), "é".repeat(20 << 10)).unwrap();
        fs::write(app.join("packages/lib/AGENTS.md"), "of a sibling").unwrap();
        config.code = Some(CodeConfig { root: app.join("packages/lib"), write: false });
        let facts = Workspace::of(&config).unwrap().unwrap().facts().await;
        let names: Vec<&str> = facts.instructions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["AGENTS.md", "packages/CLAUDE.md", "packages/web/AGENTS.md"]);
        assert_eq!((&*facts.instructions[0].1, &*facts.instructions[1].1), ("Use tabs.\r\n", "caf\u{fffd}"));
        let long = &facts.instructions[2].1;
        assert!(long.ends_with("é\n[cut here: the file has 40960 bytes]"), "{}", &long[long.len() - 60..]);
        assert!(!long.contains('\u{fffd}'));
        assert_eq!(
            facts.environment,
            "Project: app (paths are relative to its root)\nStarted in: packages/web (relative to the project \
             root)\nCode actions (code_…) take paths relative to packages/lib, not to the project root."
        );
    }

    #[test]
    fn only_real_files_of_the_folder_are_read_and_never_the_homes() {
        let (folder, mut config) = world();
        let app = folder.path().join("app");
        let workspace = Workspace::of(&config).unwrap().unwrap();
        assert_eq!(names(&workspace), [""; 0]);
        fs::write(folder.path().join("elsewhere.md"), "not theirs").unwrap();
        symlink(folder.path().join("elsewhere.md"), app.join("AGENTS.md")).unwrap();
        fs::create_dir(app.join("packages/AGENTS.md")).unwrap();
        fs::write(app.join("packages/rules.md"), "theirs").unwrap();
        symlink("../rules.md", app.join("packages/web/AGENTS.md")).unwrap();
        assert_eq!(names(&workspace), ["packages/web/AGENTS.md"]);
        fs::write(app.join("packages/rules.md"), " \n").unwrap();
        assert_eq!(names(&workspace), [""; 0], "a blank file says nothing");
        fs::write(app.join("packages/rules.md"), "theirs").unwrap();
        // A folder that cannot be reached for a while has not changed.
        names(&workspace);
        fs::rename(&app, folder.path().join("away")).unwrap();
        assert_eq!(names(&workspace), ["packages/web/AGENTS.md"]);
        fs::rename(folder.path().join("away"), &app).unwrap();

        config.home = app.join("packages/web");
        assert_eq!(
            names(&Workspace::of(&config).unwrap().unwrap()),
            ["packages/web/AGENTS.md"],
            "it lies outside"
        );
        fs::remove_file(app.join("packages/web/AGENTS.md")).unwrap();
        fs::write(app.join("packages/web/AGENTS.md"), "of the home").unwrap();
        assert_eq!(names(&Workspace::of(&config).unwrap().unwrap()), [""; 0]);
    }
}
