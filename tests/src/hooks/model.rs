//! A model in this process that does what its operator says, and stamps when it was asked.
//!
//! `do {…}` calls the action `act` with that object, `say …` answers the operator, and everything else waits.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use klbr_core::model::{Failure, Finish, Message, RawCall, Request, Sampled};
use klbr_core::runtime::model::{Model, Piece, Reply};
use tokio::sync::watch;

use super::home::{HomeError, WATCHDOG};

/// One request, as it came.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at: Instant,
    /// What the operator told it to do, if that came last.
    pub(super) order: Option<String>,
    /// The result of the call before, if that came last.
    pub(super) result: Option<String>,
}

/// Clones share what they have seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Obedient {
    seen: watch::Sender<Vec<Seen>>,
}

impl Obedient {
    /// How many requests there were.
    pub(super) fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    /// Waits for a request after the first `after` that is wanted; answers with it and with how many there were then.
    pub(super) async fn until(
        &self,
        what: &'static str,
        after: usize,
        wanted: impl Fn(&Seen) -> bool,
    ) -> Result<(Seen, usize), HomeError> {
        let mut seen = self.seen.subscribe();
        let found = |seen: &[Seen]| {
            let at = seen.iter().skip(after).position(&wanted)? + after;
            Some((seen[at].clone(), at + 1))
        };
        let waiting = async {
            loop {
                if let Some(found) = found(&seen.borrow_and_update()) {
                    return Some(found);
                }
                seen.changed().await.ok()?;
            }
        };
        let found = tokio::time::timeout(WATCHDOG, waiting).await.ok().flatten();
        found.ok_or_else(|| {
            let rest: Vec<Seen> = self.seen.borrow().iter().skip(after).cloned().collect();
            HomeError::Absent(format!("{what}; seen instead: {rest:?}"))
        })
    }
}

#[async_trait]
impl Model for Obedient {
    async fn sample(&self, request: Request) -> Result<Reply, Failure> {
        let (order, result) = match request.messages.last() {
            Some(Message::User { text, .. }) => (order(text), None),
            Some(Message::Tool { text, .. }) => (None, Some(told(text).to_owned())),
            Some(Message::Assistant(_)) | None => (None, None),
        };
        let reply = call(order.as_deref());
        self.seen.send_modify(|seen| seen.push(Seen { at: Instant::now(), order, result }));
        Ok(stream::iter([Ok(Piece::Finished(reply))]).boxed())
    }
}

/// A result without the line that names it.
fn told(text: &str) -> &str {
    text.strip_prefix("[#").and_then(|text| text.split_once("]\n")).map_or(text, |(_, told)| told)
}

/// The last thing that a frame tells it to do.
fn order(text: &str) -> Option<String> {
    let is_order = |line: &&str| line.starts_with("do ") || line.starts_with("say ");
    text.lines().rev().find(is_order).map(str::to_owned)
}

fn call(order: Option<&str>) -> Sampled {
    let (name, arguments) = match order.and_then(|order| order.split_once(' ')) {
        Some(("do", arguments)) => ("act", arguments.to_owned()),
        Some((_, text)) => ("local_send", serde_json::json!({ "content": text }).to_string()),
        None => ("wait_and_continue", format!(r#"{{"seconds":{}}}"#, Duration::from_secs(600).as_secs())),
    };
    let calls = vec![RawCall { id: None, name: name.to_owned(), arguments }];
    Sampled { calls, finish: Finish::ToolCalls, ..Sampled::default() }
}
