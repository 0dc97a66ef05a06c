//! Actions: what the model may ask for, and how an asked-for action ends.
//!
//! Owns the registry's plain data, the class that decides about retries, the life of an effect and the
//! type that channels deliver. Refuses to run anything.

mod answered;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::{Answer, Seen};
use crate::event::Conversation;
use crate::ids::ActionId;
use crate::model::ToolDefinition;
use crate::time::Timestamp;

pub use answered::Answered;

/// What repeating an action costs; decides whether it may be tried again by itself (`C-EFF-1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Changes nothing anywhere.
    Pure,
    /// Changes something, and a repeat with the same id changes nothing more.
    Idempotent,
    /// Changes something that can be taken back; a repeat would change it again.
    Reversible,
    /// Cannot be taken back.
    Irreversible,
}

impl Class {
    /// Whether an attempt whose end is unknown may simply be made again.
    pub fn may_repeat(self) -> bool {
        match self {
            Class::Pure | Class::Idempotent => true,
            Class::Reversible | Class::Irreversible => false,
        }
    }
}

/// What an action is to the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Work without a meaning of its own to the core.
    Ordinary,
    /// Speaks to someone through the channel of this instance name. Nothing else ever speaks.
    Delivery {
        /// The channel's instance name; `local` for the operator.
        channel: Arc<str>,
    },
    /// The yield that asks for a durable wakeup. Run by the core itself.
    Wait,
    /// Decides about an attention item of this channel. Run by the core itself.
    Mark {
        /// The channel's instance name.
        channel: Arc<str>,
    },
    /// Runs code that calls the other actions; each of its calls is an action of its own.
    Cell,
}

/// What an action touches, so that two calls on one thing run in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Nothing that another call could touch.
    None,
    /// One thing for the whole action, by this name.
    Named(Arc<str>),
    /// What the argument of this name says, such as a path.
    Argument(Arc<str>),
}

/// One action as the registry has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionSpec {
    /// What the model is told.
    pub tool: ToolDefinition,
    /// What it is to the core.
    pub role: Role,
    /// What repeating it costs.
    pub class: Class,
    /// Whether a running attempt can be killed; otherwise a preempted attempt is detached (`C-EFF-2`).
    pub cancellable: bool,
    /// What it touches.
    pub resource: Resource,
    /// How long one attempt may take.
    pub deadline: Duration,
}

impl ActionSpec {
    /// The name that a call uses.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// The name of what a call with these arguments touches, if anything.
    pub fn resource_of(&self, arguments: &serde_json::Value) -> Option<String> {
        match &self.resource {
            Resource::None => None,
            Resource::Named(name) => Some(name.to_string()),
            Resource::Argument(name) => {
                arguments.get(&**name).and_then(|v| v.as_str()).map(|value| format!("{name}={value}"))
            }
        }
    }
}

/// How an effect ended. A receipt cannot exist without an intent: only the core makes one into a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// It happened.
    Confirmed,
    /// It did not happen, or did not succeed.
    Failed {
        /// Why.
        why: FailureKind,
    },
    /// It cannot be known whether it happened. Never retried blindly.
    Unknown,
}

impl End {
    /// It failed, for this reason.
    pub fn failed(why: FailureKind) -> Self {
        End::Failed { why }
    }

    /// Whether it is certain that it happened.
    pub fn is_confirmed(&self) -> bool {
        matches!(self, End::Confirmed)
    }
}

/// Why an effect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The call itself cannot be run: unknown action, arguments that are no valid input.
    Invalid,
    /// Policy said no.
    Denied,
    /// It ended before it began, or was killed.
    Cancelled,
    /// It took longer than its deadline.
    TimedOut,
    /// It was intended too long ago to be done by surprise.
    Stale,
    /// A limit of the turn was reached before it could run.
    NotRun,
    /// The other side refused it, or it failed in its own way.
    Refused,
}

impl FailureKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Invalid => "invalid",
            FailureKind::Denied => "denied",
            FailureKind::Cancelled => "cancelled",
            FailureKind::TimedOut => "timed_out",
            FailureKind::Stale => "stale",
            FailureKind::NotRun => "not_run",
            FailureKind::Refused => "refused",
        }
    }
}

/// What an attempt came to, as its executor tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What the model is told, in full. Quoted people's text is already escaped. Beside an answer, only what a
    /// receipt says of it.
    pub observation: Arc<str>,
    /// What it answers, where that is more than a text: the call's result is made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<Answer>>,
    /// What a delivery has said where; also of one that failed after its first part (`C-EFF-4`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Box<Sent>>,
    /// The wait that it ends with, as that action's arguments: the call is answered when the wait ends (`C-YLD-3`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Arc<str>>,
}

