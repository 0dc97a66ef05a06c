//! The API's vocabulary: every body that goes over the wire, for the daemon and for its clients.
//!
//! Owns shapes and paths. Refuses to know how they are carried. Instants are UTC milliseconds.

pub mod path;
pub mod policy;

use std::sync::Arc;

use klbr_core::event::{Author, Bucket, Change, Priority, SourceKind};
use klbr_core::ids::{EventId, Seq};
use klbr_core::runtime::store::{Hit, Memory};
use klbr_core::status::{Attended, Status, Waiting};
use klbr_core::update::Update;
use klbr_discord::KnownConversation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The header that names a request, so that a repeat is known as one. Visible ASCII, at most 200 bytes.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header in which a client says what it calls itself, for the record; `User-Agent` is looked at where it is
/// absent. Visible ASCII and blanks, at most 100 bytes: more is cut off, and anything else becomes `?`.
pub const CLIENT: &str = "x-klbr-client";

/// Says something to the agent as its operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What is said; not blank.
    pub text: String,
}

/// An event is durable, and has this place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The event's id: the first one's, for a repeat.
    pub event: EventId,
    /// Whether the same happening had been admitted before.
    pub repeated: bool,
    /// The key that names it: the request's own, or one made for it.
    pub key: String,
}

/// Something that happened outside: what an adapter admits. Never the operator's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalEvent {
    /// Where it comes from.
    pub source: EventSource,
    /// What names the happening at its source; the `Idempotency-Key`, or a made one, when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// How urgent it is: `ambient` or `directed`.
    pub priority: Priority,
    /// The channel's own id of the place where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Who said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// What was said or happened.
    pub text: String,
    /// What else is told of it, in order: names and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
    /// How it addresses the agent, where that asks for a decision of the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<Bucket>,
    /// The older event that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Amended>,
}

/// The older event that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Amended {
    /// Its external id, at the same source.
    pub of: Arc<str>,
    /// What is done to it.
    pub change: Change,
}

/// Where an external event comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSource {
    /// The sort of place; anything but `operator`.
    pub kind: SourceKind,
    /// The instance's name, such as `discord`; anything but `local`.
    pub instance: String,
}

/// Decides about an effect that is held for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// Whether it may be made.
    pub allow: bool,
}

/// The soul: who the agent is, in the operator's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Soul {
    /// The whole text.
    pub text: String,
}

/// What an agent remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memories {
    /// Those that fit, best first.
    pub memories: Vec<Memory>,
}

/// A memory that was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remembered {
    /// As it is now; as it was, when it is forgotten.
    pub memory: Memory,
}

/// A change of what is remembered, by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
pub enum MemoryEdit {
    /// Remembers something new.
    Add {
        /// What; not blank.
        text: String,
        /// Where it belongs, such as `conversation:d1`.
        #[serde(default)]
        tags: Vec<String>,
        /// Whether it stands in front of every conversation.
        #[serde(default)]
        pinned: bool,
    },
    /// Changes one memory; what is absent stays.
    Update {
        /// Which.
        id: u64,
        /// The new text; not blank.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The new tags.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tags: Option<Vec<String>>,
        /// Whether it is pinned from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned: Option<bool>,
    },
    /// Forgets one memory.
    Forget {
        /// Which.
        id: u64,
    },
}

/// The agents of this home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agents {
    /// Each of them.
    pub agents: Vec<AgentEntry>,
}

/// One agent of this home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEntry {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub state: State,
}

/// How far an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Its history is being read; only its status is told.
    Starting,
    /// It lives.
    Ready,
    /// The daemon is stopping it.
    Stopping,
    /// It could not be started.
    Failed {
        /// Why.
        why: String,
    },
}

/// How an agent and its host are doing. Answered also while the agent starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatus {
    /// The agent's name.
    pub name: String,
    /// How far it is.
    #[serde(flatten)]
    pub state: State,
    /// The process that hosts it.
    pub daemon: DaemonStatus,
    /// The model server that it uses.
    pub model: ModelStatus,
    /// The channel that it listens to besides this API, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelStatus>,
    /// The agent's own account; absent until it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Status>,
}

/// How a channel of an agent is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelStatus {
    /// The channel's instance name.
    pub instance: String,
    /// Why it has ended; it listens while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The process that hosts an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// The release.
    pub version: String,
    /// The process id.
    pub pid: u32,
    /// How long it has run, in milliseconds.
    pub uptime_ms: u64,
    /// The home directory.
    pub home: String,
}

/// Which model server is in use, if any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "server", rename_all = "snake_case")]
pub enum ModelStatus {
    /// A server is in use.
    Known {
        /// Its address.
        base_url: String,
        /// The model.
        model: String,
        /// The model's context in tokens, where it is known.
        context_tokens: Option<u64>,
    },
    /// The host brought a model of its own.
    BuiltIn {
        /// The model.
        model: String,
    },
    /// No server is known; one is looked for again with each try.
    Absent {
        /// Why.
        why: String,
        /// What to do about it.
        hint: String,
    },
}

/// What the model server offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// The servers that answered.
    pub servers: Vec<ModelServer>,
    /// The server and model in use.
    pub in_use: ModelStatus,
}

/// One model server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelServer {
    /// Its address.
    pub base_url: String,
    /// What it offers, in its order.
    pub models: Vec<OfferedModel>,
}

