//! One chunk of a reply, read as leniently as its meaning allows.
//!
//! Owns the shapes in which servers write text, reasoning, calls, usage and finish reasons. Refuses
//! nothing but what is no JSON object: a field of a strange type reads as absent.

use klbr_core::model::{Finish, Usage};

use super::object::{self, Object};

/// More tokens than this are a server's mistake.
const ABSURD: u64 = 1 << 40;

/// What one chunk adds to a reply.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<Fragment>,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<Usage>,
}

/// A piece of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Arguments,
}

/// The arguments of a fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Arguments {
    #[default]
    None,
    /// A piece of the text that the arguments are.
    Piece(String),
    /// All of them, written as JSON instead of text.
    Whole(String),
}

/// Reads the chunk; of several candidates the first is the reply.
pub(super) fn read(chunk: &Object<'_>) -> Chunk {
    let choices: Vec<Object<'_>> =
        chunk.array("choices").unwrap_or_default().into_iter().filter_map(Object::read).collect();
    let choice = choices.iter().find(|choice| choice.count("index").unwrap_or(0) == 0);
    let mut read = choice.map(read_choice).unwrap_or_default();
    read.usage = read_usage(chunk);
    read
}

fn read_choice(choice: &Object<'_>) -> Chunk {
    // A whole message is the reply of a server that does not stream, and a repetition where a delta stands.
    let message = choice.object("delta").or_else(|| choice.object("message"));
    let finish = choice.filled("finish_reason").map(read_finish);
    let Some(message) = message else {
        return Chunk { text: choice.string("text").unwrap_or_default(), finish, ..Chunk::default() };
    };
    let (text, thoughts) = read_content(&message);
    Chunk {
        reasoning: read_reasoning(&message).unwrap_or(thoughts),
        text,
        calls: read_calls(&message),
        finish,
        usage: None,
    }
}

/// The text of a message, and the reasoning that its content parts carry. A refusal is what the model says.
fn read_content(message: &Object<'_>) -> (String, String) {
    let (mut text, mut thoughts) = (String::new(), String::new());
    match message.raw("content") {
        Some(content) if content.starts_with('[') => {
            for part in object::array(content).unwrap_or_default() {
                read_part(part, &mut text, &mut thoughts);
            }
        }
        Some(content) => read_part(content, &mut text, &mut thoughts),
        None => {}
    }
    if text.is_empty() {
        text = message.string("refusal").unwrap_or_default();
    }
    (text, thoughts)
}

fn read_part(raw: &str, text: &mut String, thoughts: &mut String) {
    if let Some(plain) = object::string(raw) {
        text.push_str(&plain);
        return;
    }
    let Some(part) = Object::read(raw) else { return };
    match part.raw("thinking").or_else(|| part.raw("reasoning")) {
        Some(thinking) => thoughts.push_str(&flatten(thinking)),
        None if matches!(part.string("type").as_deref(), Some("thinking" | "reasoning")) => {
            thoughts.push_str(&part.string("text").unwrap_or_default());
        }
        None => text.push_str(&part.filled("text").or_else(|| part.string("refusal")).unwrap_or_default()),
    }
}

/// The text of a thought, or of a list of them.
fn flatten(raw: &str) -> String {
    match object::array(raw) {
        Some(items) => items.into_iter().filter_map(thought).collect(),
        None => thought(raw).unwrap_or_default(),
    }
}

fn thought(raw: &str) -> Option<String> {
    object::string(raw).or_else(|| {
        let object = Object::read(raw)?;
        ["text", "summary", "content"].into_iter().find_map(|name| object.filled(name))
    })
}

/// The reasoning in a field of its own. Servers that fill several say the same in each: the first counts.
fn read_reasoning(message: &Object<'_>) -> Option<String> {
    ["reasoning_content", "reasoning", "thinking", "reasoning_details"]
        .into_iter()
        .filter_map(|name| message.raw(name))
        .map(flatten)
        .find(|text| !text.is_empty())
}

fn read_calls(message: &Object<'_>) -> Vec<Fragment> {
    let mut calls: Vec<Fragment> =
        message.array("tool_calls").unwrap_or_default().into_iter().filter_map(read_call).collect();
    if calls.is_empty()
        && let Some(function) = message.object("function_call")
    {
        calls.push(read_function(&function));
    }
    calls
}

fn read_call(raw: &str) -> Option<Fragment> {
    let call = Object::read(raw)?;
    let mut fragment = match call.object("function") {
        Some(function) => read_function(&function),
        None => read_function(&call),
    };
    fragment.index = call.count("index");
    fragment.id = call.filled("id").or_else(|| call.count("id").map(|id| id.to_string()));
    Some(fragment)
}

fn read_function(function: &Object<'_>) -> Fragment {
    let arguments = match function.raw("arguments") {
        None => Arguments::None,
        Some(raw) => match object::string(raw) {
            Some(piece) if piece.is_empty() => Arguments::None,
            Some(piece) => Arguments::Piece(piece),
            None => Arguments::Whole(raw.to_owned()),
        },
    };
    Fragment { name: function.filled("name"), arguments, ..Fragment::default() }
}

/// Sorts a provider's word for the end; its own words stand where this crate has none.
fn read_finish(reason: String) -> Finish {
    match reason.as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "STOP" => Finish::Stop,
        "tool_calls" | "tool_use" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "MAX_TOKENS" => Finish::Length,
        "content_filter" | "SAFETY" => Finish::ContentFilter,
        _ => Finish::Other(reason),
    }
}

