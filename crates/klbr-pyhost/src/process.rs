//! One Python process: how it is started, limited, heard and killed. Owns nothing of what it says.
//!
//! The protocol's socket is the child's standard input; standard output and error are pipes that the host drains. A
//! leash, a pipe that carries nothing, ties the child's whole group to the host: when the host is gone, the kernel
//! kills the group, also in the midst of C code. (A parent-death signal would need unsafe code, reach one process
//! only, and fire when the *thread* that started it ends.)

pub(crate) mod output;
pub(crate) mod tree;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use output::Kept;
use tree::{Reach, Tree};

/// How Python is started. Everything comes from whoever assembles; nothing is read from this process.
#[derive(Clone, Debug)]
pub struct Program {
    /// The interpreter, 3.11 or later. Not a shell script: it is signalled directly.
    pub python: PathBuf,
    /// The folder in which the package `klbr` stands, as [`Sources::install`](crate::Sources::install) makes it.
    pub package: PathBuf,
    /// The process's whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Where bytecode is cached; without it none is.
    pub bytecode: Option<PathBuf>,
    /// What it may use.
    pub limits: Limits,
}

/// What one Python process may use. `None` is without a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Address space, in bytes.
    pub memory: Option<u64>,
    /// Processor time over its whole life, in whole seconds.
    pub cpu: Option<Duration>,
    /// Open files.
    pub files: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory: Some(2 << 30), cpu: None, files: Some(1024) }
    }
}

/// Numbers the processes that this one started.
static STARTED: AtomicU64 = AtomicU64::new(1);

/// How much of each end of a stream is kept for the report of a death.
const KEPT: usize = 8 * 1024;

/// A running Python. Dropping it kills everything that came of it before the drop returns.
pub(crate) struct Process {
    // Before the child: killing needs the child not to be reaped yet, so that its id is still its own.
    pub(crate) guard: Guard,
    pub(crate) child: Child,
    pub(crate) socket: UnixStream,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    /// Held open as long as the child may live.
    _leash: OwnedFd,
}

/// A stream of output that is drained.
pub(crate) struct Stream {
    pipe: pipe::Receiver,
    pub(crate) kept: Kept,
    is_open: bool,
}

impl Program {
    /// Starts a module of the package, such as `klbr.worker`.
    pub(crate) fn start(&self, module: &str) -> io::Result<Process> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let (leash_end, leash) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (stdout, stdout_end) = drained()?;
        let (stderr, stderr_end) = drained()?;
        // Inherited by number. Another process that is started in this moment inherits it too, without harm: the
        // leash hangs on the other end.
        rustix::io::fcntl_setfd(&leash_end, rustix::io::FdFlags::empty())?;
        let mark = format!("{}/{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(&self.python);
        command.arg("-I");
        match &self.bytecode {
            Some(folder) => command.arg("-X").arg(prefixed("pycache_prefix=", folder)),
            None => command.arg("-B"),
        };
        command
            .arg("-c")
            .arg(format!(
                "import sys; sys.path.insert(0, sys.argv.pop(1)); from {module} import main; main(int(sys.argv.pop(1)))"
            ))
            .arg(&self.package)
            .arg(leash_end.as_raw_fd().to_string())
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env(tree::MARKER, &mark)
            .current_dir(&self.directory)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(stdout_end))
            .stderr(Stdio::from(stderr_end))
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn()?;
        // The child's ends live in the child alone, or the streams would never end.
        drop((command, leash_end));
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it ended before it began"))?;
        let guard = Guard { tree: Tree::new(mark, pid), is_over: false };
        self.limits.apply(pid)?;
        let socket = UnixStream::from_std(ours)?;
        Ok(Process { guard, child, socket, stdout, stderr, _leash: leash })
    }
}

fn prefixed(prefix: &str, path: &std::path::Path) -> OsString {
    let mut text = OsString::from(prefix);
    text.push(path);
    text
}

fn drained() -> io::Result<(Stream, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    let pipe = pipe::Receiver::from_owned_fd(read)?;
    Ok((Stream { pipe, kept: Kept::new(KEPT), is_open: true }, write))
}

impl Limits {
    #[cfg(target_os = "linux")]
    fn apply(self, pid: Pid) -> io::Result<()> {
        use rustix::process::{Resource, Rlimit, prlimit};
        let set = |resource, value: Option<u64>| match value {
            Some(value) => {
                prlimit(Some(pid), resource, Rlimit { current: Some(value), maximum: Some(value) })
                    .map(|_| ())
                    .or_else(|error| match error {
                        // It ended already; whoever reads its socket learns of it.
                        rustix::io::Errno::SRCH => Ok(()),
                        error => Err(error.into()),
                    })
            }
            None => Ok(()),
        };
        set(Resource::As, self.memory)?;
        set(Resource::Cpu, self.cpu.map(|time| time.as_secs().max(1)))?;
        set(Resource::Nofile, self.files)?;
        set(Resource::Core, Some(0))
    }

    /// Limits of another process cannot be set here; `klbr doctor` says so.
    #[cfg(not(target_os = "linux"))]
    fn apply(self, _: Pid) -> io::Result<()> {
        Ok(())
    }
}

impl Process {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Kills everything that came of it and reaps it.
    pub(crate) async fn end(mut self) -> Ended {
        let tree = self.guard.tree.clone();
        tree.kill_group();
        let status = self.child.wait().await.ok();
        // Reading the process table blocks; the group is dead already.
        let _ = tokio::task::spawn_blocking(move || tree.sweep(Reach::Everything)).await;
        self.guard.is_over = true;
        self.stdout.drain_now();
        self.stderr.drain_now();
        Ended { status, stdout: self.stdout.kept, stderr: self.stderr.kept }
    }
}

/// What is left of a process.
pub(crate) struct Ended {
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Kept,
    pub(crate) stderr: Kept,
}

impl Stream {
    /// Takes what arrives until the stream ends; then waits for ever. Cancel-safe.
    pub(crate) async fn drain(&mut self) {
        while self.is_open {
            if self.pipe.readable().await.is_err() {
                break;
            }
            let mut buffer = [0; 64 * 1024];
            match self.pipe.try_read(&mut buffer) {
                Ok(0) => self.is_open = false,
                Ok(length) => self.kept.push(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.is_open = false,
            }
        }
        std::future::pending::<()>().await;
    }

    /// Takes what stands in the pipe at this moment, whether the runtime knows of it or not.
    pub(crate) fn drain_now(&mut self) {
        let mut buffer = [0; 64 * 1024];
        // Bounded: a process that somebody else keeps writing for does not keep the host.
        for _ in 0..64 {
            match rustix::io::read(&self.pipe, &mut buffer) {
                Ok(length @ 1..) => self.kept.push(&buffer[..length]),
                Ok(0) | Err(_) => break,
            }
        }
    }
}

pub(crate) struct Guard {
    tree: Tree,
    is_over: bool,
}

impl Guard {
    /// What is killed.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_over {
            self.tree.kill_group();
            self.tree.sweep(Reach::Everything);
        }
    }
}
