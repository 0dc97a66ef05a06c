//! What the core says to a model and what it hears back, in no provider's dialect.
//!
//! Owns the plain data of one sampling: the request, the message it yields, and the ways it fails.
//! Refuses wire formats: those belong to the crate that adapts a provider.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The text of one message of a transcript, by who said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the harness shows: a frame, an addition, a nudge.
    User {
        /// The rendered blocks.
        text: Arc<str>,
        /// False for an addition at a step boundary, which starts no turn (`C-FRM-2`).
        starts_turn: bool,
    },
    /// What the model said.
    Assistant(AssistantMessage),
    /// The one result of one call.
    Tool {
        /// The call's id, as it stands in the assistant message.
        call_id: Arc<str>,
        /// The result as it was inserted.
        text: Arc<str>,
    },
}

/// What the model said in one step, verbatim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The plain text: scratch, never delivered (`B-SPEECH-1`).
    pub text: Arc<str>,
    /// The reasoning that came with it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Arc<str>>,
    /// The calls it asked for, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
}

/// One call of an assistant message, with its id settled (`C-ID-1`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The id that its result names: the provider's when usable, else the core's.
    pub id: Arc<str>,
    /// The action's name as the model wrote it.
    pub name: Arc<str>,
    /// The raw argument bytes as the model wrote them; not necessarily valid JSON.
    pub arguments: Arc<str>,
}

/// One sampling of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The model's name at its provider.
    pub model: Arc<str>,
    /// The system prompt of the prefix in force, byte for byte.
    pub system: Arc<str>,
    /// The tools of the prefix in force: a JSON array of [`ToolDefinition`], byte for byte.
    pub tools: Arc<str>,
    /// The transcript after the prefix, oldest first. Never ends with an assistant message.
    pub messages: Vec<Message>,
    /// How the sampling is parameterised.
    pub parameters: Parameters,
}

/// The parameters of one sampling; part of what a retry must repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// The effort level by name, as the model's metadata offers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Arc<str>>,
    /// The most tokens the reply may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model may, or must, answer with a call.
    #[serde(default)]
    pub tool_choice: ToolChoice,
}

impl Eq for Parameters {}

/// Whether a reply may consist of text alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model has to call something.
    Required,
}

impl std::str::FromStr for ToolChoice {
    type Err = UnknownToolChoice;

    fn from_str(text: &str) -> Result<Self, UnknownToolChoice> {
        match text {
            "auto" => Ok(ToolChoice::Auto),
            "required" => Ok(ToolChoice::Required),
            _ => Err(UnknownToolChoice),
        }
    }
}

/// A text that names no [`ToolChoice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tool choice is auto or required")]
pub struct UnknownToolChoice;

/// One tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name that a call uses.
    pub name: String,
    /// What it does, when to use it.
    pub description: String,
    /// A JSON Schema of its arguments, an object.
    pub parameters: serde_json::Value,
}

/// A piece of a reply while it streams. Never durable (`C-REC-1`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// A piece of reasoning.
    Think(String),
    /// A piece of plain text.
    Scratch(String),
    /// A call has begun; its arguments are still arriving.
    CallStarted {
        /// The action's name as far as it is known.
        name: String,
    },
}

/// A finished reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// The plain text, without inline reasoning.
    pub text: String,
    /// The reasoning, from whichever field or tag it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The calls in the order in which the model began them.
    #[serde(default)]
    pub calls: Vec<RawCall>,
    /// Why the reply ended.
    pub finish: Finish,
    /// What the provider says it counted; absent when it said nothing or only zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A call as the provider sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawCall {
    /// The provider's id; absent when it gave none or an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The action's name.
    pub name: String,
    /// The raw argument bytes.
    pub arguments: String,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    #[default]
    Stop,
    /// The model asks for its calls to be run.
    ToolCalls,
    /// The token limit cut the reply; the last call's arguments may be cut with it.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    /// The stream ended in order, without saying why.
    Unsaid,
    /// A reason this crate has no word for, as the provider wrote it.
    Other(String),
}

/// Tokens as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the reply, reasoning included.
    pub output: u64,
    /// Of `input`, those that the provider had cached; absent when it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
}

/// How a sampling failed, sorted by what may be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No connection, or it broke before the reply was whole. May be retried.
    #[error("the provider could not be reached or hung up: {0}")]
    Disconnected(String),
    /// Nothing arrived for as long as the provider may be silent. May be retried.
    #[error("the reply stalled for {} ms", .0.as_millis())]
    Stalled(Duration),
    /// The provider asks for a pause (429, or an equivalent error object). May be retried after it.
    #[error("the provider is limiting requests: {message}")]
    RateLimited {
        /// How long it asks to wait, if it says.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// The provider failed (5xx, or an error object inside a stream). May be retried.
    #[error("the provider failed{}: {message}", Status(*status))]
    Provider {
        /// The HTTP status; absent when the error came inside a 200 stream without one.
        status: Option<u16>,
        /// How long it asks to wait, if it says.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// The bytes are not a reply in any dialect known here. May be retried.
    #[error("the provider's reply could not be read: {0}")]
    Malformed(String),
    /// The request is larger than the model's context. A retry of the same bytes is useless.
    #[error("the request does not fit the model's context: {message}")]
    ContextOverflow {
        /// The context's size in tokens, if the provider says.
        limit: Option<u64>,
        /// Its words.
        message: String,
    },
    /// The provider does not accept this key. A retry of the same bytes is useless.
    #[error("the provider refused the credentials{}: {message}", Status(Some(*status)))]
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The provider refuses this request for good (4xx). A retry of the same bytes is useless.
    #[error("the provider refused the request{}: {message}", Status(*status))]
    Refused {
        /// The HTTP status; absent when the refusal came inside a 200 stream without one.
        status: Option<u16>,
        /// Its words.
        message: String,
    },
}

impl Failure {
    /// Whether sending the identical request again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Failure::Disconnected(_)
            | Failure::Stalled(_)
            | Failure::RateLimited { .. }
            | Failure::Provider { .. }
            | Failure::Malformed(_) => true,
            Failure::ContextOverflow { .. } | Failure::Unauthorized { .. } | Failure::Refused { .. } => false,
        }
    }

    /// How long the provider asks to wait before the next try, if it says.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::RateLimited { retry_after, .. } | Failure::Provider { retry_after, .. } => *retry_after,
            Failure::Disconnected(_)
            | Failure::Stalled(_)
            | Failure::Malformed(_)
            | Failure::ContextOverflow { .. }
            | Failure::Unauthorized { .. }
            | Failure::Refused { .. } => None,
        }
    }
}

struct Status(Option<u16>);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => write!(f, " (HTTP {status})"),
            None => Ok(()),
        }
    }
}
