//! The built-in model of an agent that answers its operator: deliveries, waits, canaries, and seeded misbehaviour.
//!
//! Owns what is said in answer to a transcript. Refuses state: the same transcript, seed and ordinal give the same
//! answer, so that a judge may replay it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::script::{
    Answer, Body, Call, Cut, CutAt, CutHow, Part, Pieces, Refuse, Reply, RetryAfter, Say, Says, Slot,
};

/// A model that answers each operator message once and then waits.
///
/// It looks at the last user message that has an `<operator …>` block (or at all of them), finds the markers in those
/// blocks, and sends one delivery for each marker that no call after that message mentions yet; beside them it waits.
/// With another `block`, such as `message`, it answers what stands in those.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Operator {
    /// What a marker begins with; digits follow.
    pub marker: String,
    /// The blocks in which markers stand.
    pub block: String,
    /// Which operators' messages count.
    pub scope: Scope,
    /// A result that contains one of these does not count as an answer, and the marker is answered again.
    pub again_after: Vec<String>,
    /// The delivery, once for each marker.
    pub send: Template,
    /// The yield; `null` for none.
    pub wait: Option<Template>,
    /// Whether the wait stands beside the deliveries, or comes in the step after them.
    pub wait_in: WaitIn,
    /// What canaries in reasoning and text begin with; they must never be delivered. `null` for none.
    pub canary: Option<String>,
    /// Calls that each reply with a delivery may make before it.
    pub tools: Vec<Tool>,
    /// How chunks are paced: the pause after each, in milliseconds.
    pub gap_ms: u64,
    /// How often it misbehaves.
    pub misbehave: Misbehave,
}

impl Default for Operator {
    fn default() -> Operator {
        Operator {
            marker: "msg-".into(),
            block: "operator".into(),
            scope: Scope::LastFrame,
            again_after: Vec::new(),
            send: Template::new("local_send", serde_json::json!({"text": "re {marker}"})),
            wait: Some(Template::new("wait_and_continue", serde_json::json!({"seconds": 600}))),
            wait_in: WaitIn::SameStep,
            canary: Some("CANARY".into()),
            tools: Vec::new(),
            gap_ms: 0,
            misbehave: Misbehave::default(),
        }
    }
}

/// Which operators' messages count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Those of the last user message with an `<operator …>` block.
    LastFrame,
    /// All of the transcript.
    Transcript,
}

/// The step in which the wait is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitIn {
    /// Beside the deliveries.
    SameStep,
    /// In a step of its own.
    NextStep,
}

/// A call with holes for the marker, for where it stood, and for a number of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The action's name.
    pub name: String,
    /// The arguments; in strings `{marker}` becomes the marker, `{ref}` its block's attribute of that name,
    /// `{conversation}` that of what the block stands in, `{nonce}` what no other call of this process has.
    pub arguments: Value,
}

impl Template {
    /// Makes a template.
    pub fn new(name: impl Into<String>, arguments: Value) -> Template {
        Template { name: name.into(), arguments }
    }
}

/// A call that may stand before a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The call, once for each marker.
    pub call: Template,
    /// How often, from 0 to 1.
    pub chance: f64,
}

/// How often a reply goes wrong in each way, from 0 to 1. At most one of them happens; their sum is at most 1.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Misbehave {
    /// 500.
    pub status_500: f64,
    /// 429 with `Retry-After: 0`.
    pub status_429: f64,
    /// A reset somewhere in the body.
    pub reset: f64,
    /// A close somewhere in the body.
    pub close: f64,
    /// Silence from somewhere in the body on.
    pub stall: f64,
    /// An error object after the first chunks.
    pub error: f64,
    /// A stream that is whole but for `[DONE]`.
    pub no_done: f64,
    /// Text in place of the calls.
    pub text_only: f64,
    /// Calls whose arguments break off; the finish reason is `length`.
    pub cut_arguments: f64,
    /// A call of an action that does not exist, in place of the deliveries.
    pub unknown_action: f64,
    /// Calls with empty ids and without an index.
    pub bare_calls: f64,
}

