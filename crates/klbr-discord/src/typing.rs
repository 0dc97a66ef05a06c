//! The typing indicator.
//!
//! Owns when Discord shows that the agent is composing: from the beginning of a turn that was addressed to it in one
//! conversation, and otherwise once it writes a message; until it has said it, or the turn ends. A batch of chatter that
//! the agent leaves alone shows nothing. Failures mean nothing here.

use std::time::Duration;

use klbr_core::block::{Block, Content, Name, parse};
use klbr_core::runtime::AgentHandle;
use klbr_core::update::Happening;
use tokio::time::{Instant, sleep, sleep_until};

use crate::discord::Inner;
use crate::id::ChannelId;
use crate::send;

/// How often it is shown again: Discord shows it for ten seconds.
const EVERY: Duration = Duration::from_secs(8);
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long is waited before updates are asked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// Where and how a turn's opening frame addresses the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Opening {
    /// The alias of its only conversation.
    alias: String,
    is_addressed: bool,
}

/// What is known of the turn that runs.
#[derive(Debug, Default)]
struct Turn {
    opening: Option<Opening>,
    is_running: bool,
    is_composing: bool,
}

/// Follows the agent's turns until it stops; for ever when it is switched off.
pub(crate) async fn run(inner: &Inner, handle: &AgentHandle) {
    if !inner.settings.typing {
        return std::future::pending().await;
    }
    loop {
        match handle.updates(None).await {
            Ok(mut updates) => {
                let mut turn = Turn::default();
                let mut due = Instant::now();
                loop {
                    let told = tokio::select! {
                        told = updates.next() => Some(told),
                        () = sleep_until(due), if turn.shows().is_some() => None,
                    };
                    match told {
                        Some(Ok(Some(update))) => turn.handle(&inner.settings.source, &update.happening),
                        Some(Ok(None)) => return,
                        Some(Err(_)) => break,
                        None => {
                            due = Instant::now() + EVERY;
                            if let Some(channel) = channel(inner, handle, turn.shows()).await {
                                // Nothing depends on it.
                                let _ = inner.http.typing(channel, Instant::now() + PATIENCE).await;
                            }
                        }
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "the agent's turns cannot be followed"),
        }
        sleep(PAUSE).await;
    }
}

async fn channel(inner: &Inner, handle: &AgentHandle, alias: Option<&str>) -> Option<ChannelId> {
    let conversations = handle.conversations().await.ok()?;
    conversations.named(&inner.settings.source, alias?)?.id.parse().ok()
}

impl Turn {
    fn handle(&mut self, instance: &str, happening: &Happening) {
        match happening {
            // A later frame of the same turn changes nothing of where it speaks.
            Happening::Shown { text, .. } if self.opening.is_none() => {
                self.opening = opening(instance, text);
                self.is_composing |= self.opening.as_ref().is_some_and(|opening| opening.is_addressed);
            }
            Happening::TurnStarted { .. } => self.is_running = true,
            Happening::CallDelta { name } if name == send::NAME => self.is_composing = true,
            Happening::Delivered { channel, .. } if &**channel == instance => self.is_composing = false,
            Happening::TurnEnded { .. } => *self = Turn::default(),
            _ => {}
        }
    }

    /// The conversation in which it is shown now.
    fn shows(&self) -> Option<&str> {
        let is_shown = self.is_running && self.is_composing;
        self.opening.as_ref().filter(|_| is_shown).map(|opening| opening.alias.as_str())
    }
}

/// What a frame's text says of its conversation, if it has exactly one and that is of this instance.
fn opening(instance: &str, text: &str) -> Option<Opening> {
    let blocks = parse(text).ok()?;
    let mut places = blocks.iter().filter(|block| block.name() == Name::Channel);
    let (place, None) = (places.next()?, places.next()) else { return None };
    if place.attribute("source") != Some(instance) {
        return None;
    }
    let is_addressed = place.contents().iter().any(|content| match content {
        Content::Block(message) => is_addressed(message),
        Content::Text(_) => false,
    });
    Some(Opening { alias: place.attribute("conversation")?.to_owned(), is_addressed })
}

fn is_addressed(message: &Block) -> bool {
    message.name() == Name::Message && matches!(message.attribute("context"), Some("dm" | "mention"))
}

#[cfg(test)]
mod tests {
    use klbr_core::ids::{FrameId, TurnId};
    use klbr_core::record::{TurnCause, TurnEnd};

    use super::*;

    fn shown(text: &str) -> Happening {
        Happening::Shown { frame: FrameId(1), events: Vec::new(), text: text.into() }
    }

    fn frame(context: &str, conversation: &str) -> String {
        format!(
            "<channel source=\"discord\" kind=\"channel\" conversation=\"{conversation}\">\n<message id=\"e1\" \
             context=\"{context}\">hi</message>\n</channel>"
        )
    }

    fn started() -> Happening {
        Happening::TurnStarted { turn: TurnId(1), cause: TurnCause::Events, model: "m".into() }
    }

    #[test]
    fn it_is_shown_while_an_addressed_turn_composes_and_not_for_chatter_left_alone() {
        let mut turn = Turn::default();
        turn.handle("discord", &shown(&frame("mention", "d1")));
        turn.handle("discord", &started());
        assert_eq!(turn.shows(), Some("d1"));
        turn.handle("discord", &shown(&frame("dm", "d2")));
        assert_eq!(turn.shows(), Some("d1"), "an addition changes nothing");
        let delivered = Happening::Delivered {
            action: "1.1".parse::<klbr_core::ids::StepId>().unwrap().action(1),
            channel: "discord".into(),
            text: String::new(),
        };
        turn.handle("discord", &delivered);
        assert_eq!(turn.shows(), None);
        turn.handle("discord", &Happening::TurnEnded { turn: TurnId(1), end: TurnEnd::Yielded });

        turn.handle("discord", &shown(&frame("guild", "d1")));
        turn.handle("discord", &started());
        assert_eq!(turn.shows(), None);
        turn.handle("discord", &Happening::CallDelta { name: "discord_send".to_owned() });
        assert_eq!(turn.shows(), Some("d1"));
    }

    #[test]
    fn two_conversations_or_another_channel_show_nothing() {
        assert_eq!(opening("discord", &format!("{}\n{}", frame("dm", "d1"), frame("dm", "d2"))), None);
        assert_eq!(opening("other", &frame("dm", "d1")), None);
        assert_eq!(opening("discord", "not a block"), None);
    }
}
