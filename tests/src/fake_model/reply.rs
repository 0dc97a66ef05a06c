//! A reply in OpenAI's dialect: as a stream of chunks, or whole.
//!
//! Owns the JSON of the wire. Refuses pacing of bytes and cuts, which [`super::plan`] lays over it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::plan::{Asked, Head, Step, json_head};
use super::script::{
    Call, Calls, Channel, Layout, Part, Pieces, Reasoning, Reply, Say, Tokens, Usage, UsageChunk,
};

/// The moment at which every reply claims to be made; fixed, so that replies are comparable.
const CREATED: u64 = 1_700_000_000;

/// The body of a streamed reply.
pub(super) fn streamed(reply: &Reply, model: &str, asked: &Asked) -> Vec<Step> {
    let mut stream = Stream { model, asked, reply, steps: Vec::new(), calls: 0, said: 0, failed: false };
    stream.delta(json!({"role": "assistant", "content": null}));
    for part in &reply.parts {
        stream.part(part);
    }
    stream.end();
    stream.steps
}

/// A whole reply: what happens before its head, the head, and the body.
pub(super) fn whole(reply: &Reply, model: &str, asked: &Asked) -> (Vec<Step>, Head, Vec<Step>) {
    let mut before = Vec::new();
    let (mut think, mut text, mut calls, mut error) = (String::new(), String::new(), Vec::new(), None);
    for part in &reply.parts {
        match part {
            Part::Think(say) => think += &say.say,
            Part::Text(say) => text += &say.say,
            Part::Call(call) => calls.push(call),
            Part::Calls(several) => calls.extend(&several.list),
            Part::Error(object) => error = Some(json!({"error": object})),
            Part::Data(_) | Part::Raw(_) => {}
            Part::Endless(_) | Part::Stall => before.push(Step::Stall),
            Part::PauseMs(ms) => before.push(Step::Pause(Duration::from_millis(*ms))),
            Part::Gate(gate) => before.push(Step::Gate(gate.clone())),
        }
    }
    let status = if error.is_some() { 500 } else { 200 };
    let body = error.unwrap_or_else(|| completion(reply, model, asked, &think, &text, &calls));
    let bytes = body.to_string().into_bytes();
    (before, json_head(status, bytes.len()), vec![Step::Write(bytes)])
}

fn completion(reply: &Reply, model: &str, asked: &Asked, think: &str, text: &str, calls: &[&Call]) -> Value {
    let inline = match reply.reasoning {
        Reasoning::Inline if !think.is_empty() => format!("<think>{think}</think>{text}"),
        _ => text.to_owned(),
    };
    let mut message = json!({"role": "assistant", "content": inline});
    if inline.is_empty() && !calls.is_empty() {
        message["content"] = Value::Null;
    }
    if let Some(field) = reply.reasoning.field().filter(|_| !think.is_empty()) {
        message[field] = think.into();
    }
    if !calls.is_empty() {
        let call = |(at, call): (usize, &&Call)| {
            fragment(call, asked.number, at as u64, Opening::Yes, &arguments(call))
        };
        message["tool_calls"] = calls.iter().enumerate().map(call).collect();
    }
    let finish = reply.finish.resolve(|| finish(calls.len()));
    let mut body = envelope(model, asked, "chat.completion");
    body["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    let said = think.len() + text.len() + calls.iter().map(|call| arguments(call).len()).sum::<usize>();
    match &reply.usage {
        Usage::Absent => {}
        other => body["usage"] = usage(other, asked, said),
    }
    body
}

/// The events of a recorded body: each with the empty line that ends it.
pub(super) fn events(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let ended = |end: &usize| rest[..*end].ends_with(b"\n\n") || rest[..*end].ends_with(b"\r\n\r\n");
        let end = (1..=rest.len()).find(ended).unwrap_or(rest.len());
        let (event, tail) = rest.split_at(end);
        rest = tail;
        (!event.is_empty()).then_some(event)
    })
}

struct Stream<'a> {
    model: &'a str,
    asked: &'a Asked,
    reply: &'a Reply,
    steps: Vec<Step>,
    calls: u64,
    said: usize,
    failed: bool,
}

