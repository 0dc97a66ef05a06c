//! Children of a proof: started, awaited with a watchdog, signalled, and never left behind.
//!
//! Owns the lives of child processes. A [`Running`] is killed when it is dropped. Two leashes hold where even the
//! parent is killed: the fakes end when their standard input does, and [`Program::bound_to_parent`] asks the kernel
//! to kill any program with its parent. Refuses to know what the programs do.

mod output;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};

use crate::clock::Stamp;
pub use output::Line;
use output::Output;

/// Why a child could not be had, or did not do what was waited for.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The binary is not where cargo puts it.
    #[error("{} does not exist; build it with `{command}`", .path.display())]
    NotBuilt {
        /// Where it was looked for.
        path: PathBuf,
        /// What builds it.
        command: String,
    },
    /// The system refused.
    #[error("{program}: {doing}: {source}")]
    System {
        /// The program's name.
        program: String,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// It ended before what was waited for.
    #[error("{program} ended ({status}) before {what}; its errors: {stderr}")]
    Ended {
        /// The program's name.
        program: String,
        /// How it ended.
        status: String,
        /// What was waited for.
        what: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// The watchdog rang first.
    #[error("{program}: {what} did not come within {} ms; its errors: {stderr}", .watchdog.as_millis())]
    Watchdog {
        /// The program's name.
        program: String,
        /// What was waited for.
        what: String,
        /// How long.
        watchdog: Duration,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// A ready line of another form.
    #[error("{program}: the ready line {line:?} cannot be read: {reason}")]
    ReadyLine {
        /// The program's name.
        program: String,
        /// The line.
        line: String,
        /// What the parser says.
        reason: String,
    },
}

/// What a child may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL.
    Kill,
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
}

impl Signal {
    fn number(self) -> rustix::process::Signal {
        match self {
            Signal::Kill => rustix::process::Signal::KILL,
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Stop => rustix::process::Signal::STOP,
            Signal::Continue => rustix::process::Signal::CONT,
        }
    }
}

/// Where a program is: in `folder`, or where cargo puts this workspace's binaries.
///
/// # Errors
/// [`ProcessError::NotBuilt`] says which cargo command builds one that is not there.
pub fn beside(binary: &str, folder: Option<&Path>) -> Result<PathBuf, ProcessError> {
    let package = match binary {
        "klbr" => "klbr-cli",
        "klbrd" => "klbr-server",
        _ => "klbr-tests",
    };
    match folder.map(|folder| folder.join(binary)) {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(ProcessError::NotBuilt {
            path,
            command: format!("cargo build --release -p {package} --bin {binary}"),
        }),
        None => Ok(Program::of_workspace(package, binary)?.path),
    }
}

/// Sends a signal to any process; nothing happens if there is none with this id.
pub fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("0 and numbers beyond an i32 are no process ids"))?;
    match kill_process(pid, signal.number()) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What a child has of its parent's environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inherited {
    All,
    Nothing,
}

/// A program that is about to be started.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    inherited: Inherited,
    directory: Option<PathBuf>,
}

impl Program {
    /// Finds a binary of this workspace beside the running one (`target/<profile>/`).
    ///
    /// # Errors
    /// [`ProcessError::NotBuilt`] says which cargo command builds it: a package's tests build that package's binaries alone.
    pub fn of_workspace(package: &str, binary: &str) -> Result<Program, ProcessError> {
        let here = std::env::current_exe().map_err(|source| ProcessError::System {
            program: binary.into(),
            doing: "finding the running program",
            source,
        })?;
        let mut folder = here.parent().unwrap_or(Path::new("."));
        if folder.file_name() == Some(OsStr::new("deps")) {
            folder = folder.parent().unwrap_or(folder);
        }
        let path = folder.join(binary);
        if path.is_file() {
            return Ok(Program::at(path));
        }
        let profile = match folder.file_name().and_then(OsStr::to_str) {
            None | Some("debug") => String::new(),
            Some("release") => " --release".into(),
            Some(other) => format!(" --profile {other}"),
        };
        Err(ProcessError::NotBuilt {
            path,
            command: format!("cargo build{profile} -p {package} --bin {binary}"),
        })
    }