/// Answers a transcript.
///
/// `ordinal` tells repetitions of a request apart, so that misbehaviour does not repeat for ever.
pub fn answer(operator: &Operator, messages: &[Value], seed: u64, ordinal: u64) -> Answer {
    let mut rng = fastrand::Rng::with_seed(seed ^ ordinal.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let markers = unanswered(operator, messages);
    let mut calls = Vec::new();
    for asked in &markers {
        for tool in &operator.tools {
            if rng.f64() < tool.chance {
                calls.push(tool.call.fill(asked, &format!("{ordinal}-{}", calls.len())));
            }
        }
        calls.push(operator.send.fill(asked, &format!("{ordinal}-{}", calls.len())));
    }
    if let Some(wait) =
        operator.wait.as_ref().filter(|_| markers.is_empty() || operator.wait_in == WaitIn::SameStep)
    {
        calls.push(wait.fill(&Asked::default(), &format!("{ordinal}-{}", calls.len())));
    }
    let fault = operator.misbehave.draw(rng.f64());
    spoken(operator, calls, fault, ordinal, &mut rng)
}

fn spoken(
    operator: &Operator,
    mut calls: Vec<Call>,
    fault: Option<Fault>,
    ordinal: u64,
    rng: &mut fastrand::Rng,
) -> Answer {
    let paced = |say: String| Say { say, pieces: Pieces::Words, gap_ms: operator.gap_ms };
    let mut parts = Vec::new();
    if let Some(canary) = &operator.canary {
        parts.push(Part::Think(paced(format!("thinking {canary}-think-{ordinal}"))));
        parts.push(Part::Text(paced(format!("muttering {canary}-text-{ordinal}"))));
    }
    let mut reply = Reply::default();
    let mut cut = None;
    match fault {
        None => {}
        Some(Fault::Status500) => return refuse(500, None),
        Some(Fault::Status429) => return refuse(429, Some(RetryAfter::Seconds(0))),
        Some(Fault::Cut(how)) => cut = Some(Cut { at: CutAt::Byte(rng.usize(0..1500)), how }),
        Some(Fault::Error) => {
            calls.clear();
            parts.push(Part::Error(json!({"message": "the model crashed", "code": 500})));
        }
        Some(Fault::NoDone) => reply.done = false,
        Some(Fault::TextOnly) => {
            calls.clear();
            parts.push(Part::Text("nothing to call".into()));
        }
        Some(Fault::CutArguments) => {
            reply.finish = Slot::Given("length".into());
            calls.truncate(1);
            for call in &mut calls {
                let whole = call.arguments.to_string();
                call.arguments = Value::String(whole[..whole.len() - 2].to_owned());
            }
        }
        Some(Fault::UnknownAction) => calls = vec![Call::new("no_such_action", json!({"ordinal": ordinal}))],
        Some(Fault::BareCalls) => {
            for call in &mut calls {
                call.id = Slot::Given(String::new());
                call.index = Slot::Absent;
            }
        }
    }
    parts.extend(calls.into_iter().map(|call| Part::Call(Call { gap_ms: operator.gap_ms, ..call })));
    Answer { cut, ..Body::Reply(Reply { parts, ..reply }).into() }
}

fn refuse(status: u16, retry_after: Option<RetryAfter>) -> Answer {
    Body::Refuse(Refuse { status, retry_after, says: Says::Fitting }).into()
}

#[derive(Clone, Copy)]
enum Fault {
    Status500,
    Status429,
    Cut(CutHow),
    Error,
    NoDone,
    TextOnly,
    CutArguments,
    UnknownAction,
    BareCalls,
}

impl Misbehave {
    fn draw(&self, mut at: f64) -> Option<Fault> {
        let faults = [
            (self.status_500, Fault::Status500),
            (self.status_429, Fault::Status429),
            (self.reset, Fault::Cut(CutHow::Reset)),
            (self.close, Fault::Cut(CutHow::Close)),
            (self.stall, Fault::Cut(CutHow::Stall)),
            (self.error, Fault::Error),
            (self.no_done, Fault::NoDone),
            (self.text_only, Fault::TextOnly),
            (self.cut_arguments, Fault::CutArguments),
            (self.unknown_action, Fault::UnknownAction),
            (self.bare_calls, Fault::BareCalls),
        ];
        for (chance, fault) in faults {
            if at < chance {
                return Some(fault);
            }
            at -= chance;
        }
        None
    }
}

impl Template {
    fn fill(&self, asked: &Asked, nonce: &str) -> Call {
        fn filled(value: &Value, fill: &dyn Fn(&str) -> String) -> Value {
            match value {
                Value::String(text) => Value::String(fill(text)),
                Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
                Value::Object(members) => {
                    members.iter().map(|(name, value)| (name.clone(), filled(value, fill))).collect()
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            }
        }
        let fill = |text: &str| {
            let text = text.replace("{marker}", &asked.marker).replace("{nonce}", nonce);
            text.replace("{ref}", &asked.name).replace("{conversation}", &asked.conversation)
        };
        Call::new(self.name.clone(), filled(&self.arguments, &fill))
    }
}

/// A marker, and where it stood.
#[derive(Clone, Debug, Default)]
struct Asked {
    marker: String,
    name: String,
    conversation: String,
}

/// The markers that the scope shows and no counting call mentions, in order of appearance.
fn unanswered(operator: &Operator, messages: &[Value]) -> Vec<Asked> {
    let begin = format!("<{}", operator.block);
    let shows = |message: &Value| message["role"] == "user" && content(message).contains(&begin);
    let from = match operator.scope {
        Scope::Transcript => 0,
        Scope::LastFrame => messages.iter().rposition(shows).unwrap_or(messages.len()),
    };
    let messages = &messages[from..];
    let answered = answered(operator, messages);
    let mut seen = BTreeSet::new();
    messages
        .iter()
        .filter(|message| shows(message))
        .flat_map(|message| asked(operator, &content(message)))
        .filter(|asked| !answered.contains(&asked.marker) && seen.insert(asked.marker.clone()))
        .collect()
}

/// The markers that a whole delivery whose result counts has named.
fn answered(operator: &Operator, messages: &[Value]) -> BTreeSet<String> {
    let undone = |id: &Value| {
        messages.iter().any(|message| {
            message["role"] == "tool"
                && message["tool_call_id"] == *id
                && operator.again_after.iter().any(|text| content(message).contains(text))
        })
    };
    messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .filter(|call| call["function"]["name"] == operator.send.name.as_str() && !undone(&call["id"]))
        .filter_map(|call| call["function"]["arguments"].as_str())
        .filter(|arguments| serde_json::from_str::<Value>(arguments).is_ok())
        .flat_map(|arguments| markers(arguments, &operator.marker))
        .collect()
}

/// The text of a message, its parts joined.
pub(super) fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// The markers between each begin of a block and its end.
fn asked(operator: &Operator, text: &str) -> Vec<Asked> {
    let (begin, end) = (format!("<{}", operator.block), format!("</{}>", operator.block));
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&begin) {
        let Some((tag, rest)) = text[at..].split_once('>') else { continue };
        // A block that is empty has no end of its own.
        let inner = if tag.ends_with('/') { "" } else { rest.split(&end).next().unwrap_or(rest) };
        let before = &text[..at];
        let around = before.rfind("<channel").map_or("", |at| &before[at..]);
        found.extend(markers(inner, &operator.marker).into_iter().map(|marker| Asked {
            marker,
            name: attribute(tag, "ref"),
            conversation: attribute(around, "conversation"),
        }));
    }
    found
}

/// The first attribute of this name; empty where there is none.
fn attribute(tag: &str, name: &str) -> String {
    let value = tag.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split('"').next());
    value.unwrap_or_default().to_owned()
}

