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

const WAIT: &str = "wait_and_continue";

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

    /// Waits until the operator's words have come to it.
    pub(super) async fn is_told(&self, order: &str, after: usize) -> Result<(Seen, usize), HomeError> {
        self.until("the operator's words", after, |seen| seen.order.as_deref() == Some(order)).await
    }

    /// The next result of a call.
    pub(super) async fn result(&self, after: usize) -> Result<String, HomeError> {
        let (seen, _) = self.until("the result of a call", after, |seen| seen.result.is_some()).await?;
        Ok(seen.result.unwrap_or_default())
    }

    /// Waits for a request after the first `after` that is wanted; answers with it and with how many there were then.
    async fn until(
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
        let (order, result) = last(&request.messages);
        let reply = call(order.as_deref());
        self.seen.send_modify(|seen| seen.push(Seen { at: Instant::now(), order, result }));
        Ok(stream::iter([Ok(Piece::Finished(reply))]).boxed())
    }
}

/// What the operator told it since it spoke last, or else what became of the call that it made.
fn last(messages: &[Message]) -> (Option<String>, Option<String>) {
    let spoke = messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let (said, since) = messages.split_at(spoke.map_or(0, |at| at + 1));
    let is_wait = |call: &klbr_core::model::Call| &*call.name == WAIT;
    let has_acted = matches!(said.last(), Some(Message::Assistant(said)) if !said.calls.iter().any(is_wait));
    let mut found = (None, None);
    for message in since {
        match message {
            Message::Tool { text, .. } if has_acted => found = (None, Some(told(text).to_owned())),
            // An addition may follow a result, and what the operator says a call that it has ended.
            Message::User { text, .. } => {
                if let Some(order) = order(text) {
                    found = (Some(order), None);
                }
            }
            Message::Tool { .. } | Message::Assistant(_) => {}
        }
    }
    found
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
        None => (WAIT, format!(r#"{{"seconds":{}}}"#, Duration::from_secs(600).as_secs())),
    };
    let calls = vec![RawCall { id: None, name: name.to_owned(), arguments }];
    Sampled { calls, finish: Finish::ToolCalls, ..Sampled::default() }
}
