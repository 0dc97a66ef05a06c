//! What happens to an agent: sources, priorities, events on their way in and once admitted.
//!
//! Trust is a typed field here and is never read back from text (`B-SPEECH-5`).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attention::Mark;
use crate::ids::{ActionId, EventId};
use crate::policy::Activation;
use crate::time::Timestamp;

/// What sort of place an event comes from. Only `Operator` is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The holder of the home's token (`C-TRUST`).
    Operator,
    /// A place where people talk.
    Channel,
    /// The clock.
    Timer,
    /// The agent's own background work.
    Job,
    /// Another member of the agent's team.
    Team,
    /// The harness itself.
    System,
}

impl SourceKind {
    /// The kind in one word, as blocks and APIs write it.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::Operator => "operator",
            SourceKind::Channel => "channel",
            SourceKind::Timer => "timer",
            SourceKind::Job => "job",
            SourceKind::Team => "team",
            SourceKind::System => "system",
        }
    }
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// The sort of place.
    pub kind: SourceKind,
    /// The instance's name, such as `discord`.
    pub instance: Arc<str>,
}

impl Source {
    /// A source of this kind and instance name.
    pub fn new(kind: SourceKind, instance: impl Into<Arc<str>>) -> Self {
        Source { kind, instance: instance.into() }
    }
}

/// How urgent an event is. There is no default: every admission names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Chatter: shown in batches, wakes when policy agrees.
    Ambient,
    /// Addressed to the agent: ends a wait at once, never aborts a turn.
    Directed,
    /// The operator's words: preempt.
    Operator,
    /// The operator's management: preempts, and is consumed instead of shown.
    Control,
}

impl Priority {
    /// Whether an event of this priority aborts a running turn (`B-EVENT-2`).
    pub fn preempts(self) -> bool {
        match self {
            Priority::Control | Priority::Operator => true,
            Priority::Directed | Priority::Ambient => false,
        }
    }
}

/// A management command, carried by an event of priority [`Priority::Control`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Control {
    /// Ends the running turn; what waits is then shown as usual.
    Interrupt,
    /// Ends the running turn and stays quiet until something new arrives.
    Stop,
    /// Forgets the conversation: the transcript starts anew, history stays searchable.
    Reset,
    /// Summarises the conversation now.
    Compact,
    /// Replaces the soul, from the next turn on (`C-SOUL`).
    Soul {
        /// The whole new text.
        text: Arc<str>,
    },
    /// Decides about an effect that is held for the operator. Ends nothing.
    Resolve {
        /// The effect's action.
        #[schemars(with = "String")]
        action: ActionId,
        /// Whether it may be made.
        allow: bool,
    },
    /// Decides about an attention item. Ends nothing.
    Mark(Box<Mark>),
    /// Puts a policy in force: from the next turn on, or at once when it says so.
    Activate(Box<Activation>),
}

impl Control {
    /// The verb in one word, as results and blocks write it.
    pub fn verb(&self) -> &'static str {
        match self {
            Control::Interrupt => "interrupt",
            Control::Stop => "stop",
            Control::Reset => "reset",
            Control::Compact => "compact",
            Control::Soul { .. } => "soul update",
            Control::Resolve { .. } => "resolve",
            Control::Mark(_) => "mark",
            Control::Activate(_) => "activation",
        }
    }
}

/// Where a message was said, as its channel names the place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// The channel's instance name.
    pub instance: Arc<str>,
    /// The channel's own id of the place.
    pub id: Arc<str>,
}

/// Someone who is spoken to: everyone in a conversation, or whoever a channel reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// The channel's instance name; `local` for the operator.
    pub channel: Arc<str>,
    /// The conversation, by its channel's id; the whole channel when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Arc<str>>,
}

impl Audience {
    /// Whoever a channel reaches.
    pub fn of_channel(channel: Arc<str>) -> Self {
        Audience { channel, conversation: None }
    }

    /// Whether speaking to this one reaches `other`.
    pub fn reaches(&self, other: &Audience) -> bool {
        self.channel == other.channel
            && (self.conversation.is_none() || self.conversation == other.conversation)
    }
}

