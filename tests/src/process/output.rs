//! What a child writes, by line and stamped.
//!
//! Owns the reading of one stream, in a task that ends with it. Refuses to interpret it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Stamp;

/// A line that a child wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was read.
    pub at: Stamp,
    /// Its text without its end; what is not UTF-8 is replaced.
    pub text: String,
}

/// One stream of a child.
#[derive(Debug)]
pub(super) struct Output {
    lines: Arc<Mutex<Vec<Line>>>,
    news: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Output {
    pub(super) fn read(stream: impl AsyncRead + Unpin + Send + 'static) -> Output {
        let lines = Arc::<Mutex<Vec<Line>>>::default();
        let (sender, news) = watch::channel(0);
        let kept = Arc::clone(&lines);
        let task = tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut buffer = Vec::new();
            while matches!(reader.read_until(b'\n', &mut buffer).await, Ok(1..)) {
                let line = buffer.strip_suffix(b"\n").unwrap_or(&buffer);
                let text = String::from_utf8_lossy(line).into_owned();
                lock(&kept).push(Line { at: Stamp::now(), text });
                buffer.clear();
                sender.send_modify(|count| *count += 1);
            }
        });
        Output { lines, news, task }
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        lock(&self.lines).clone()
    }

    /// The last lines, as one text.
    pub(super) fn tail(&self) -> String {
        let lines = lock(&self.lines);
        let last: Vec<&str> =
            lines[lines.len().saturating_sub(10)..].iter().map(|line| line.text.as_str()).collect();
        last.join("\n")
    }

    /// The first line for which `wanted` says yes; nothing once the stream has ended without one.
    pub(super) async fn find(&mut self, wanted: impl Fn(&str) -> bool) -> Option<Line> {
        let mut from = 0;
        loop {
            let open = self.news.has_changed().is_ok();
            self.news.mark_unchanged();
            {
                let lines = lock(&self.lines);
                if let Some(line) = lines[from..].iter().find(|line| wanted(&line.text)) {
                    return Some(line.clone());
                }
                from = lines.len();
            }
            if !open {
                return None;
            }
            // An error says that the stream has ended; the next round reads what came last.
            let _ = self.news.changed().await;
        }
    }

    /// Waits until the stream has ended, but not longer than this.
    pub(super) async fn ended(&mut self, limit: Duration) {
        let _ = tokio::time::timeout(limit, async { while self.news.changed().await.is_ok() {} }).await;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(lines: &Mutex<Vec<Line>>) -> MutexGuard<'_, Vec<Line>> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}