/// Each occurrence of the prefix with the digits after it.
fn markers(text: &str, prefix: &str) -> Vec<String> {
    text.split(prefix)
        .skip(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>())
        .filter(|digits| !digits.is_empty())
        .map(|digits| format!("{prefix}{digits}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn sent(id: &str, marker: &str) -> Value {
        let arguments = json!({"text": format!("re {marker}")}).to_string();
        json!({"role": "assistant", "tool_calls": [{"id": id, "function": {"name": "local_send", "arguments": arguments}}]})
    }

    fn result(id: &str, text: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": text})
    }

    fn calls(operator: &Operator, messages: &[Value]) -> Vec<String> {
        let Body::Reply(reply) = answer(operator, messages, 0, 1).body else { panic!("not a reply") };
        let call = |part: &Part| match part {
            Part::Call(call) => Some(format!("{} {}", call.name, call.arguments)),
            _ => None,
        };
        reply.parts.iter().filter_map(call).collect()
    }

    const WAIT: &str = r#"wait_and_continue {"seconds":600}"#;

    #[test]
    fn each_marker_of_the_last_operator_frame_is_answered_once() {
        let messages = [
            user("<operator id=1>msg-1</operator>"),
            user("<operator>msg-2 and msg-2</operator><channel>msg-9</channel><operator>msg-33</operator>"),
            user("<nudge>msg-4</nudge>"),
        ];
        let sends = [r#"local_send {"text":"re msg-2"}"#, r#"local_send {"text":"re msg-33"}"#, WAIT];
        assert_eq!(calls(&Operator::default(), &messages), sends);
        let all = Operator { scope: Scope::Transcript, ..Operator::default() };
        assert_eq!(calls(&all, &messages).len(), 4);
    }

    #[test]
    fn a_marker_in_another_block_is_answered_where_it_stood() {
        let send =
            json!({"content": "re {marker}", "conversation_id": "{conversation}", "source_item_id": "{ref}"});
        let operator = Operator {
            block: "message".into(),
            send: Template::new("discord_send", send),
            ..Operator::default()
        };
        let shown = r#"<channel conversation="d2"><message ref="msg:7" author="a">msg-1</message></channel>
            <channel conversation="d1"><message ref="msg:6" author="b">msg-2</message></channel>
            <pending><message ref="msg:7" conversation="d2"/></pending><operator>msg-3</operator>"#;
        let sent = |marker: &str, place: &str, item: &str| {
            let arguments =
                json!({"content": format!("re {marker}"), "conversation_id": place, "source_item_id": item});
            format!("discord_send {arguments}")
        };
        let expected = [sent("msg-1", "d2", "msg:7"), sent("msg-2", "d1", "msg:6"), WAIT.to_owned()];
        assert_eq!(calls(&operator, &[user(shown)]), expected);
    }

    #[test]
    fn an_answered_marker_is_not_answered_again_unless_its_result_says_so() {
        let operator = Operator { again_after: vec!["cancelled".into()], ..Operator::default() };
        let ask = user("<operator>msg-1</operator>");
        let done = [ask.clone(), sent("a", "msg-1"), result("a", "delivered")];
        assert_eq!(calls(&operator, &done), [WAIT]);
        let cancelled = [ask, sent("a", "msg-1"), result("a", "cancelled by the operator")];
        assert_eq!(calls(&operator, &cancelled).len(), 2);
        let mut broken = done;
        broken[1]["tool_calls"][0]["function"]["arguments"] = json!("{\"text\":\"re msg-1");
        assert_eq!(calls(&operator, &broken).len(), 2);
    }

    #[test]
    fn a_marker_is_not_the_beginning_of_another() {
        let messages = [user("<operator>msg-1 msg-12</operator>"), sent("a", "msg-12"), result("a", "ok")];
        assert_eq!(calls(&Operator::default(), &messages)[0], r#"local_send {"text":"re msg-1"}"#);
    }

    #[test]
    fn misbehaviour_is_seeded_and_as_frequent_as_asked() {
        let misbehave = Misbehave { status_500: 0.2, stall: 0.1, bare_calls: 0.1, ..Misbehave::default() };
        let operator = Operator { misbehave, ..Operator::default() };
        let run = |seed| -> Vec<String> {
            (0..2_000).map(|n| serde_json::to_string(&answer(&operator, &[], seed, n)).unwrap()).collect()
        };
        let (first, again, other) = (run(7), run(7), run(8));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let share = |text: &str| first.iter().filter(|answer| answer.contains(text)).count();
        assert!((340..460).contains(&share("\"status\":500")), "{}", share("\"status\":500"));
        assert!((150..250).contains(&share("\"stall\"")), "{}", share("\"stall\""));
    }
}
