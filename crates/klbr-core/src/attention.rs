//! Attention: the social state of a message that was addressed to the agent (`B-ATT-1` to `B-ATT-6`).
//!
//! Owns the words: an item, its status, who decided and why, and the action that decides. Refuses to fold
//! anything: the items of an agent are part of its state.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::{ActionSpec, Class, Resource, Role};
use crate::event::{Bucket, Conversation, EventKey};
use crate::ids::{ActionId, EventId, FrameId};
use crate::model::ToolDefinition;
use crate::time::Timestamp;

/// What has become of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nobody has decided.
    Pending,
    /// It was taken note of.
    #[default]
    Seen,
    /// Something was done about it.
    Acted,
    /// It is left alone on purpose.
    Ignored,
}

impl Status {
    /// The status in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Seen => "seen",
            Status::Acted => "acted",
            Status::Ignored => "ignored",
        }
    }
}

/// What was done about an item; its `action` on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Nothing.
    None,
    /// A message that refers to it was sent.
    Replied,
    /// A message that does not refer to it was sent.
    Messaged,
    /// It was dismissed.
    Dismissed,
    /// It was noted.
    Noted,
}

impl Response {
    /// What is meant when only a status is given.
    pub fn of(status: Status) -> Self {
        match status {
            Status::Acted => Response::Replied,
            Status::Ignored => Response::Dismissed,
            Status::Pending | Status::Seen => Response::None,
        }
    }

    /// The response in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Response::None => "none",
            Response::Replied => "replied",
            Response::Messaged => "messaged",
            Response::Dismissed => "dismissed",
            Response::Noted => "noted",
        }
    }
}

/// Who changed an item's status (`B-ATT-2`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Decider {
    /// The model, by an action that marks.
    Model {
        /// The action.
        #[schemars(with = "String")]
        action: ActionId,
    },
    /// The receipt of something that was sent.
    Receipt {
        /// The action that sent it.
        #[schemars(with = "String")]
        action: ActionId,
    },
    /// Time: it was shown and nobody decided.
    Ageing,
    /// A hook.
    Policy,
    /// The operator.
    Operator,
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decider::Model { action } => write!(f, "model ({action})"),
            Decider::Receipt { action } => write!(f, "receipt ({action})"),
            Decider::Ageing => f.write_str("ageing"),
            Decider::Policy => f.write_str("policy"),
            Decider::Operator => f.write_str("operator"),
        }
    }
}

/// When something was first shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// The frame.
    pub frame: FrameId,
    /// When, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
}

/// A decision about an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Who made it.
    #[serde(flatten)]
    pub by: Decider,
    /// When, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
}

/// One message that was addressed to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The event that made it.
    pub event: EventId,
    /// The event that says what the message says now: a later one, once it was edited.
    pub newest: EventId,
    /// The message's name at its source.
    pub key: EventKey,
    /// Where it was said.
    pub conversation: Option<Conversation>,
    /// How it addresses the agent.
    pub bucket: Bucket,
    /// What has become of it.
    pub status: Status,
    /// What was done about it.
    pub action: Response,
    /// Why.
    pub note: Option<Arc<str>>,
    /// When it was admitted.
    pub at: Timestamp,
    /// When it was first shown, once it was.
    pub shown: Option<Shown>,
    /// Who decided, once someone has.
    pub decided: Option<Decision>,
}

impl Item {
    /// Whether `name` names it: its external id, with or without what stands before the first colon.
    pub fn is_named(&self, name: &str) -> bool {
        names(&self.key.external_id, name)
    }
}

/// Whether `name` is the external id, or what follows its first colon.
pub(crate) fn names(external_id: &str, name: &str) -> bool {
    external_id == name || external_id.split_once(':').is_some_and(|(_, bare)| bare == name)
}

/// A decision as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// The item: `msg:<id>` or the bare id.
    #[serde(rename = "item_id")]
    pub item: Arc<str>,
    /// What has become of it; `seen` when it is left out.
    #[serde(default)]
    pub status: Status,
    /// What was done about it; what the status suggests when it is left out.
    #[serde(default)]
    pub action: Option<Response>,
    /// Why, in a few words.
    #[serde(default)]
    pub note: Option<Arc<str>>,
}

impl Mark {
    /// What was done about the item.
    pub fn response(&self) -> Response {
        self.action.unwrap_or(Response::of(self.status))
    }
}

/// The action that decides about the items of a channel, for [`Role::Mark`]. The core runs it itself.
pub fn mark_tool(name: &str, channel: &str) -> ActionSpec {
    ActionSpec {
        tool: ToolDefinition {
            name: name.to_owned(),
            description:
                "Decides about a message that was addressed to you: whether you have taken note of it, \
                          have acted on it, or leave it alone, and why. Sending an answer marks it by itself."
                    .to_owned(),
            parameters: schemars::schema_for!(Mark).to_value(),
        },
        role: Role::Mark { channel: channel.into() },
        class: Class::Idempotent,
        cancellable: false,
        resource: Resource::None,
        deadline: std::time::Duration::from_secs(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_att_5_a_mark_that_makes_no_sense_names_the_choices() {
        let read = serde_json::from_str::<Mark>;
        let full = read(r#"{"item_id": "msg:1", "status": "acted", "note": "done"}"#).unwrap();
        assert_eq!((full.status, full.response()), (Status::Acted, Response::Replied));
        assert_eq!(read(r#"{"item_id": "1"}"#).unwrap().status, Status::Seen);
        let error = read(r#"{"item_id": "1", "status": "done"}"#).unwrap_err().to_string();
        assert!(error.contains("`pending`, `seen`, `acted`, `ignored`"), "{error}");
        let error = read(r#"{"item_id": "1", "action": "waved"}"#).unwrap_err().to_string();
        assert!(error.contains("`none`, `replied`, `messaged`, `dismissed`, `noted`"), "{error}");
    }
}