fn read_usage(chunk: &Object<'_>) -> Option<Usage> {
    let counted = chunk.object("usage")?;
    let input = counted.count("prompt_tokens").or_else(|| counted.count("input_tokens"));
    let output = counted.count("completion_tokens").or_else(|| counted.count("output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    if (input, output) == (0, 0) || input > ABSURD || output > ABSURD {
        return None;
    }
    let cached = ["prompt_tokens_details", "input_tokens_details"]
        .into_iter()
        .find_map(|details| counted.object(details)?.count("cached_tokens"))
        .or_else(|| {
            ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"]
                .into_iter()
                .find_map(|name| counted.count(name))
        })
        .or_else(|| chunk.object("timings")?.count("cache_n"))
        .filter(|cached| *cached <= input);
    Some(Usage { input, output, cached })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(json: &str) -> Chunk {
        read(&Object::read(json).expect("an object"))
    }

    fn delta(json: &str) -> Chunk {
        chunk(&format!(r#"{{"choices":[{{"delta":{json}}}]}}"#))
    }

    #[test]
    fn content_comes_as_text_parts_or_refusal() {
        assert_eq!(delta(r#"{"content":"a"}"#).text, "a");
        assert_eq!(delta(r#"{"content":["a",{"type":"text","text":"b"},{"type":"image"}]}"#).text, "ab");
        assert_eq!(delta(r#"{"content":null,"refusal":"no"}"#).text, "no");
        assert_eq!(delta(r#"{"content":7}"#), Chunk::default());
    }

    #[test]
    fn reasoning_comes_in_fields_parts_and_details() {
        for json in [
            r#"{"reasoning_content":"t"}"#,
            r#"{"reasoning":"t","reasoning_content":""}"#,
            r#"{"reasoning":"t","reasoning_content":"t"}"#,
            r#"{"reasoning":{"text":"t"}}"#,
            r#"{"reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"t"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"t"},{"type":"reasoning.encrypted","data":"x"}]}"#,
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]}"#,
            r#"{"content":[{"type":"thinking","thinking":"t"}]}"#,
            r#"{"content":{"type":"reasoning","text":"t"}}"#,
        ] {
            assert_eq!(delta(json), Chunk { reasoning: "t".into(), ..Chunk::default() }, "{json}");
        }
    }

    #[test]
    fn a_whole_message_counts_only_without_a_delta() {
        let whole = r#"{"choices":[{"index":0,"message":{"content":"all"},"finish_reason":"stop"}]}"#;
        assert_eq!(chunk(whole).text, "all");
        let both = r#"{"choices":[{"delta":{"content":"l"},"message":{"content":"all"}}]}"#;
        assert_eq!(chunk(both).text, "l");
    }

    #[test]
    fn calls_come_in_several_shapes() {
        let whole = Fragment {
            name: Some("f".into()),
            arguments: Arguments::Whole(r#"{"b":1,"a":2}"#.into()),
            ..Fragment::default()
        };
        assert_eq!(
            delta(r#"{"tool_calls":[{"id":"","function":{"name":"f","arguments":{"b":1,"a":2}}}]}"#).calls,
            [whole]
        );
        let piece = Fragment { arguments: Arguments::Piece("{}".into()), ..Fragment::default() };
        assert_eq!(
            delta(r#"{"function_call":{"name":null,"arguments":"{}"}}"#).calls,
            std::slice::from_ref(&piece)
        );
        let indexed = Fragment { index: Some(2), id: Some("7".into()), ..piece };
        assert_eq!(delta(r#"{"tool_calls":[null,{"index":2.0,"id":7,"arguments":"{}"}]}"#).calls, [indexed]);
    }

    #[test]
    fn usage_counts_only_when_it_says_something_possible() {
        let usage = |json: &str| chunk(&format!(r#"{{"usage":{json}}}"#)).usage;
        let counted = |input, output, cached| Some(Usage { input, output, cached });
        assert_eq!(usage(r#"{"prompt_tokens":5,"completion_tokens":2}"#), counted(5, 2, None));
        assert_eq!(
            usage(r#"{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}"#),
            counted(5, 2, Some(4))
        );
        assert_eq!(usage(r#"{"prompt_tokens":5,"prompt_cache_hit_tokens":3}"#), counted(5, 0, Some(3)));
        assert_eq!(usage(r#"{"input_tokens":5,"output_tokens":1,"cached_tokens":9}"#), counted(5, 1, None));
        for nothing in [
            "null",
            "[]",
            "{}",
            r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#,
            r#"{"prompt_tokens":-5,"completion_tokens":1e300}"#,
            r#"{"prompt_tokens":18446744073709551615,"completion_tokens":1}"#,
        ] {
            assert_eq!(usage(nothing), None, "{nothing}");
        }
        let llama = chunk(r#"{"usage":{"prompt_tokens":9,"completion_tokens":2},"timings":{"cache_n":8}}"#);
        assert_eq!(llama.usage, counted(9, 2, Some(8)));
    }

    #[test]
    fn only_the_first_candidate_is_the_reply() {
        let other = chunk(r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]}"#);
        assert_eq!(other, Chunk::default());
    }
}
