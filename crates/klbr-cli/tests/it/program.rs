//! The program in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A home of a test's own, and the program on it.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Home { folder: tempfile::tempdir().unwrap() }
    }

    /// A home that asks a model's server, and no other.
    pub(crate) fn asking(base_url: &str) -> Self {
        let home = Home::new();
        std::fs::create_dir(home.path()).unwrap();
        std::fs::write(home.path().join("klbr.toml"), format!("[model]\nbase_url = {base_url:?}\n")).unwrap();
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, told of this home and of nothing else.
    pub(crate) fn klbr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_klbr"));
        command.args(arguments).env_clear().env("KLBR_HOME", self.path()).env("HOME", self.folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.klbr(arguments).output().unwrap())
    }

    /// Runs it with this on its standard input.
    pub(crate) fn pipe(&self, arguments: &[&str], input: &str) -> Ended {
        use std::io::Write as _;
        let mut child = self.klbr(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        ended(child.wait_with_output().unwrap())
    }

    /// Runs it, and fails the test unless it went well.
    #[track_caller]
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        ended.out
    }

    /// Starts the daemon, and returns when it listens.
    pub(crate) fn daemon(&self) -> Daemon {
        let child = self.klbr(&["run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let daemon = Daemon(child);
        await_that("the daemon", || self.run(&["status"]).out.contains("lives"));
        daemon
    }
}

pub(crate) struct Daemon(pub(crate) Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ended(output: Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Looks again until something is so; a watchdog ends it.
#[track_caller]
pub(crate) fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every file below a folder with its bytes, to see that nothing changed.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push((path.clone(), std::fs::read(&path).unwrap()))
            }
        }
    }
    found.sort();
    found
}
