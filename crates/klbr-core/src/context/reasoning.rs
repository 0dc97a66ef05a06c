//! Which reasoning a request carries: that of the turn it belongs to, and no other.
//!
//! Owns the rule. Refuses to touch what is stored: a transcript keeps every message's reasoning.

use crate::model::{AssistantMessage, Message};

/// Where the current turn begins: after the last message that started one; at 0 when none did.
pub fn current_turn(messages: &[Message]) -> usize {
    let starts = |message: &Message| matches!(message, Message::User { starts_turn: true, .. });
    messages.iter().rposition(starts).map_or(0, |at| at + 1)
}

/// The messages as a request carries them: assistant messages of the current turn with the reasoning that they
/// came with, those of earlier turns without, and none with an empty one.
pub fn carried(messages: &[Message]) -> Vec<Message> {
    let current = current_turn(messages);
    messages.iter().enumerate().map(|(at, message)| carry(message, at >= current)).collect()
}

fn carry(message: &Message, is_current: bool) -> Message {
    match message {
        Message::Assistant(said) => {
            let reasoning = said.reasoning.clone().filter(|reasoning| is_current && !reasoning.is_empty());
            Message::Assistant(AssistantMessage { reasoning, ..said.clone() })
        }
        Message::User { .. } | Message::Tool { .. } => message.clone(),
    }
}
