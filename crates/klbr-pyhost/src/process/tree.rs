//! Everything that came of one Python process, found and killed.
//!
//! A group is killed at once. What left the group (a daemon of its own session) still carries the mark in its
//! environment, where the platform shows it.

use rustix::process::{Pid, Signal, kill_process_group};

/// The variable that marks what came of a process.
pub(super) const MARKER: &str = "KLBR_HOSTED";

/// The processes that came of one.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    mark: String,
    root: Pid,
}

/// Whether the process that everything came of is meant too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Everything,
    Descendants,
}

impl Tree {
    pub(super) fn new(mark: String, root: Pid) -> Self {
        Tree { mark, root }
    }

    /// Kills the group at once.
    pub(crate) fn kill_group(&self) {
        // Gone already is as good.
        let _ = kill_process_group(self.root, Signal::KILL);
    }

    /// Interrupts the process, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let _ = rustix::process::kill_process(self.root, Signal::INT);
    }

    /// Kills what is left, wherever it went; answers with how many. Blocks for some milliseconds.
    pub(crate) fn sweep(&self, reach: Reach) -> usize {
        #[cfg(target_os = "linux")]
        return linux::kill_all(self.mark.as_bytes(), self.root, reach);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (reach, &self.mark);
            0
        }
    }

    /// Whether the process has living children. Cheap; sees no grandchild whose parent is gone.
    pub(crate) fn has_children(&self) -> bool {
        #[cfg(target_os = "linux")]
        return linux::has_children(self.root);
        #[cfg(not(target_os = "linux"))]
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    use super::{MARKER, Reach};

    /// How long the killed may take to be gone: what hangs in the kernel longer is the kernel's.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// How long a process may take to become another program: until then it shows no environment.
    const TURNING: Duration = Duration::from_millis(100);

    pub(super) fn kill_all(mark: &[u8], root: Pid, reach: Reach) -> usize {
        let mut killed: HashSet<Pid> = HashSet::new();
        let begun = Instant::now();
        loop {
            // What is being killed may have started something in its last moment: the last pass finds nothing.
            let Found { mut alive, is_clear } = marked(mark);
            alive.retain(|pid| reach == Reach::Everything || *pid != root);
            let is_over = alive.is_empty() && (is_clear || begun.elapsed() >= TURNING);
            if is_over || begun.elapsed() >= PATIENCE {
                return killed.len();
            }
            for pid in alive {
                let _ = kill_process(pid, Signal::KILL);
                killed.insert(pid);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    struct Found {
        /// The living processes that carry the mark.
        alive: Vec<Pid>,
        /// Whether every other one is known to carry none.
        is_clear: bool,
    }

    fn marked(mark: &[u8]) -> Found {
        let own = rustix::process::getpid();
        let mut found = Found { alive: Vec::new(), is_clear: true };
        let Ok(entries) = fs::read_dir("/proc") else { return found };
        let pids =
            entries.flatten().filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        for pid in pids.filter(|pid| *pid != own) {
            // The dead have no environment any more; of another user's processes none is shown.
            let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
            let Ok(environment) = fs::read(path) else { continue };
            if carries(&environment, mark) {
                found.alive.push(pid);
            } else if environment.is_empty() {
                found.is_clear &= !is_turning(pid);
            }
        }
        found
    }

    fn carries(environment: &[u8], mark: &[u8]) -> bool {
        environment.split(|byte| *byte == 0).any(|variable| {
            variable.strip_prefix(MARKER.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) == Some(mark)
        })
    }

    /// Whether a process is about to become another program: whoever started it has gone on already, and where its
    /// environment will end is not known yet.
    fn is_turning(pid: Pid) -> bool {
        const KERNEL_THREAD: u64 = 0x0020_0000;
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // The third field of the line is the first here: state, flags, the end of the environment.
        let [Some(state), Some(flags), Some(end)] = [0, 6, 48].map(|at| fields.get(at)) else { return false };
        let is_thread = flags.parse::<u64>().is_ok_and(|flags| flags & KERNEL_THREAD != 0);
        !matches!(*state, "Z" | "X") && !is_thread && *end == "0"
    }

    pub(super) fn has_children(root: Pid) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", root.as_raw_nonzero())) else { return false };
        threads.flatten().any(|thread| {
            fs::read_to_string(thread.path().join("children")).is_ok_and(|list| !list.trim().is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// By itself, without the search for what left the group.
    #[test]
    fn a_group_is_killed_whole() {
        let mut root = Command::new("sh")
            .args(["-c", "(echo begun; exec sleep 20) & wait"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(root.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        let begun = std::time::Instant::now();
        let pid = Pid::from_raw(i32::try_from(root.id()).unwrap()).unwrap();
        Tree::new("none".to_owned(), pid).kill_group();
        root.wait().unwrap();
        // The stream ends only when the last of them is gone.
        assert_eq!(said.read(&mut [0; 16]).unwrap(), 0);
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "the child has lived to its end");
    }
}