    /// Takes the program at a path.
    pub fn at(path: impl Into<PathBuf>) -> Program {
        Program {
            path: path.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherited: Inherited::All,
            directory: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Program {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Program {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Has it inherit no variable; those that are set are all that it sees.
    pub fn bare_env(mut self) -> Program {
        self.inherited = Inherited::Nothing;
        self
    }

    /// Sets a variable; the rest of the environment is inherited.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Program {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Program {
        self.directory = Some(directory.into());
        self
    }

    /// Has the kernel kill the program when the thread that starts it ends, on Linux; elsewhere nothing changes.
    ///
    /// The process id is the program's own. Start it from a thread that lives as long as the proof.
    pub fn bound_to_parent(self) -> Result<Program, ProcessError> {
        let bound = Program::of_workspace("klbr-tests", "bound")?;
        let mut arguments = vec![std::process::id().to_string().into(), self.path.clone().into_os_string()];
        arguments.extend(self.arguments.iter().cloned());
        Ok(Program { path: bound.path, arguments, ..self })
    }

    /// Starts it with all three standard streams held by the parent.
    ///
    /// Must be called within a tokio runtime, which reads its output as long as the [`Running`] lives.
    pub fn spawn(self) -> Result<Running, ProcessError> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned();
        let mut command = Command::new(&self.path);
        if self.inherited == Inherited::Nothing {
            command.env_clear();
        }
        command.args(&self.arguments).envs(self.environment).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let started = Stamp::now();
        let spawned = command.spawn();
        let mut child = spawned.map_err(|source| ProcessError::System {
            program: name.clone(),
            doing: "starting it",
            source,
        })?;
        let pid = child.id().expect("a child that was not waited for has an id");
        let stdout = Output::read(child.stdout.take().expect("the stream is piped"));
        let stderr = Output::read(child.stderr.take().expect("the stream is piped"));
        Ok(Running { name, pid, started, stdin: child.stdin.take(), stdout, stderr, child })
    }
}

/// A child process. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    name: String,
    pid: u32,
    started: Stamp,
    stdin: Option<ChildStdin>,
    stdout: Output,
    stderr: Output,
    child: Child,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it was about to be started.
    pub fn started(&self) -> Stamp {
        self.started
    }

    /// Waits for the first line of standard output and reads it as JSON.
    pub async fn ready<T: DeserializeOwned>(&mut self, watchdog: Duration) -> Result<T, ProcessError> {
        let line = self.line("its ready line", watchdog, |_| true).await?;
        serde_json::from_str(&line.text).map_err(|error| ProcessError::ReadyLine {
            program: self.name.clone(),
            line: line.text,
            reason: error.to_string(),
        })
    }

    /// Waits for a line of standard output for which `wanted` says yes; the first such line counts, also an old one.
    ///
    /// Cancellation loses nothing.
    pub async fn line(
        &mut self,
        what: &str,
        watchdog: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Line, ProcessError> {
        let found = tokio::time::timeout(watchdog, self.stdout.find(wanted)).await;
        self.found(what, watchdog, found).await
    }

    /// Waits for a line of standard error for which `wanted` says yes; the first such line counts, also an old one.
    ///
    /// Cancellation loses nothing.
    pub async fn complaint(
        &mut self,
        what: &str,
        watchdog: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Line, ProcessError> {
        let found = tokio::time::timeout(watchdog, self.stderr.find(wanted)).await;
        self.found(what, watchdog, found).await
    }

    async fn found(
        &mut self,
        what: &str,
        watchdog: Duration,
        found: Result<Option<Line>, tokio::time::error::Elapsed>,
    ) -> Result<Line, ProcessError> {
        match found {
            Ok(Some(line)) => Ok(line),
            Ok(None) => {
                let status = match tokio::time::timeout(watchdog, self.child.wait()).await {
                    Ok(Ok(status)) => status.to_string(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "its output, not itself".into(),
                };
                self.stderr.ended(watchdog).await;
                let (program, what, stderr) = (self.name.clone(), what.to_owned(), self.stderr.tail());
                Err(ProcessError::Ended { program, status, what, stderr })
            }
            Err(_) => Err(self.overdue(what, watchdog)),
        }
    }

    /// Sends a signal; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        if self.child.id().is_none() {
            return Ok(());
        }
        send(self.pid, signal).map_err(|error| self.system("sending it a signal", error))
    }

    /// Waits for its end and for all that it wrote. Cancellation loses nothing.
    pub async fn wait(&mut self, watchdog: Duration) -> Result<ExitStatus, ProcessError> {
        let status = match tokio::time::timeout(watchdog, self.child.wait()).await {
            Ok(status) => status.map_err(|error| self.system("waiting for its end", error))?,
            Err(_) => return Err(self.overdue("its end", watchdog)),
        };
        // A grandchild may hold the streams open; what it writes is not waited for.
        let drained = Duration::from_millis(200);
        self.stdout.ended(drained).await;
        self.stderr.ended(drained).await;
        Ok(status)
    }

    /// Sends SIGKILL and waits for its end.
    pub async fn kill(&mut self) -> Result<ExitStatus, ProcessError> {
        self.signal(Signal::Kill)?;
        self.wait(Duration::from_secs(10)).await
    }

    /// Sends SIGTERM and waits for its end.
    pub async fn terminate(&mut self, watchdog: Duration) -> Result<ExitStatus, ProcessError> {
        self.signal(Signal::Terminate)?;
        self.wait(watchdog).await
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        self.child.try_wait().map_err(|error| self.system("asking for its end", error))
    }

    /// Writes to its standard input.
    pub async fn write(&mut self, text: &str) -> Result<(), ProcessError> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        let written = stdin.write_all(text.as_bytes()).await;
        written.map_err(|error| self.system("writing to it", error))
    }

    /// Ends its standard input, which ends a fake.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The lines of standard output so far.
    pub fn stdout(&self) -> Vec<Line> {
        self.stdout.lines()
    }

    /// The lines of standard error so far.
    pub fn stderr(&self) -> Vec<Line> {
        self.stderr.lines()
    }

    fn overdue(&self, what: &str, watchdog: Duration) -> ProcessError {
        let (program, what, stderr) = (self.name.clone(), what.to_owned(), self.stderr.tail());
        ProcessError::Watchdog { program, what, watchdog, stderr }
    }

    fn system(&self, doing: &'static str, source: io::Error) -> ProcessError {
        ProcessError::System { program: self.name.clone(), doing, source }
    }
}

/// From now on ends are noticed: standard input's, SIGTERM, SIGINT. The future is ready with the first of them.
///
/// Must be called within a tokio runtime, before a fake says that it is ready.
pub fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (ended, input) = tokio::sync::oneshot::channel();
    // A thread of its own: one of the runtime's would keep the process alive until the input ends.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = ended.send(());
    });
    Ok(async move {
        tokio::select! {
            _ = input => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Asks the kernel to kill this process when its parent ends, and checks that the parent still is `parent`.
///
/// It holds across `exec`. Only Linux can: elsewhere nothing happens.
pub fn die_with_parent(parent: &str) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if parent != now.to_string() {
        return Err(io::Error::other(format!("the parent {parent} is gone")));
    }
    Ok(())
}