impl Stream<'_> {
    fn part(&mut self, part: &Part) {
        match part {
            Part::Think(say) => self.think(say),
            Part::Text(say) => self.say("content", say),
            Part::Call(call) => self.fragments(&[call]),
            Part::Calls(Calls { list, layout: Layout::Interleaved }) => {
                self.fragments(&list.iter().collect::<Vec<_>>());
            }
            Part::Calls(Calls { list, layout: Layout::OneChunk }) => self.one_chunk(list),
            Part::Error(object) => {
                self.failed = true;
                self.data(&json!({"error": object}).to_string());
            }
            Part::Data(text) => self.data(text),
            Part::Raw(text) => self.steps.push(Step::Write(text.clone().into_bytes())),
            Part::Endless(endless) => {
                let delta = match endless.to {
                    Channel::Text => json!({"content": endless.say}),
                    Channel::Think => json!({self.reply.reasoning.field().unwrap_or("content"): endless.say}),
                    Channel::Arguments => {
                        let index = self.calls.saturating_sub(1);
                        json!({"tool_calls": [{"index": index, "function": {"arguments": endless.say}}]})
                    }
                };
                let event = event(&self.chunk(delta, Value::Null).to_string());
                self.steps.push(Step::Forever(event, Duration::from_millis(endless.gap_ms.max(1))));
            }
            Part::PauseMs(ms) => self.pause(*ms),
            Part::Gate(gate) => self.steps.push(Step::Gate(gate.clone())),
            Part::Stall => self.steps.push(Step::Stall),
        }
    }

    fn end(&mut self) {
        if self.failed {
            return;
        }
        let given_at = match &self.reply.usage {
            Usage::Given(Tokens { chunk, .. }) => Some(*chunk),
            Usage::Zero => Some(UsageChunk::Own),
            Usage::Auto if self.asked.wants_usage() => Some(UsageChunk::Own),
            Usage::Auto | Usage::Absent => None,
        };
        let usage = usage(&self.reply.usage, self.asked, self.said);
        if let Some(finish) = self.reply.finish.resolve(|| finish(self.calls as usize)) {
            let mut chunk = self.chunk(json!({}), finish.into());
            if given_at == Some(UsageChunk::Finish) {
                chunk["usage"] = usage.clone();
            }
            self.data(&chunk.to_string());
        }
        if given_at == Some(UsageChunk::Own) {
            let mut chunk = envelope(self.model, self.asked, "chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = usage;
            self.data(&chunk.to_string());
        }
        if self.reply.done {
            self.data("[DONE]");
        }
    }

    fn think(&mut self, say: &Say) {
        match self.reply.reasoning.field() {
            Some(field) => self.say(field, say),
            None => {
                self.say("content", &"<think>".into());
                self.say("content", say);
                self.say("content", &"</think>".into());
            }
        }
    }

    fn say(&mut self, field: &str, say: &Say) {
        for piece in say.pieces.of(&say.say) {
            self.said += piece.len();
            self.delta(json!({field: piece}));
            self.pause(say.gap_ms);
        }
    }

    /// A fragment of each call in turn, until all are whole.
    fn fragments(&mut self, calls: &[&Call]) {
        let first = self.calls;
        self.calls += calls.len() as u64;
        let queues: Vec<Vec<String>> = calls.iter().map(|call| pieces(call)).collect();
        for round in 0..queues.iter().map(Vec::len).max().unwrap_or(0) {
            for (at, (call, queue)) in calls.iter().zip(&queues).enumerate() {
                let Some(text) = queue.get(round) else { continue };
                let opening = if round == 0 || call.repeat_id { Opening::Yes } else { Opening::No };
                self.said += text.len();
                let fragment = fragment(call, self.asked.number, first + at as u64, opening, text);
                self.delta(json!({"tool_calls": [fragment]}));
                self.pause(call.gap_ms);
            }
        }
    }

    fn one_chunk(&mut self, calls: &[Call]) {
        let first = self.calls;
        self.calls += calls.len() as u64;
        let whole = |(at, call): (usize, &Call)| {
            fragment(call, self.asked.number, first + at as u64, Opening::Yes, &arguments(call))
        };
        let fragments: Vec<Value> = calls.iter().enumerate().map(whole).collect();
        self.said += calls.iter().map(|call| arguments(call).len()).sum::<usize>();
        self.delta(json!({"tool_calls": fragments}));
    }

    fn delta(&mut self, delta: Value) {
        let chunk = self.chunk(delta, Value::Null).to_string();
        self.data(&chunk);
    }

    fn chunk(&self, delta: Value, finish: Value) -> Value {
        let mut chunk = envelope(self.model, self.asked, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        chunk
    }

    fn data(&mut self, text: &str) {
        self.steps.push(Step::Write(event(text)));
    }

    fn pause(&mut self, ms: u64) {
        if ms > 0 {
            self.steps.push(Step::Pause(Duration::from_millis(ms)));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Yes,
    No,
}

impl Reasoning {
    /// The field that carries it; `None` if it stands in the text.
    fn field(self) -> Option<&'static str> {
        match self {
            Reasoning::ReasoningContent => Some("reasoning_content"),
            Reasoning::Reasoning => Some("reasoning"),
            Reasoning::Inline => None,
        }
    }
}

fn event(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

fn envelope(model: &str, asked: &Asked, object: &str) -> Value {
    json!({"id": format!("chatcmpl-{}", asked.number), "object": object, "created": CREATED, "model": model})
}

fn finish(calls: usize) -> String {
    if calls > 0 { "tool_calls" } else { "stop" }.to_owned()
}

fn arguments(call: &Call) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".into(),
        other => other.to_string(),
    }
}

/// The argument text of each fragment; cut calls begin with an empty one.
fn pieces(call: &Call) -> Vec<String> {
    let arguments = arguments(call);
    if call.pieces == Pieces::Whole {
        return vec![arguments];
    }
    let cut = call.pieces.of(&arguments);
    std::iter::once(String::new()).chain(cut.into_iter().map(str::to_owned)).collect()
}

fn fragment(call: &Call, number: u64, position: u64, opening: Opening, arguments: &str) -> Value {
    let mut fragment = Map::new();
    if let Some(index) = call.index.resolve(|| position) {
        fragment.insert("index".into(), index.into());
    }
    if opening == Opening::Yes {
        if let Some(id) = call.id.resolve(|| format!("call_{number}_{position}")) {
            fragment.insert("id".into(), id.into());
        }
        fragment.insert("type".into(), "function".into());
        fragment.insert("function".into(), json!({"name": call.name, "arguments": arguments}));
    } else {
        fragment.insert("function".into(), json!({"arguments": arguments}));
    }
    Value::Object(fragment)
}

fn usage(usage: &Usage, asked: &Asked, said: usize) -> Value {
    let (prompt, completion, cached) = match usage {
        Usage::Auto => (asked.size.div_ceil(4) as u64, said.div_ceil(4) as u64, None),
        Usage::Absent | Usage::Zero => (0, 0, None),
        Usage::Given(tokens) => (tokens.prompt, tokens.completion, tokens.cached),
    };
    let mut value = json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    });
    if let Some(cached) = cached {
        value["prompt_tokens_details"] = json!({"cached_tokens": cached});
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: Value, expected: &[&str]) {
        let reply: Reply = serde_json::from_value(reply).unwrap();
        let asked = Asked { number: 7, size: 40, ..Asked::default() };
        let said: Vec<String> = streamed(&reply, "m", &asked)
            .iter()
            .map(|step| match step {
                Step::Write(bytes) => {
                    let text = String::from_utf8(bytes.clone()).unwrap();
                    let chunk: Value =
                        serde_json::from_str(text.trim().trim_start_matches("data: ")).unwrap_or(text.into());
                    chunk.get("choices").and_then(|choices| choices.get(0)).unwrap_or(&chunk)["delta"]
                        .to_string()
                }
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(said, expected);
    }

    const ROLE: &str = r#"{"content":null,"role":"assistant"}"#;

    #[test]
    fn calls_come_in_fragments_with_and_without_index_and_id() {
        let pieces = json!({"call": {"name": "f", "arguments": {"a": 1}, "pieces": {"bytes": 4}}});
        let bare = json!({"call": {"name": "g", "index": false, "id": ""}});
        check(
            json!({"parts": [pieces, bare], "finish": false, "done": false}),
            &[
                ROLE,
                r#"{"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"call_7_0","index":0,"type":"function"}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"{\"a\""},"index":0}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":":1}"},"index":0}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"{}","name":"g"},"id":"","type":"function"}]}"#,
            ],
        );
    }

    #[test]
    fn several_calls_interleave() {
        let call = |name| json!({"name": name, "arguments": "xy", "pieces": "chars", "id": false});
        check(
            json!({"parts": [{"calls": {"list": [call("f"), call("g")], "layout": "interleaved"}}], "finish": false, "done": false}),
            &[
                ROLE,
                r#"{"tool_calls":[{"function":{"arguments":"","name":"f"},"index":0,"type":"function"}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"","name":"g"},"index":1,"type":"function"}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"x"},"index":0}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"x"},"index":1}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"y"},"index":0}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"y"},"index":1}]}"#,
            ],
        );
    }

    #[test]
    fn several_calls_come_in_one_chunk() {
        let call = |name| json!({"name": name, "id": false, "index": false});
        check(
            json!({"parts": [{"calls": {"list": [call("f"), call("g")], "layout": "one_chunk"}}], "finish": false, "done": false}),
            &[
                ROLE,
                r#"{"tool_calls":[{"function":{"arguments":"{}","name":"f"},"type":"function"},{"function":{"arguments":"{}","name":"g"},"type":"function"}]}"#,
            ],
        );
    }

    #[test]
    fn fragments_may_repeat_the_id() {
        let call = json!({"call": {"name": "f", "arguments": "xy", "pieces": "chars", "id": "a", "repeat_id": true}});
        let fragment = |text| {
            format!(
                r#"{{"tool_calls":[{{"function":{{"arguments":"{text}","name":"f"}},"id":"a","index":0,"type":"function"}}]}}"#
            )
        };
        check(
            json!({"parts": [call], "finish": false, "done": false}),
            &[ROLE, &fragment(""), &fragment("x"), &fragment("y")],
        );
    }

    #[test]
    fn reasoning_goes_where_it_is_told_to() {
        let reply = |reasoning| json!({"parts": [{"think": "t"}], "reasoning": reasoning, "finish": false, "done": false});
        check(reply("reasoning"), &[ROLE, r#"{"reasoning":"t"}"#]);
        check(
            reply("inline"),
            &[ROLE, r#"{"content":"<think>"}"#, r#"{"content":"t"}"#, r#"{"content":"</think>"}"#],
        );
    }

    #[test]
    fn recorded_bodies_fall_into_their_events() {
        let parts: Vec<&[u8]> = events(b"data: a\n\ndata: b\r\n\r\ndata: c").collect();
        assert_eq!(parts, [&b"data: a\n\n"[..], b"data: b\r\n\r\n", b"data: c"]);
    }
}
