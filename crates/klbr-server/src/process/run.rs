//! One run of a command line, from its start until nothing of it is left.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::MARKER;
use super::tree::Tree;

/// How much of each stream's beginning, and of its end, is kept.
const KEPT: usize = 32 * 1024;

/// How long output may still arrive once everything has been killed: what is in the pipe, no more.
const LAST_OUTPUT: Duration = Duration::from_millis(500);

/// Numbers the runs of this process.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// A run. Dropping it kills everything that came of it before the drop returns.
pub(super) struct Run {
    // Before the child: killing needs the child not to be reaped yet, so that its id is still its own.
    tree: Tree,
    child: Child,
}

/// How a run ended.
pub(super) enum End {
    Exited(ExitStatus),
    TimedOut,
    Lost(io::Error),
}

impl Run {
    pub(super) fn start(line: &str, home: &str, dir: &Path, secrets: &[String]) -> io::Result<Self> {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{home}/{}/{number}", std::process::id());
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(line)
            .current_dir(dir)
            .env(MARKER, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for secret in secrets {
            command.env_remove(secret);
        }
        let child = command.spawn()?;
        let root = child.id().ok_or_else(|| io::Error::other("it ended before it began"))?;
        Ok(Run { tree: Tree::new(mark, root), child })
    }

    /// Waits for the command's end, or kills it after `limit`; either way nothing of it is left then.
    pub(super) async fn finish(mut self, limit: Duration) -> (End, String) {
        let (mut out, mut err) = (Kept::default(), Kept::default());
        let (mut stdout, mut stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let mut reading = Box::pin(async {
            tokio::join!(read(&mut stdout, &mut out), read(&mut stderr, &mut err));
        });
        let mut is_read = false;
        let waiting = async {
            loop {
                tokio::select! {
                    status = self.child.wait() => break status,
                    () = &mut reading, if !is_read => is_read = true,
                }
            }
        };
        let end = match tokio::time::timeout(limit, waiting).await {
            Ok(Ok(status)) => End::Exited(status),
            Ok(Err(error)) => End::Lost(error),
            Err(_) => End::TimedOut,
        };
        self.tree.kill();
        if !is_read {
            // Whoever still holds the pipe escaped; its output does not matter.
            let _ = tokio::time::timeout(LAST_OUTPUT, reading).await;
        } else {
            drop(reading);
        }
        let output = [("", out.text()), ("[stderr]\n", err.text())]
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(head, text)| format!("{head}{}\n", text.trim_end()))
            .collect();
        (end, output)
    }
}

async fn read(stream: &mut Option<impl AsyncRead + Unpin>, kept: &mut Kept) {
    let Some(stream) = stream else { return };
    let mut buffer = [0; 8 * 1024];
    // A stream that fails has ended.
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        kept.push(&buffer[..length]);
    }
}

/// The beginning and the end of a stream.
#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Shortened rarely, so that each byte is moved a bounded number of times.
        if self.tail.len() > 2 * KEPT {
            let surplus = self.tail.len() - KEPT;
            self.tail.drain(..surplus);
            self.dropped += surplus;
        }
    }

    fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        match self.dropped {
            0 if tail.is_empty() => head.into_owned(),
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat()).into_owned(),
            n => format!("{head}\n[{n} bytes left out]\n{tail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_at_both_ends() {
        let mut kept = Kept::default();
        kept.push(b"begin ");
        kept.push("ä".as_bytes());
        assert_eq!(kept.text(), "begin ä");
        for _ in 0..1000 {
            kept.push(&[b'x'; 1000]);
        }
        kept.push(b" end");
        let text = kept.text();
        assert!(text.starts_with("begin ä") && text.ends_with("x end"), "{}", &text[..20]);
        assert!(text.len() < 4 * KEPT && text.contains("bytes left out]"), "{}", text.len());
    }
}