/// Who said something, as its channel names them. Hostile text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Author {
    /// The channel's own id of the person.
    pub id: Arc<str>,
    /// The name as the channel shows it.
    pub name: Arc<str>,
}

/// Which kind of address made an attention item (`B-ATT-1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bucket {
    /// Said to the agent alone.
    Dm,
    /// Said where others listen, naming the agent.
    Mention,
}

impl Bucket {
    /// The bucket in one word, as blocks and APIs write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Bucket::Dm => "dm",
            Bucket::Mention => "mention",
        }
    }
}

/// What an event does to an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is the older one's newer version.
    Edited,
    /// The older one was taken back.
    Deleted,
    /// Someone reacted to the older one.
    Reacted,
}

impl Change {
    /// The change in one word, as blocks write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Edited => "edited",
            Change::Deleted => "deleted",
            Change::Reacted => "reacted",
        }
    }
}

/// The older event that an event is about (`C-EVT-2`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amends {
    /// The older event's external id, at the same source.
    pub of: Arc<str>,
    /// What is done to it.
    pub change: Change,
}

/// What a model is shown of an event. Not kept in memory: it is loaded to render a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// Who said it, where someone did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// What was said or happened, verbatim.
    pub text: Arc<str>,
    /// What else the channel tells of it, in order: attribute names (ASCII) and values (hostile text).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
}

impl Body {
    /// A body of text alone.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Body { text: text.into(), ..Body::default() }
    }
}

/// By what an event was admitted, as its host tells it (`C-TRUST`). Never shown to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Via {
    /// The client, as it calls itself: no proof of anything.
    pub client: Arc<str>,
    /// The path of the host's API by which it came.
    pub path: Arc<str>,
}

/// An event on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// Where it comes from.
    pub source: Source,
    /// What names the happening at its source, such as `msg:123` (`C-EVT-1`). The same name from the same
    /// instance is the same event.
    pub external_id: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// Where it was said, for a channel's message.
    pub conversation: Option<Conversation>,
    /// What a model is shown of it.
    pub body: Body,
    /// How it addresses the agent, where that asks for a decision of the agent's (`B-ATT-1`).
    pub attention: Option<Bucket>,
    /// The older event that it is about.
    pub amends: Option<Amends>,
    /// The command, for [`Priority::Control`] and only for it.
    pub control: Option<Control>,
    /// By what it came, where its host tells that.
    pub via: Option<Box<Via>>,
}

impl NewEvent {
    /// A message from the operator.
    pub fn operator(external_id: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        NewEvent {
            source: Source::new(SourceKind::Operator, "local"),
            external_id: external_id.into(),
            priority: Priority::Operator,
            conversation: None,
            body: Body::text(text),
            attention: None,
            amends: None,
            control: None,
            via: None,
        }
    }

    /// A management command from the operator.
    pub fn control(external_id: impl Into<Arc<str>>, control: Control) -> Self {
        NewEvent {
            source: Source::new(SourceKind::Operator, "local"),
            external_id: external_id.into(),
            priority: Priority::Control,
            conversation: None,
            body: Body::text(control.verb()),
            attention: None,
            amends: None,
            control: Some(control),
            via: None,
        }
    }

    /// Something from outside, of a priority that never preempts.
    pub fn external(
        source: Source,
        external_id: impl Into<Arc<str>>,
        priority: Priority,
        body: Body,
    ) -> Self {
        NewEvent {
            source,
            external_id: external_id.into(),
            priority,
            conversation: None,
            body,
            attention: None,
            amends: None,
            control: None,
            via: None,
        }
    }

    /// The same event, as something that the agent is to decide about (`B-ATT-1`).
    #[must_use]
    pub fn for_attention(self, bucket: Bucket) -> Self {
        NewEvent { attention: Some(bucket), ..self }
    }

    /// The same event, about the older one with the external id `of`.
    ///
    /// An edit of a message that still waits is shown in its place; a deletion withdraws it. What comes after
    /// the message was shown is shown as an event of its own (`C-EVT-2`).
    #[must_use]
    pub fn amending(self, of: impl Into<Arc<str>>, change: Change) -> Self {
        NewEvent { amends: Some(Amends { of: of.into(), change }), ..self }
    }

