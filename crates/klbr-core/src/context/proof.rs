//! The proof that a request extends the one before it, byte for byte (`C-PFX-1`).
//!
//! Owns the comparison of two requests of one lane (provider and model). Refuses to judge whether a break was
//! meant: whoever made a new prefix has its cause.

use serde::{Deserialize, Serialize};

use super::reasoning::current_turn;
use crate::model::{AssistantMessage, Message, Request};

/// How a request relates to the one before it. Offsets are in bytes of the requests as this crate writes them:
/// the system prompt, the tool list, then each message as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It begins with everything that was sent before.
    Extension,
    /// It does so but for the reasoning of earlier turns, which a new turn leaves out.
    ReasoningDropped(Difference),
    /// It does not.
    Broken(Difference),
}

/// Where two requests begin to differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// In which part.
    pub part: Part,
    /// The first byte that differs.
    pub offset: u64,
}

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The effort, which a template may write before everything else.
    Effort,
    /// The system prompt.
    System,
    /// The tool list.
    Tools,
    /// The message with this index.
    Message(usize),
}

/// Compares a request with the one before it in the same lane.
pub fn compare(before: &Request, after: &Request) -> Verdict {
    let broken = |part, offset| Verdict::Broken(Difference { part, offset });
    if before.parameters.effort != after.parameters.effort {
        return broken(Part::Effort, 0);
    }
    if before.system != after.system {
        return broken(Part::System, common(&before.system, &after.system));
    }
    let mut offset = before.system.len() as u64;
    if before.tools != after.tools {
        return broken(Part::Tools, offset + common(&before.tools, &after.tools));
    }
    offset += before.tools.len() as u64;
    let current = current_turn(&after.messages);
    let mut dropped = None;
    for (at, earlier) in before.messages.iter().enumerate() {
        let later = after.messages.get(at);
        if later == Some(earlier) {
            continue;
        }
        // Only a difference needs its place: where there is none, nothing is written.
        let place = || {
            let same: u64 = before.messages[..at].iter().map(|message| written(message).len() as u64).sum();
            offset + same + common(&written(earlier), &later.map(written).unwrap_or_default())
        };
        let part = Part::Message(at);
        if at >= current || later != without_reasoning(earlier).as_ref() {
            return broken(part, place());
        }
        dropped.get_or_insert_with(|| Difference { part, offset: place() });
    }
    dropped.map_or(Verdict::Extension, Verdict::ReasoningDropped)
}

fn without_reasoning(message: &Message) -> Option<Message> {
    match message {
        Message::Assistant(said) => {
            Some(Message::Assistant(AssistantMessage { reasoning: None, ..said.clone() }))
        }
        Message::User { .. } | Message::Tool { .. } => None,
    }
}

fn written(message: &Message) -> String {
    serde_json::to_string(message).expect("a message is texts and nothing that JSON cannot say")
}

fn common(before: &str, after: &str) -> u64 {
    before.bytes().zip(after.bytes()).take_while(|(before, after)| before == after).count() as u64
}