/// What a delivery has said where, as its channel tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// Where.
    pub conversation: Conversation,
    /// The external id of the message that it refers to, if it refers to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Arc<str>>,
    /// The attention item that the call named, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Arc<str>>,
    /// The external ids of the messages that were made, in order.
    pub messages: Vec<Arc<str>>,
}

impl Outcome {
    /// It happened, with this to show for it.
    pub fn confirmed(observation: impl Into<Arc<str>>) -> Self {
        Outcome { end: End::Confirmed, observation: observation.into(), answer: None, sent: None, wait: None }
    }

    /// It was said, there.
    pub fn sent(observation: impl Into<Arc<str>>, sent: Sent) -> Self {
        Outcome { sent: Some(Box::new(sent)), ..Outcome::confirmed(observation) }
    }

    /// It happened, and this is its answer.
    pub fn answered(answer: Answer) -> Self {
        let observation: Arc<str> = answer.gist().into();
        Outcome { answer: Some(Box::new(answer)), ..Outcome::confirmed(observation) }
    }

    /// It has come to its end, and then waits as an action that waits would with these arguments.
    pub fn waits(observation: impl Into<Arc<str>>, arguments: impl Into<Arc<str>>) -> Self {
        Outcome { wait: Some(arguments.into()), ..Outcome::confirmed(observation) }
    }

    /// It failed.
    pub fn failed(why: FailureKind, observation: impl Into<Arc<str>>) -> Self {
        Outcome { end: End::failed(why), ..Outcome::confirmed(observation) }
    }

    /// It cannot be known.
    pub fn unknown(observation: impl Into<Arc<str>>) -> Self {
        Outcome { end: End::Unknown, ..Outcome::confirmed(observation) }
    }
}

/// An attempt that the runtime is told to make. Only the core can build one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The action.
    pub action: ActionId,
    /// The action's name in the registry.
    pub name: Arc<str>,
    /// The arguments, valid JSON of an object.
    pub arguments: Arc<str>,
    /// Which attempt this is, from 1.
    pub number: u32,
    /// When the attempt counts as failed.
    pub deadline: Timestamp,
    /// The frame that defaults are resolved against.
    pub frame: FrameContext,
    /// Every conversation that has an alias.
    pub conversations: Conversations,
    /// The files that the agent knows: one that it has not seen as it is, it does not change.
    pub seen: Seen,
}

/// Where a turn's deliveries go by default: what its opening frame says, for as long as it lives (`B-DIS-6`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameContext {
    /// The only conversation of the frame; none when it has several or none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Conversation>,
    /// What a reply would refer to in each conversation of the frame: the newest message that addresses the
    /// agent, else the newest at all. One that a confirmed delivery has answered is gone (`B-ATT-3`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Anchor>,
}

/// The conversations that have an alias, in the order in which they were given (`B-DIS-5`). Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conversations(Arc<Vec<(Conversation, Arc<str>)>>);

impl Conversations {
    /// The alias of a conversation, if it has been given one.
    pub fn alias(&self, conversation: &Conversation) -> Option<&Arc<str>> {
        self.iter().find(|(known, _)| *known == conversation).map(|(_, alias)| alias)
    }

    /// The conversation of a channel that has this alias, written `d1` or `conv:d1`.
    pub fn named(&self, instance: &str, alias: &str) -> Option<&Conversation> {
        let alias = alias.strip_prefix("conv:").unwrap_or(alias);
        let is_it =
            |(known, name): &(&Conversation, &Arc<str>)| &*known.instance == instance && &***name == alias;
        self.iter().find(is_it).map(|(known, _)| known)
    }

    /// Every conversation with its alias.
    pub fn iter(&self) -> impl Iterator<Item = (&Conversation, &Arc<str>)> {
        self.0.iter().map(|(conversation, alias)| (conversation, alias))
    }

    pub(crate) fn add(&mut self, conversation: Conversation, alias: Arc<str>) {
        Arc::make_mut(&mut self.0).push((conversation, alias));
    }
}

/// What a reply in a conversation would refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The conversation.
    pub conversation: Conversation,
    /// The happening's name at its source.
    pub external_id: Arc<str>,
}

/// Something to be said. The only type that a channel delivers; it can only be built from an attempt of a
/// delivery action, so that scratch can never be one (`B-SPEECH-1`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    attempt: Attempt,
    channel: Arc<str>,
    first_attempted: Timestamp,
}

impl Delivery {
    pub(crate) fn new(attempt: Attempt, channel: Arc<str>, first_attempted: Timestamp) -> Self {
        Delivery { attempt, channel, first_attempted }
    }

    /// The action that speaks.
    pub fn action(&self) -> ActionId {
        self.attempt.action
    }

    /// The attempt, with its arguments and the frame that its defaults come from.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The instance name of the channel.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// When the first attempt of this delivery was recorded; what a reconciliation reads the channel from.
    pub fn first_attempted(&self) -> Timestamp {
        self.first_attempted
    }
}
