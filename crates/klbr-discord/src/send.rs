//! Speaking: from a delivery to its receipt.
//!
//! Owns where it goes (`B-DIS-6`), what it refers to (`B-DIS-7`), how long it may be (`B-DIS-8`, `B-DIS-9`), and what
//! is certain about its end (`C-EFF-4`, `C-EFF-5`). Refuses to guess: what cannot be known is unknown.

mod attempt;
mod nonce;
mod reconcile;
mod resolve;
mod split;

use std::time::Duration;

use klbr_core::action::{ActionSpec, Class, Delivery, FailureKind, Outcome, Resource, Role, Sent};
use klbr_core::event::Conversation;
use klbr_core::model::ToolDefinition;
use klbr_core::runtime::tool::arguments;
use klbr_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::discord::{Inner, now};
use crate::id::{ChannelId, MessageId};
use crate::kept::Plan;
use nonce::nonce;
pub(crate) use resolve::{Place, resolve};
use split::split;

/// The name of the action that speaks.
pub(crate) const NAME: &str = "discord_send";
/// How long one attempt may take, rate limits included.
const DEADLINE: Duration = Duration::from_secs(120);
/// What is kept of it for the answer's own way.
const RESERVE: Duration = Duration::from_secs(2);

/// What `discord_send` is called with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// What is said, at most 2,000 characters unless `split` is true. Discord's Markdown.
    content: String,
    /// Where: the id of a conversation, like d1 or conv:d1. May be left out when this turn's messages come from one
    /// conversation only.
    #[serde(default)]
    conversation_id: Option<String>,
    /// Where, as an alternative: the id of a channel as Discord has it.
    #[serde(default)]
    channel_id: Option<String>,
    /// The message that this one shall refer to, like msg:123. Usually left out: a reference is added by itself where
    /// others have written since.
    #[serde(default)]
    reply_to: Option<String>,
    /// The pending message that this answers, like msg:123: it is marked as acted on when this was sent. May be left
    /// out for the newest one of this turn.
    #[serde(default)]
    source_item_id: Option<String>,
    /// Whether a longer text may be sent as several messages, cut between paragraphs, lines or words.
    #[serde(default)]
    split: Option<bool>,
}

/// A delivery that can be made.
#[derive(Clone, Debug)]
struct Speech {
    conversation: Conversation,
    /// As results name the conversation.
    alias: String,
    channel: ChannelId,
    parts: Vec<String>,
    /// The message that the call wants to refer to.
    reply_to: Option<MessageId>,
    /// The message that the frame would have it refer to.
    anchor: Option<MessageId>,
    item: Option<String>,
}

/// The action, as the registry has it.
pub(crate) fn action(instance: &str) -> ActionSpec {
    ActionSpec {
        tool: ToolDefinition {
            name: NAME.to_owned(),
            description:
                "Sends a message to a Discord conversation: to a channel, a thread or a person. Use it when \
                          an answer is useful there; much of what is said in a channel needs none."
                    .to_owned(),
            parameters: schemars::schema_for!(Arguments).to_value(),
        },
        role: Role::Delivery { channel: instance.into() },
        class: Class::Irreversible,
        cancellable: false,
        // Two messages of one step arrive in their order.
        resource: Resource::Named(NAME.into()),
        deadline: DEADLINE,
    }
}

impl Inner {
    /// Says something, and answers with its receipt.
    pub(crate) async fn deliver(&self, delivery: &Delivery) -> Outcome {
        let speech = match self.speech(delivery) {
            Ok(speech) => speech,
            Err(refusal) => return refusal,
        };
        let plan = match self.begin(delivery, &speech).await {
            Ok(plan) => plan,
            Err(refusal) => return refusal,
        };
        self.speak(delivery, &speech, plan, attempt::Before::Nothing, self.settings.nonce_window).await
    }

