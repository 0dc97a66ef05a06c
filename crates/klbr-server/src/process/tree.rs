//! Everything that came of one run, found and killed.

use rustix::process::{Pid, Signal, kill_process_group};

#[cfg(target_os = "linux")]
use linux::{Belonging, kill_all};

/// What came of one run. Dropping it kills it.
pub(super) struct Tree {
    mark: String,
    root: u32,
    is_killed: bool,
}

impl Tree {
    /// The processes that carry `mark`, and the group that `root` leads.
    pub(super) fn new(mark: String, root: u32) -> Self {
        Tree { mark, root, is_killed: false }
    }

    /// Kills everything, and returns when nothing more is found. Blocks for some milliseconds.
    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.is_killed, true) {
            return;
        }
        if let Some(group) = i32::try_from(self.root).ok().and_then(Pid::from_raw) {
            // Gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        #[cfg(target_os = "linux")]
        kill_all(&Belonging { mark: self.mark.as_bytes(), is_prefix: false, root: Some(self.root) });
        #[cfg(not(target_os = "linux"))]
        let _ = &self.mark;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills what an earlier process of this home left running; answers with how many there were.
///
/// Only for the holder of the home's lock: nobody else's processes carry its mark then.
pub(crate) fn kill_leftovers(home: &str) -> usize {
    #[cfg(target_os = "linux")]
    return kill_all(&Belonging { mark: format!("{home}/").as_bytes(), is_prefix: true, root: None });
    #[cfg(not(target_os = "linux"))]
    {
        let _ = home;
        0
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;

    use rustix::process::{Pid, Signal, kill_process};

    use crate::process::MARKER;

    /// Passes over all processes until one finds nothing more; each kills what the last one missed.
    const PASSES: usize = 50;

    /// Which processes belong.
    pub(super) struct Belonging<'a> {
        pub(super) mark: &'a [u8],
        /// Whether every mark that begins so belongs.
        pub(super) is_prefix: bool,
        /// The leader of the run's own group and session, if any.
        pub(super) root: Option<u32>,
    }

    /// One line of the process table.
    struct Entry {
        pid: u32,
        parent: u32,
        group: u32,
        session: u32,
    }

    /// Kills all that belong, and those that they start meanwhile. Answers with how many were killed.
    pub(super) fn kill_all(belonging: &Belonging<'_>) -> usize {
        let mut killed: HashSet<u32> = HashSet::new();
        for _ in 0..PASSES {
            let alive = find(belonging, &killed);
            if alive.is_empty() {
                break;
            }
            for pid in alive {
                if let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                    // Gone already is as good.
                    let _ = kill_process(id, Signal::KILL);
                }
                killed.insert(pid);
            }
        }
        killed.len()
    }

    /// The living processes that belong: marked ones, and what stands in their or the root's groups, in the
    /// sessions that they lead, or below any of these.
    fn find(belonging: &Belonging<'_>, killed: &HashSet<u32>) -> Vec<u32> {
        let own = std::process::id();
        let table = table();
        let mut found: HashSet<u32> = table
            .iter()
            .filter(|entry| Some(entry.group) == belonging.root || is_marked(entry.pid, belonging))
            .map(|entry| entry.pid)
            .collect();
        found.remove(&own);
        loop {
            let before = found.len();
            let is_of = |id: u32| id != own && (found.contains(&id) || killed.contains(&id));
            let more: Vec<u32> = table
                .iter()
                .filter(|entry| entry.pid != own && !found.contains(&entry.pid))
                .filter(|entry| is_of(entry.parent) || is_of(entry.group) || is_of(entry.session))
                .map(|entry| entry.pid)
                .collect();
            found.extend(more);
            if found.len() == before {
                break;
            }
        }
        found.into_iter().collect()
    }

    /// All processes that have not ended.
    fn table() -> Vec<Entry> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(entry)
            .collect()
    }

    fn entry(pid: u32) -> Option<Entry> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything, parentheses too.
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
        let is_over = matches!(fields.next()?, "Z" | "X" | "x");
        let mut number = || fields.next()?.parse().ok();
        let (parent, group, session) = (number()?, number()?, number()?);
        (!is_over).then_some(Entry { pid, parent, group, session })
    }

    fn is_marked(pid: u32, belonging: &Belonging<'_>) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        environment.split(|byte| *byte == 0).any(|variable| {
            let mark = variable.strip_prefix(MARKER.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            mark.is_some_and(|mark| match belonging.is_prefix {
                true => mark.starts_with(belonging.mark),
                false => mark == belonging.mark,
            })
        })
    }
}
