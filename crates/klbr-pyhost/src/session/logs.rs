//! What user code logs, bounded: how long a record is, and how many come within a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::protocol::{Level, Logged};

/// Records that are taken within a second. What comes beyond them is counted.
const A_SECOND: u32 = 100;

/// The longest message, in bytes.
const MESSAGE: usize = 4096;

/// The longest name of a logger or of a file, in bytes.
const NAME: usize = 256;

/// Takes the records of one process.
pub(crate) struct Logs {
    tell: Arc<dyn Fn(Logged) + Send + Sync>,
    since: Instant,
    taken: u32,
    left_out: u64,
}

impl Logs {
    pub(crate) fn new(now: Instant, tell: Arc<dyn Fn(Logged) + Send + Sync>) -> Self {
        Logs { tell, since: now, taken: 0, left_out: 0 }
    }

    pub(crate) fn take(&mut self, now: Instant, mut logged: Logged) {
        if now - self.since >= Duration::from_secs(1) {
            (self.since, self.taken) = (now, 0);
        }
        self.taken = self.taken.saturating_add(1);
        if self.taken > A_SECOND {
            self.left_out += 1 + logged.left_out;
            return;
        }
        logged.left_out += std::mem::take(&mut self.left_out);
        logged.message = cut(logged.message, MESSAGE);
        logged.logger = cut(logged.logger, NAME);
        logged.file = logged.file.map(|file| cut(file, NAME));
        (self.tell)(logged);
    }
}

impl Drop for Logs {
    /// Nothing is left out without a word.
    fn drop(&mut self) {
        if self.left_out > 0 {
            let message = "too much was logged at once".into();
            let (logger, file, line, run) = ("klbr".into(), None, None, None);
            let level = Level::Warning;
            (self.tell)(Logged { level, logger, message, file, line, run, left_out: self.left_out });
        }
    }
}

fn cut(text: Arc<str>, most: usize) -> Arc<str> {
    match text.len() > most {
        true => format!("{}…", &text[..text.floor_char_boundary(most - '…'.len_utf8())]).into(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn logged(message: &str) -> Logged {
        let (logger, file, line, run) = ("mine".into(), None, None, None);
        Logged { level: Level::Info, logger, message: message.into(), file, line, run, left_out: 0 }
    }

    #[test]
    fn what_is_too_long_is_cut_and_what_is_too_much_is_counted() {
        let heard: Arc<Mutex<Vec<Logged>>> = Arc::default();
        let kept = Arc::clone(&heard);
        let now = Instant::now();
        let mut logs = Logs::new(now, Arc::new(move |logged| kept.lock().unwrap().push(logged)));
        for _ in 0..150 {
            logs.take(now, logged(&"ä".repeat(5000)));
        }
        (0..110).for_each(|_| logs.take(now + Duration::from_secs(1), logged("again")));
        drop(logs);
        let heard = heard.lock().unwrap();
        let counts: Vec<u64> =
            heard.iter().map(|logged| logged.left_out).filter(|count| *count > 0).collect();
        assert_eq!((heard.len(), counts), (201, vec![50, 10]));
        assert_eq!(heard[0].message.len(), MESSAGE - 1, "at a character's boundary");
        assert!(heard[0].message.ends_with("ä…"));
    }
}
