//! A tree of processes that is hard to kill, and the judge that says who of it still lives.
//!
//! Owns the program `proc-tree` and the reading of what it wrote. Refuses to kill anything: that is the product's part.
//!
//! ```text
//! proc-tree --pids FILE [--children N] [--grandchildren N] [--ignore-term] [--new-session] [--orphans N] [--seconds S]
//! ```
//!
//! starts N children with N grandchildren each, and sleeps. With `--ignore-term` the root and every second process
//! below it ignore SIGTERM; with `--new-session` the last child leads a session of its own; `--orphans` are started by
//! a process that ends at once, so that their parent is not of the tree (they stay in the root's process group). Each
//! process appends `ROLE PID STARTED` to the file once it is as it shall be; after the last one the root appends
//! `ready` and prints `{"ready":"proc-tree","pid":…}`. Left alone, all end after S seconds (120 by default).

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock::Stamp;

/// One process, told apart from a later one with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it is in the tree: `root`, `child`, `grandchild` or `orphan`.
    pub role: String,
    /// Its process id.
    pub pid: u32,
    /// When the kernel started it, in ticks since boot; 0 where there is no `/proc`.
    pub started: u64,
}

/// Reads the file of a tree; nothing until the tree is complete.
pub fn read(file: &Path) -> Option<Vec<Member>> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().any(|line| line == "ready").then(|| members(&text))
}

fn members(text: &str) -> Vec<Member> {
    let member = |line: &str| {
        let mut words = line.split(' ');
        Some(Member {
            role: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            started: words.next()?.parse().ok()?,
        })
    };
    text.lines().filter_map(member).collect()
}

/// Those that still live. A process that has ended and was not yet waited for does not.
pub fn alive(members: &[Member]) -> Vec<Member> {
    members.iter().filter(|member| started(member.pid) == Some(member.started)).cloned().collect()
}

/// Waits until a tree is complete.
///
/// # Errors
/// Says so when the watchdog rings first.
pub async fn grown(file: &Path, watchdog: Duration) -> Result<Vec<Member>, String> {
    let until = Instant::now() + watchdog;
    loop {
        let complete = read(file).filter(|members| alive(members).len() == members.len());
        match complete {
            Some(members) => return Ok(members),
            None if Instant::now() > until => return Err(format!("{} is not complete", file.display())),
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Blocks until none of them lives; the moment in which the last was seen to be gone.
///
/// # Errors
/// Those that still live when the watchdog rings.
pub fn gone(members: &[Member], watchdog: Duration) -> Result<Stamp, Vec<Member>> {
    let until = Instant::now() + watchdog;
    loop {
        let left = alive(members);
        if left.is_empty() {
            return Ok(Stamp::now());
        }
        if Instant::now() > until {
            return Err(left);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// When a living process was started; nothing if there is none with this id.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may contain anything, also `)`.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(started)
}

/// Whether there is a process with this id; without `/proc` a later one with the same id is taken for it.
#[cfg(not(target_os = "linux"))]
fn started(pid: u32) -> Option<u64> {
    let pid = rustix::process::Pid::from_raw(pid as i32)?;
    rustix::process::test_kill_process(pid).is_ok().then_some(0)
}

/// The shape of a tree.
#[derive(Clone, Debug)]
pub struct Shape {
    pids: PathBuf,
    role: String,
    children: usize,
    grandchildren: usize,
    orphans: usize,
    ignore_term: Disposition,
    new_session: Session,
    seconds: u64,
}

/// What a process does on SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disposition {
    Ends,
    Ignores,
}

/// The session of the last child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    Inherited,
    Own,
}

impl Shape {
    /// Reads the command line, without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Shape, String> {
        let mut shape = Shape {
            pids: PathBuf::new(),
            role: "root".into(),
            children: 0,
            grandchildren: 0,
            orphans: 0,
            ignore_term: Disposition::Ends,
            new_session: Session::Inherited,
            seconds: 120,
        };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--ignore-term" => shape.ignore_term = Disposition::Ignores,
                "--new-session" => shape.new_session = Session::Own,
                _ => {
                    let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
                    let count = || value.parse().map_err(|_| format!("{name}: {value:?} is no count"));
                    match name.as_str() {
                        "--pids" => shape.pids = value.into(),
                        "--role" => shape.role = value,
                        "--children" => shape.children = count()?,
                        "--grandchildren" => shape.grandchildren = count()?,
                        "--orphans" => shape.orphans = count()?,
                        "--seconds" => shape.seconds = count()? as u64,
                        _ => return Err(format!("unknown option {name}")),
                    }
                }
            }
        }
        if shape.pids.as_os_str().is_empty() {
            return Err("--pids FILE is needed".into());
        }
        Ok(shape)
    }

    /// Becomes a member of the tree; the root first starts the rest. Returns when its time is over.
    pub async fn grow(self) -> io::Result<()> {
        let until = Instant::now() + Duration::from_secs(self.seconds);
        if self.role == "forker" {
            return self.start("orphan", self.orphans, 0).map(drop);
        }
        let ignored = match self.ignore_term {
            Disposition::Ignores => {
                Some(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?)
            }
            Disposition::Ends => None,
        };
        if self.role == "child" && self.new_session == Session::Own {
            rustix::process::setsid()?;
        }
        let pid = std::process::id();
        self.append(&format!("{} {pid} {}", self.role, started(pid).unwrap_or_default()))?;
        let mut below = Vec::new();
        match self.role.as_str() {
            "root" => {
                below = self.start("child", self.children, self.grandchildren)?;
                if self.orphans > 0 {
                    for mut forker in self.start("forker", 1, 0)? {
                        forker.wait()?;
                    }
                }
                self.announce(until).await?;
            }
            "child" => below = self.start("grandchild", self.grandchildren, 0)?,
            _ => {}
        }
        tokio::time::sleep(until.saturating_duration_since(Instant::now())).await;
        drop((ignored, below));
        Ok(())
    }

    fn start(&self, role: &str, count: usize, below: usize) -> io::Result<Vec<std::process::Child>> {
        let program = std::env::current_exe()?;
        let start = |index: usize| {
            let mut command = Command::new(&program);
            command.stdin(Stdio::null()).arg("--pids").arg(&self.pids).arg("--role").arg(role);
            command
                .arg("--grandchildren")
                .arg(below.to_string())
                .arg("--seconds")
                .arg(self.seconds.to_string());
            if role == "forker" {
                command.arg("--orphans").arg(self.orphans.to_string());
            }
            if self.ignore_term == Disposition::Ignores && (index.is_multiple_of(2) || role == "forker") {
                command.arg("--ignore-term");
            }
            if role == "child" && self.new_session == Session::Own && index + 1 == count {
                command.arg("--new-session");
            }
            command.spawn()
        };
        (0..count).map(start).collect()
    }

    /// Waits until all others have written themselves down, and says so.
    async fn announce(&self, until: Instant) -> io::Result<()> {
        let expected = 1 + self.children * (1 + self.grandchildren) + self.orphans;
        while members(&std::fs::read_to_string(&self.pids)?).len() < expected {
            if Instant::now() > until {
                return Err(io::Error::other(format!("fewer than {expected} processes came up")));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.append("ready")?;
        let mut stdout = io::stdout();
        writeln!(stdout, "{{\"ready\":\"proc-tree\",\"pid\":{}}}", std::process::id())?;
        stdout.flush()
    }

    fn append(&self, line: &str) -> io::Result<()> {
        // One write of a short line to a file opened for appending is not torn.
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.pids)?
            .write_all(format!("{line}\n").as_bytes())
    }
}