    /// Decides what a delivery says where, and keeps that: what an attempt does is known before it is made.
    async fn begin(&self, delivery: &Delivery, speech: &Speech) -> Result<Plan, Outcome> {
        let latest = self.world().place(speech.channel).and_then(|place| place.latest);
        // Refers to the message only when others have written since.
        let anchor = speech.anchor.filter(|anchor| latest.is_some_and(|latest| latest != *anchor));
        let plan = Plan {
            channel: speech.channel,
            reply_to: speech.reply_to.or(anchor),
            confirmed: Vec::new(),
            at: delivery.first_attempted(),
        };
        self.kept.keep_plan(delivery.action(), &plan).await.map_err(|error| {
            Outcome::failed(FailureKind::Refused, format!("Not sent: its plan could not be kept: {error}."))
        })?;
        Ok(plan)
    }

    /// Reads a delivery; refuses it with what is wrong.
    fn speech(&self, delivery: &Delivery) -> Result<Speech, Outcome> {
        let attempt = delivery.attempt();
        let call: Arguments = arguments(attempt)?;
        let invalid = |why: String| Outcome::failed(FailureKind::Invalid, format!("Not sent: {why}."));
        let instance = &self.settings.source;
        let named =
            Place { conversation: call.conversation_id.as_deref(), channel: call.channel_id.as_deref() };
        let conversation = resolve(attempt, instance, named).map_err(invalid)?;
        let channel: ChannelId = conversation
            .id
            .parse()
            .map_err(|_| invalid(format!("{:?} is not a channel of Discord", conversation.id)))?;
        let parts = split(&call.content, call.split.unwrap_or_default()).map_err(invalid)?;
        let message = |text: &str| {
            MessageId::read(text)
                .map_err(|_| invalid(format!("{text:?} is not a message's id, like msg:123")))
        };
        let given = |text: &Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let reply_to = given(&call.reply_to).as_deref().map(message).transpose()?;
        let item = given(&call.source_item_id).as_deref().map(message).transpose()?;
        let anchors = attempt.frame.anchors.iter();
        let anchor = anchors
            .filter(|anchor| anchor.conversation == conversation)
            .find_map(|anchor| target(&anchor.external_id));
        let alias = attempt
            .conversations
            .alias(&conversation)
            .map_or(conversation.id.to_string(), |alias| alias.to_string());
        Ok(Speech {
            conversation,
            alias,
            channel,
            parts,
            reply_to,
            anchor,
            item: item.map(MessageId::external),
        })
    }
}

impl Speech {
    /// What has been said of it, as the core is told.
    fn sent(&self, plan: &Plan, made: Vec<String>) -> Sent {
        Sent {
            conversation: self.conversation.clone(),
            reply_to: plan.reply_to.map(|message| message.external().into()),
            item: self.item.as_deref().map(Into::into),
            messages: made.into_iter().map(Into::into).collect(),
        }
    }

    /// What the model is told of a delivery that was made.
    fn observation(&self, plan: &Plan) -> String {
        let made: Vec<String> = plan
            .confirmed
            .iter()
            .map(|message| message.map_or("msg:unknown".to_owned(), MessageId::external))
            .collect();
        let reply_to = plan.reply_to.map_or("none".to_owned(), |message| message.to_string());
        let at: Timestamp =
            plan.confirmed.iter().flatten().next_back().map_or_else(now, |message| message.at());
        format!("sent conv:{} {} reply_to:{reply_to} time:{at}", self.alias, made.join(" "))
    }
}

/// The message that a happening is about, if a reply can refer to it.
fn target(external_id: &str) -> Option<MessageId> {
    let (kind, rest) = external_id.split_once(':')?;
    match kind {
        "msg" => rest.parse().ok(),
        "edit" => rest.split(':').next()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_refers_to_messages_and_their_edits_only() {
        let id = MessageId::new(12);
        assert_eq!(target("msg:12"), id);
        assert_eq!(target("edit:12:2026-01-01T00:00:00+00:00"), id);
        for other in ["del:12", "react:12:5:👍:1", "thread:12", "msg:x", "12"] {
            assert_eq!(target(other), None, "{other}");
        }
    }
}
