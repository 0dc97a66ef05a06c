//! A reply, part by part: the half of the script that says what is said.
//!
//! Owns the parts and how they are cut into chunks. Refuses bytes: the dialect is made from these elsewhere.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A reply made from parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// What happens, in order.
    pub parts: Vec<Part>,
    /// The finish reason: by default `tool_calls` if there is a call, else `stop`; `false` for none.
    #[serde(skip_serializing_if = "Slot::is_auto")]
    pub finish: Slot<String>,
    /// What is said of usage.
    pub usage: Usage,
    /// Whether a stream ends with `[DONE]`.
    pub done: bool,
    /// Where reasoning goes.
    pub reasoning: Reasoning,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply {
            parts: Vec::new(),
            finish: Slot::Auto,
            usage: Usage::default(),
            done: true,
            reasoning: Reasoning::default(),
        }
    }
}

/// One thing that happens in a reply. A whole reply gathers what the parts say and keeps the order of the rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Reasoning.
    Think(Say),
    /// Plain text.
    Text(Say),
    /// One call.
    Call(Call),
    /// Several calls laid out together.
    Calls(Calls),
    /// An error object inside a stream that began with 200; neither finish, usage nor `[DONE]` follow.
    Error(Value),
    /// One SSE event with this text as its data, verbatim.
    Data(String),
    /// Bytes of the body, verbatim.
    Raw(String),
    /// Text without end.
    Endless(Endless),
    /// A pause, in milliseconds.
    PauseMs(u64),
    /// A gate that is waited for.
    Gate(String),
    /// Silence until the client goes; the socket stays open.
    Stall,
}

/// Text and how it is cut into chunks. A plain string is one chunk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Said")]
pub struct Say {
    /// The text.
    pub say: String,
    /// How it is cut.
    pub pieces: Pieces,
    /// The pause after each chunk, in milliseconds.
    pub gap_ms: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Plain(String),
    Cut(CutSay),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutSay {
    say: String,
    #[serde(default)]
    pieces: Pieces,
    #[serde(default)]
    gap_ms: u64,
}

impl From<Said> for Say {
    fn from(said: Said) -> Say {
        match said {
            Said::Plain(say) => say.into(),
            Said::Cut(CutSay { say, pieces, gap_ms }) => Say { say, pieces, gap_ms },
        }
    }
}

impl<T: Into<String>> From<T> for Say {
    fn from(text: T) -> Say {
        Say { say: text.into(), pieces: Pieces::Whole, gap_ms: 0 }
    }
}

/// How a text is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pieces {
    /// One chunk.
    #[default]
    Whole,
    /// One chunk a word, with the spaces that follow it.
    Words,
    /// One chunk a character.
    Chars,
    /// Chunks of this many bytes, rounded up to whole characters.
    Bytes(usize),
}

impl Pieces {
    /// Cuts a text; never an empty list.
    pub fn of(self, text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = match self {
                Pieces::Whole => rest.len(),
                Pieces::Words => {
                    let word = rest.find(' ').unwrap_or(rest.len());
                    rest[word..].find(|c| c != ' ').map_or(rest.len(), |spaces| word + spaces)
                }
                Pieces::Chars => ceil_char(rest, 1),
                Pieces::Bytes(size) => ceil_char(rest, size.max(1)),
            };
            let (piece, tail) = rest.split_at(end);
            pieces.push(piece);
            rest = tail;
        }
        if pieces.is_empty() { vec![""] } else { pieces }
    }
}

fn ceil_char(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

/// One call and how it is cut into fragments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The action's name.
    pub name: String,
    /// The arguments: a string verbatim, anything else as compact JSON.
    #[serde(default)]
    pub arguments: Value,
    /// The id: by default one that is unique in the process, `false` for none, `""` for an empty one.
    #[serde(default, skip_serializing_if = "Slot::is_auto")]
    pub id: Slot<String>,
    /// The index: by default counted, `false` for none.
    #[serde(default, skip_serializing_if = "Slot::is_auto")]
    pub index: Slot<u64>,
    /// How the arguments are cut; the first fragment carries id, name and no arguments unless they are whole.
    #[serde(default)]
    pub pieces: Pieces,
    /// The pause after each fragment, in milliseconds.
    #[serde(default)]
    pub gap_ms: u64,
    /// Whether each fragment repeats the id and the name, as some providers do.
    #[serde(default)]
    pub repeat_id: bool,
}