/// A model that a server offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedModel {
    /// The name that a request uses.
    pub id: String,
    /// Its context in tokens, if the server tells.
    pub context_tokens: Option<u64>,
}

/// What waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inbox {
    /// The events that wait to be shown, most urgent first.
    pub waiting: Vec<Waiting>,
    /// What was addressed to the agent: undecided items first, each kind newest first.
    pub items: Vec<Attended>,
}

/// One attention item, with what it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemBody {
    /// The item.
    pub item: Attended,
    /// Who said it.
    pub author: Option<Author>,
    /// What it says now.
    pub text: Arc<str>,
}

/// The conversations of a channel, the most recently heard first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversations {
    /// Each of them.
    pub conversations: Vec<Conversation>,
}

/// One place where something was heard on Discord, by the name that the agent has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// Its alias, by which the agent knows it.
    pub alias: Option<Arc<str>>,
    /// What the adapter knows of it.
    #[serde(flatten)]
    pub known: KnownConversation,
}

impl Conversation {
    /// A conversation as the adapter knows it, with the alias that the agent knows it by.
    pub fn new(known: KnownConversation, instance: &str, aliases: &klbr_core::action::Conversations) -> Self {
        let id = klbr_core::event::Conversation { instance: instance.into(), id: known.id.as_str().into() };
        Conversation { alias: aliases.alias(&id).cloned(), known }
    }
}

/// A page of an agent's records, as they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Records {
    /// The records: `{seq, at, record}`.
    pub records: Vec<serde_json::Value>,
    /// Where the next page begins (`after`); absent on the last one.
    pub next: Option<Seq>,
}

/// What a search of the history found, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hits {
    /// Each find.
    pub hits: Vec<Hit>,
}

/// Anything that carries no news but that it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// What was done.
    pub done: String,
}

/// A page of the inbox: query parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboxQuery {
    /// How many at most, 1 to 10,000; 100 when absent.
    pub limit: Option<usize>,
}

/// A page of the records: query parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordsQuery {
    /// Only records after this one.
    pub after: Option<u64>,
    /// How many at most, 1 to 1,000; 100 when absent.
    pub limit: Option<usize>,
}

/// A search of the memories: query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryQuery {
    /// What to look for; everything when it is absent or blank.
    pub text: Option<String>,
    /// How many at most, 1 to 1,000; 100 when absent.
    pub limit: Option<usize>,
}

/// A search of the history: query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// Words, parts of words or identifiers.
    pub text: String,
    /// Only from this source instance; `local` is the operator, `agent` the agent itself.
    pub source: Option<String>,
    /// Only from this conversation, by its channel's id.
    pub conversation: Option<String>,
    /// Only at or after this instant.
    pub since: Option<i64>,
    /// Only before this instant.
    pub until: Option<i64>,
    /// How many at most, 1 to 200; 20 when absent.
    pub limit: Option<usize>,
    /// How many of the best to pass over.
    pub offset: Option<usize>,
}

/// Where a stream of updates begins: query parameters. The header `Last-Event-ID` wins over `after`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamQuery {
    /// After this record; from now on when absent.
    pub after: Option<u64>,
}

/// What a WebSocket client sends, one JSON text each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientFrame {
    /// Says something to the agent as its operator.
    Message {
        /// What is said; not blank.
        text: String,
        /// Names the message, as `Idempotency-Key` does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Ends the running turn.
    Interrupt {
        /// Names the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
}

/// What a WebSocket client is sent, one JSON text each: the updates of the event stream, and answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ServerFrame {
    /// The answer to a client's frame.
    Answer(Answer),
    /// Something happened. Boxed, since it is far larger.
    Update(Box<Update>),
}

/// The answer to a client's frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// It is durable.
    Accepted(Accepted),
    /// It was not taken; nothing of it is kept.
    Refused {
        /// The frame's key, if it had one.
        key: Option<String>,
        /// Why.
        error: Problem,
    },
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: Problem,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// One word for programs, such as `unknown_agent`.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where else something is wrong, or where exactly: lines of a file that was sent, or of code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// A place where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The file, as the client called it or as it stands in the home.
    pub file: String,
    /// The line, from 1; 0 when it is about the whole.
    pub line: u32,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The file `run/address.json` in the home: where the daemon that holds the home listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The socket's address.
    pub addr: std::net::SocketAddr,
    /// The process id.
    pub pid: u32,
}

impl Address {
    /// The address as the API's root, such as `http://127.0.0.1:4711`.
    pub fn root(&self) -> String {
        format!("http://{}", self.addr)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Conversation;

    #[test]
    fn a_conversation_is_what_the_adapter_knows_and_its_alias_in_one_object() {
        let told: Value = json!({
            "alias": "d1", "id": "7", "kind": "group dm", "name": null, "parent": null, "guild": null,
            "latest": "msg:9", "last_activity": null, "is_behind": true,
        });
        let read: Conversation = serde_json::from_value(told.clone()).unwrap();
        assert_eq!((&*read.known.kind, read.known.is_behind), ("group dm", true));
        assert_eq!(serde_json::to_value(&read).unwrap(), told);
        let schema = schemars::schema_for!(Conversation);
        for field in told.as_object().unwrap().keys() {
            assert!(schema.get("properties").unwrap().get(field).is_some(), "{field} is not described");
        }
    }
}
