//! What an agent can do on Discord beside speaking (`B-DIS-8`).
//!
//! Owns `discord_fetch_history`, `discord_react` and `discord_list_conversations`. Results that quote people are blocks,
//! written by the core's own writer, so that nothing in them can pass for the harness (`C-MSG-2`).

mod history;
mod list;
mod react;

use std::time::Duration;

use klbr_core::action::{Attempt, FailureKind, Outcome};
use klbr_core::event::Conversation;
use tokio::time::Instant;

use crate::discord::Inner;
use crate::http::Failure;
use crate::id::ChannelId;
use crate::send::{Place, resolve};
pub(crate) use history::FetchHistory;
pub(crate) use list::ListConversations;
pub(crate) use react::React;

/// How long one call may take, rate limits included.
const DEADLINE: Duration = Duration::from_secs(60);
/// What is kept of it for the answer's own way.
const RESERVE: Duration = Duration::from_secs(2);

fn deadline() -> Instant {
    Instant::now() + DEADLINE - RESERVE
}

fn invalid(why: impl std::fmt::Display) -> Outcome {
    Outcome::failed(FailureKind::Invalid, format!("Not run: {why}."))
}

fn failed(failure: &Failure) -> Outcome {
    let why = match failure {
        Failure::Refused { .. } => FailureKind::Refused,
        Failure::NotSent(_) | Failure::Limited(_) | Failure::Unclear(_) => FailureKind::TimedOut,
    };
    Outcome::failed(why, format!("Failed: {failure}."))
}

/// The conversation that a call means, and its channel.
fn place(
    inner: &Inner,
    attempt: &Attempt,
    named: Option<&str>,
) -> Result<(Conversation, ChannelId), Outcome> {
    let named = Place { conversation: None, channel: named };
    let conversation = resolve(attempt, &inner.settings.source, named).map_err(invalid)?;
    let channel = conversation.id.parse().map_err(invalid)?;
    Ok((conversation, channel))
}

fn alias(attempt: &Attempt, conversation: &Conversation) -> String {
    attempt.conversations.alias(conversation).map_or(conversation.id.to_string(), |alias| alias.to_string())
}