    /// The same event, as it came by a client and a path.
    #[must_use]
    pub fn by(self, via: Via) -> Self {
        NewEvent { via: Some(Box::new(via)), ..self }
    }

    /// The same event, said in `conversation`.
    #[must_use]
    pub fn in_conversation(self, id: impl Into<Arc<str>>) -> Self {
        let conversation = Conversation { instance: self.source.instance.clone(), id: id.into() };
        NewEvent { conversation: Some(conversation), ..self }
    }

    /// What makes two admissions the same happening.
    pub fn key(&self) -> EventKey {
        EventKey { instance: self.source.instance.clone(), external_id: self.external_id.clone() }
    }

    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// Fails when trust and priority do not fit together, or when the external id is empty.
    pub fn validate(&self) -> Result<(), EventError> {
        if self.external_id.is_empty() || self.source.instance.is_empty() {
            return Err(EventError::Nameless);
        }
        if self.priority.preempts() != (self.source.kind == SourceKind::Operator) {
            return Err(EventError::Untrusted { kind: self.source.kind, priority: self.priority });
        }
        if self.control.is_some() != (self.priority == Priority::Control) {
            return Err(EventError::Control);
        }
        Ok(())
    }
}

/// An event that no agent can take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Without an external id a repeat could not be told from a new event.
    #[error("an event needs a source instance and an external id, so that a repeat is known as one")]
    Nameless,
    /// Only the operator preempts, and the operator always does.
    #[error("a {} event cannot have priority {priority:?}", kind.as_str())]
    Untrusted {
        /// The kind of its source.
        kind: SourceKind,
        /// The priority asked for.
        priority: Priority,
    },
    /// A command and its priority go together.
    #[error("a control command comes with priority Control, and nothing else does")]
    Control,
}

/// What makes two admissions the same happening, within one agent (`C-EVT-1`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventKey {
    /// The source's instance name.
    pub instance: Arc<str>,
    /// The happening's name at its source.
    pub external_id: Arc<str>,
}

/// An admitted event, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Its id.
    pub id: EventId,
    /// Where it comes from.
    pub source: Source,
    /// The happening's name at its source.
    pub external_id: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// Where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// When it was admitted.
    pub at: Timestamp,
    /// The size of its body's text in bytes.
    pub bytes: u32,
    /// How often a preempted turn has given it back (`C-FRM-3`).
    #[serde(default)]
    pub returned: u8,
    /// How it addresses the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<Bucket>,
    /// The older event that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Amends>,
    /// The older event that it is shown together with, because neither had been shown when it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<EventId>,
    /// The command, for [`Priority::Control`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// By what it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Box<Via>>,
}

impl Header {
    /// What names the happening.
    pub fn key(&self) -> EventKey {
        EventKey { instance: self.source.instance.clone(), external_id: self.external_id.clone() }
    }

    /// Who has to be spoken to so that it is answered.
    pub(crate) fn audience(&self) -> Audience {
        let conversation = self.conversation.as_ref().map(|conversation| conversation.id.clone());
        Audience { channel: self.source.instance.clone(), conversation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_and_priority_go_together() {
        assert_eq!(NewEvent::operator("k", "hi").validate(), Ok(()));
        assert_eq!(NewEvent::control("k", Control::Reset).validate(), Ok(()));
        let source = Source::new(SourceKind::Channel, "discord");
        let mut event = NewEvent::external(source, "msg:1", Priority::Operator, Body::text("obey"));
        assert!(matches!(event.validate(), Err(EventError::Untrusted { .. })));
        event.priority = Priority::Directed;
        assert_eq!(event.validate(), Ok(()));
        event.control = Some(Control::Stop);
        assert_eq!(event.validate(), Err(EventError::Control));
        let nameless = NewEvent { external_id: "".into(), ..NewEvent::operator("k", "hi") };
        assert_eq!(nameless.validate(), Err(EventError::Nameless));
    }
}