impl Call {
    /// Makes a call that is sent whole.
    pub fn new(name: impl Into<String>, arguments: Value) -> Call {
        Call {
            name: name.into(),
            arguments,
            id: Slot::Auto,
            index: Slot::Auto,
            pieces: Pieces::Whole,
            gap_ms: 0,
            repeat_id: false,
        }
    }
}

/// Several calls laid out together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// The calls, in order.
    pub list: Vec<Call>,
    /// How their fragments lie.
    pub layout: Layout,
}

/// How the fragments of several calls lie in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// All calls whole in one chunk.
    OneChunk,
    /// A fragment of each call in turn.
    Interleaved,
}

/// Text without end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endless {
    /// What each chunk says.
    pub say: String,
    /// The pause after each chunk, in milliseconds; at least 1.
    #[serde(default)]
    pub gap_ms: u64,
    /// Where it goes.
    #[serde(default)]
    pub to: Channel,
}

/// Where endless text goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Plain text.
    #[default]
    Text,
    /// Reasoning.
    Think,
    /// The arguments of a call that began before.
    Arguments,
}

/// Where reasoning goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// The field `reasoning_content`.
    #[default]
    ReasoningContent,
    /// The field `reasoning`.
    Reasoning,
    /// `<think>` and `</think>` in the text; the tags are chunks of their own.
    Inline,
}

/// What is said of usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// Counted (a token for four bytes), in a last chunk without choices, if the request asks for it.
    #[default]
    Auto,
    /// Nothing, even if asked.
    Absent,
    /// Zeros, in a last chunk.
    Zero,
    /// These numbers.
    Given(Tokens),
}

/// Tokens that a reply claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Tokens of the request.
    pub prompt: u64,
    /// Tokens of the reply.
    pub completion: u64,
    /// Of `prompt`, those that were cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The chunk that carries them.
    #[serde(default)]
    pub chunk: UsageChunk,
}

/// The chunk that carries usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageChunk {
    /// A last one without choices.
    #[default]
    Own,
    /// The one with the finish reason.
    Finish,
}

/// A value that is chosen, left to the default, or left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Slot<T> {
    /// The fake chooses. In JSON: the member is absent.
    #[default]
    Auto,
    /// Nothing is sent. In JSON: `false`.
    Absent,
    /// This is sent.
    Given(T),
}

impl<T> Slot<T> {
    /// Whether the fake chooses.
    pub fn is_auto(&self) -> bool {
        matches!(self, Slot::Auto)
    }

    /// What is sent, if anything.
    pub fn resolve(&self, auto: impl FnOnce() -> T) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Slot::Auto => Some(auto()),
            Slot::Absent => None,
            Slot::Given(value) => Some(value.clone()),
        }
    }
}

impl<T: Serialize> Serialize for Slot<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Slot::Auto => serializer.serialize_none(),
            Slot::Absent => serializer.serialize_bool(false),
            Slot::Given(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Slot<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Slot<T>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire<T> {
            Flag(bool),
            Value(T),
            Null,
        }
        match Wire::deserialize(deserializer)? {
            Wire::Flag(false) => Ok(Slot::Absent),
            Wire::Flag(true) => {
                Err(serde::de::Error::custom("`true` is no value here; `false` leaves it out"))
            }
            Wire::Value(value) => Ok(Slot::Given(value)),
            Wire::Null => Ok(Slot::Auto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_words_characters_and_bytes() {
        assert_eq!(Pieces::Words.of("a  bc d"), ["a  ", "bc ", "d"]);
        assert_eq!(Pieces::Chars.of("aé"), ["a", "é"]);
        assert_eq!(Pieces::Bytes(2).of("aéb"), ["aé", "b"]);
        assert_eq!(Pieces::Whole.of(""), [""]);
    }

    #[test]
    fn absent_auto_and_given_are_told_apart() {
        let call = |text: &str| serde_json::from_str::<Call>(text).unwrap().id;
        assert_eq!(call(r#"{"name":"f"}"#), Slot::Auto);
        assert_eq!(call(r#"{"name":"f","id":false}"#), Slot::Absent);
        assert_eq!(call(r#"{"name":"f","id":""}"#), Slot::Given(String::new()));
    }
}
