//! What the fake model is told to do: the script, as JSON and as types.
//!
//! Owns the format that the parent module documents. Refuses unknown members, so that a misspelt script fails to load.

mod parts;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operator::Operator;
pub use parts::{
    Call, Calls, Channel, Endless, Layout, Part, Pieces, Reasoning, Reply, Say, Slot, Tokens, Usage,
    UsageChunk,
};

/// All that the fake does until the next script.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The name under which the model is listed and in which it answers.
    pub model: String,
    /// The size of the context that `/props` and `/v1/models` tell.
    pub context_tokens: u64,
    /// What misbehaviour is drawn from; the same seed and order of requests give the same answers.
    pub seed: u64,
    /// The first rule that matches, and is not used up, answers a chat request.
    pub rules: Vec<Rule>,
    /// Bodies served instead of the built-in ones, by path (`/props`).
    pub pages: BTreeMap<String, Page>,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            model: "fake-model".into(),
            context_tokens: 32_768,
            seed: 0,
            rules: Vec::new(),
            pages: BTreeMap::new(),
        }
    }
}

impl Script {
    /// Makes a script that answers every chat request alike.
    pub fn always(answer: Answer) -> Script {
        Script { rules: vec![Rule { when: When::default(), times: None, answer }], ..Script::default() }
    }

    /// Makes a script that gives each answer once, in order.
    pub fn in_order(answers: impl IntoIterator<Item = Answer>) -> Script {
        let rule = |answer| Rule { when: When::default(), times: Some(1), answer };
        Script { rules: answers.into_iter().map(rule).collect(), ..Script::default() }
    }
}

/// An answer and the requests that it is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which requests it is for; by default any.
    #[serde(default)]
    pub when: When,
    /// How often it may answer; by default always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// What it answers.
    pub answer: Answer,
}

/// Conditions on a request; all that are given have to hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The how-manieth chat request since the script was loaded, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// Text that the content of the last message contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contains: Option<String>,
    /// The role of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_role: Option<String>,
    /// Text that the raw body contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_contains: Option<String>,
    /// Whether a stream was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

/// A page that is served as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The HTTP status; 200 by default.
    #[serde(default = "ok")]
    pub status: u16,
    /// The JSON body; a string is served verbatim.
    pub body: Value,
}

fn ok() -> u16 {
    200
}

/// What happens on the wire for one request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// A gate that is waited for before the first byte; the client's control opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// A pause before the first byte, in milliseconds, after the gate.
    #[serde(default)]
    pub delay_ms: u64,
    /// What is said.
    pub body: Body,
    /// How the body's bytes become writes.
    #[serde(default)]
    pub writes: Writes,
    /// Where the answer breaks off, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

impl From<Body> for Answer {
    fn from(body: Body) -> Answer {
        Answer { gate: None, delay_ms: 0, body, writes: Writes::default(), cut: None }
    }
}

impl Answer {
    /// Makes an answer that says these parts and ends in order.
    pub fn parts(parts: impl IntoIterator<Item = Part>) -> Answer {
        Body::Reply(Reply { parts: parts.into_iter().collect(), ..Reply::default() }).into()
    }
}

/// What is said in answer to a chat request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// A reply made from parts, as a stream or whole, as the request asks.
    Reply(Reply),
    /// Recorded bytes.
    Replay(Replay),
    /// An error status.
    Refuse(Refuse),
    /// A model that answers operators.
    Operator(Box<Operator>),
}

/// Recorded bytes, replayed as the body of a 200.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// The content of a file, read when the request arrives.
    File(PathBuf),
    /// This text.
    Text(String),
}

/// An error status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refuse {
    /// The HTTP status.
    pub status: u16,
    /// The header `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfter>,
    /// The body.
    #[serde(default)]
    pub says: Says,
}

/// The header `Retry-After`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// So many seconds.
    Seconds(u64),
    /// An HTTP date so many seconds ahead.
    DateIn(u64),
    /// This text.
    Text(String),
}

/// The body of an error status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// An OpenAI error object that fits the status.
    #[default]
    Fitting,
    /// llama.cpp's `exceed_context_size_error`.
    Overflow,
    /// This JSON.
    Json(Value),
    /// This text, as `text/plain`.
    Text(String),
}

/// How the body's bytes become writes (and chunks of the transfer encoding).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Writes {
    /// Where the writes end.
    pub split: Split,
    /// The pause after each write, in milliseconds.
    pub gap_ms: u64,
}

/// Where writes end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// After each SSE event.
    #[default]
    Events,
    /// At these offsets of the body, and at pauses and gates.
    At(Vec<usize>),
    /// After each so many bytes, and at pauses and gates.
    Each(usize),
}

/// Where and how an answer breaks off.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Where.
    pub at: CutAt,
    /// How.
    pub how: CutHow,
}

/// Where an answer breaks off. Never reached means never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutAt {
    /// Before the status line.
    Start,
    /// After this many bytes of the body.
    Byte(usize),
    /// After this many writes.
    Write(usize),
}

/// How an answer breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutHow {
    /// The connection is reset.
    Reset,
    /// The connection is closed in order.
    Close,
    /// Nothing more comes, the socket stays open.
    Stall,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_script_is_refused() {
        let error = serde_json::from_str::<Script>(r#"{"ruels": []}"#).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `ruels`, expected one of `model`"), "{error}");
    }

    #[test]
    fn a_script_survives_its_own_json() {
        let script = Script::always(Answer::parts([Part::Text("a".into()), Part::Stall]));
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Script>(&json).unwrap()).unwrap(), json);
    }
}
