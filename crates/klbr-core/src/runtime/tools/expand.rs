//! `history_expand`: what a summary stands for, message by message, to the byte.

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::history::store_failed;
use crate::action::{Class, FailureKind, Outcome};
use crate::ids::{AgentName, Seq};
use crate::model::Message;
use crate::runtime::store::{Store, StoreError};
use crate::runtime::tool::{CallContext, Tool};
use crate::state::{Archive, Covered};

/// Records read at once.
const PAGE: usize = 2_000;
/// Tokens shown when a call does not say how many, and at most.
const TOKENS: (u64, u64) = (4_000, 10_000);
/// What a token is taken for, in characters: few, so that the cap holds.
const CHARS_PER_TOKEN: u64 = 3;
/// Fewer than a result may have, so that nothing of a page is left out.
const LINES: usize = 350;

/// Shows the messages that a summary stands for.
#[derive(Clone, Copy, Debug)]
pub struct HistoryExpand;

/// Arguments of [`HistoryExpand`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Expansion {
    /// The summary's number.
    summary: u64,
    /// The first message to show, from 1.
    message: Option<usize>,
    /// How many characters of that message to pass over.
    offset: Option<usize>,
    /// How many tokens to show about, at most 10000; 4000 when absent.
    max_tokens: Option<u64>,
}

#[async_trait]
impl Tool for HistoryExpand {
    type Arguments = Expansion;
    const NAME: &'static str = "history_expand";
    const DESCRIPTION: &'static str = "Shows the messages that a summary stands for, word for word, a page at a time. The \
                                       first of them may be an earlier summary, which can be expanded too.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, query: Expansion) -> Outcome {
        match covered(&*context.store, &context.agent, query.summary).await {
            Ok(Some(covered)) => page(&covered, &query),
            Ok(None) => {
                let text = format!("There is no summary {} in this session.", query.summary);
                Outcome::failed(FailureKind::Invalid, text)
            }
            Err(error) => store_failed(&error),
        }
    }
}

/// What a summary stands for, read from the records; none when there is no such summary.
///
/// # Errors
///
/// Fails when the store cannot be read, or when its records do not follow each other.
pub async fn covered(
    store: &dyn Store,
    agent: &AgentName,
    number: u64,
) -> Result<Option<Covered>, StoreError> {
    let (mut archive, mut after) = (Archive::new(), Seq(0));
    loop {
        let records = store.records(agent, after, PAGE).await?;
        for stamped in &records {
            let covered = archive.read(stamped).map_err(|error| StoreError::Damaged(error.to_string()))?;
            if let Some(covered) = covered.filter(|covered| covered.number == number) {
                return Ok(Some(covered));
            }
        }
        match records.last() {
            Some(last) => after = last.seq,
            None => return Ok(None),
        }
    }
}

fn page(covered: &Covered, query: &Expansion) -> Outcome {
    let count = covered.messages.len();
    let first = query.message.unwrap_or(1).max(1);
    let Covered { number, since, at, .. } = covered;
    if first > count {
        let text = format!("Summary {number} stands for {count} messages; there is no message {first}.");
        return Outcome::failed(FailureKind::Invalid, text);
    }
    let mut out = format!("Summary {number} stands for {count} messages from {since} to {at}");
    // Writing to a String never fails.
    let _ = match covered.parent {
        Some(parent) => write!(out, "; they begin with summary {parent}."),
        None => write!(out, "."),
    };
    if !covered.is_intact {
        out.push_str(" Their recorded hash is another one: the history was damaged.");
    }
    let mut room = Room {
        chars: query.max_tokens.unwrap_or(TOKENS.0).clamp(100, TOKENS.1) * CHARS_PER_TOKEN,
        lines: LINES,
    };
    let mut offset = query.offset.unwrap_or(0);
    for (n, message) in covered.messages.iter().enumerate().skip(first - 1) {
        let (role, text) = written(message);
        let total = text.chars().count();
        if offset > total {
            let text = format!("Message {} has {total} characters.", n + 1);
            return Outcome::failed(FailureKind::Invalid, text);
        }
        let rest = &text[text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at)..];
        let shown = room.take(rest);
        if shown.is_empty() && !rest.is_empty() {
            let _ = write!(out, "\n--- to go on: message {}, offset {offset} ---", n + 1);
            return Outcome::confirmed(out);
        }
        let _ = write!(out, "\n--- message {}, {role} ---\n{shown}", n + 1);
        if shown.len() < rest.len() {
            let offset = offset + shown.chars().count();
            let _ = write!(out, "\n--- to go on: message {}, offset {offset} ---", n + 1);
            return Outcome::confirmed(out);
        }
        offset = 0;
    }
    Outcome::confirmed(out)
}

/// What is left of a page.
struct Room {
    chars: u64,
    lines: usize,
}

impl Room {
    /// As much of a text as fits.
    fn take<'t>(&mut self, text: &'t str) -> &'t str {
        self.lines = self.lines.saturating_sub(1);
        for (at, c) in text.char_indices() {
            if self.chars == 0 || self.lines == 0 {
                return &text[..at];
            }
            self.chars -= 1;
            self.lines -= usize::from(c == '\n');
        }
        text
    }
}

/// A message's role and its text: an assistant's calls follow what it said.
fn written(message: &Message) -> (&'static str, String) {
    match message {
        Message::User { text, .. } => ("user", text.to_string()),
        Message::Tool { text, .. } => ("result", text.to_string()),
        Message::Assistant(said) => {
            let mut text = said.text.to_string();
            for call in &said.calls {
                let _ = write!(text, "\n[call {} {}]", call.name, call.arguments);
            }
            ("you", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn pages_joined_are_the_messages_to_the_byte() {
        let text = |n: usize| format!("message {n} é\r\n{}\n\n", "long 長い line\n".repeat(n * 40));
        let messages: Vec<Message> =
            (0..6).map(|n| Message::User { text: text(n).into(), starts_turn: true }).collect();
        let covered = Covered {
            number: 1,
            seq: Seq(9),
            since: Timestamp(0),
            at: Timestamp(1),
            parent: None,
            messages,
            is_intact: true,
        };
        let (mut message, mut offset, mut rebuilt, mut pages) = (1, 0, vec![String::new(); 6], 0);
        loop {
            let query =
                Expansion { summary: 1, message: Some(message), offset: Some(offset), max_tokens: Some(300) };
            let page = page(&covered, &query).observation.to_string();
            assert!(page.lines().count() < 400 && page.chars().count() < 300 * 3 + 1_000, "{page}");
            pages += 1;
            let (body, next) = match page.rsplit_once("\n--- to go on: message ") {
                Some((body, next)) => (body, Some(next)),
                None => (&*page, None),
            };
            for part in body.split("\n--- message ").skip(1) {
                let (head, text) = part.split_once(", user ---\n").unwrap();
                rebuilt[head.parse::<usize>().unwrap() - 1].push_str(text);
            }
            let Some(next) = next else { break };
            let (at, rest) = next.split_once(", offset ").unwrap();
            (message, offset) = (at.parse().unwrap(), rest.trim_end_matches(" ---").parse().unwrap());
        }
        assert!(pages > 5);
        assert_eq!(rebuilt, (0..6).map(text).collect::<Vec<_>>());
    }
}
