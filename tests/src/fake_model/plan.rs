//! From an answer to the steps that a connection takes: a pure translation.
//!
//! Owns where writes end, where an answer breaks off, and the head. Refuses to touch a socket.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::reply;
use super::script::{
    Answer, Body, Cut, CutAt, CutHow, Refuse, Replay, RetryAfter, Says, Script, Split, Writes,
};

/// One thing that a connection does. Past the last step the response is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Pause(Duration),
    Gate(String),
    Head(Head),
    /// Bytes of the body, in one write.
    Write(Vec<u8>),
    /// The same bytes again and again.
    Forever(Vec<u8>, Duration),
    Stall,
    Reset,
    Close,
}

/// The status line and what decides the framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) retry_after: Option<String>,
    /// `None`: chunked.
    pub(super) length: Option<usize>,
}

/// A chat request as far as answers depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) body: Value,
    /// Bytes of the body.
    pub(super) size: usize,
    /// The how-manieth request this is; ids derive from it.
    pub(super) number: u64,
}

impl Asked {
    pub(super) fn stream(&self) -> bool {
        self.body["stream"] == true
    }

    pub(super) fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    pub(super) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Translates an answer.
pub(super) fn answer(script: &Script, answer: &Answer, asked: &Asked) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(answer.gate.clone().map(Step::Gate));
    if answer.delay_ms > 0 {
        steps.push(Step::Pause(Duration::from_millis(answer.delay_ms)));
    }
    let (before, head, body) = match &answer.body {
        Body::Reply(reply) if asked.stream() => {
            (vec![], stream(), reply::streamed(reply, &script.model, asked))
        }
        Body::Reply(reply) => reply::whole(reply, &script.model, asked),
        Body::Replay(replay) => match replayed(replay) {
            Ok(bytes) => {
                (vec![], stream(), reply::events(&bytes).map(|event| Step::Write(event.to_vec())).collect())
            }
            Err(reason) => (vec![], text(500, reason.len()), vec![Step::Write(reason.into_bytes())]),
        },
        Body::Refuse(refuse) => refused(refuse, script),
        Body::Operator(operator) => {
            let spoken = super::operator::answer(operator, asked.messages(), script.seed, asked.number);
            let cut = spoken.cut.or_else(|| answer.cut.clone());
            return self::answer(script, &Answer { body: spoken.body, cut, ..answer.clone() }, asked);
        }
    };
    steps.extend(before);
    let body = split(body, &answer.writes);
    match &answer.cut {
        Some(Cut { at: CutAt::Start, how }) => steps.push(how.step()),
        Some(at) => steps.extend(std::iter::once(Step::Head(head)).chain(cut(body, at))),
        None => steps.extend(std::iter::once(Step::Head(head)).chain(body)),
    }
    steps
}

/// A page of JSON, or of text if it is a string.
pub(super) fn page(status: u16, body: &Value) -> Vec<Step> {
    let bytes = match body {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    };
    vec![Step::Head(json_head(status, bytes.len())), Step::Write(bytes)]
}

fn stream() -> Head {
    Head { status: 200, content_type: "text/event-stream", retry_after: None, length: None }
}

fn text(status: u16, length: usize) -> Head {
    Head { status, content_type: "text/plain; charset=utf-8", retry_after: None, length: Some(length) }
}

pub(super) fn json_head(status: u16, length: usize) -> Head {
    Head { status, content_type: "application/json", retry_after: None, length: Some(length) }
}

fn replayed(replay: &Replay) -> Result<Vec<u8>, String> {
    match replay {
        Replay::Text(text) => Ok(text.clone().into_bytes()),
        Replay::File(path) => {
            std::fs::read(path).map_err(|error| format!("the script replays {}: {error}", path.display()))
        }
    }
}

fn refused(refuse: &Refuse, script: &Script) -> (Vec<Step>, Head, Vec<Step>) {
    let status = refuse.status;
    let (bytes, plain) = match &refuse.says {
        Says::Fitting => (fitting(status).to_string(), false),
        Says::Overflow => (overflow(script.context_tokens).to_string(), false),
        Says::Json(value) => (value.to_string(), false),
        Says::Text(text) => (text.clone(), true),
    };
    let head = if plain { text(status, bytes.len()) } else { json_head(status, bytes.len()) };
    let retry_after = refuse.retry_after.as_ref().map(|retry_after| match retry_after {
        RetryAfter::Seconds(seconds) => seconds.to_string(),
        RetryAfter::DateIn(seconds) => {
            httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(*seconds))
        }
        RetryAfter::Text(text) => text.clone(),
    });
    (vec![], Head { retry_after, ..head }, vec![Step::Write(bytes.into_bytes())])
}

fn fitting(status: u16) -> Value {
    let (kind, code, message) = match status {
        401 | 403 => ("invalid_request_error", json!("invalid_api_key"), "Incorrect API key provided."),
        404 => ("invalid_request_error", json!("model_not_found"), "The model does not exist."),
        429 => ("rate_limit_error", json!("rate_limit_exceeded"), "Rate limit reached."),
        400..=499 => ("invalid_request_error", Value::Null, "The request is invalid."),
        _ => ("server_error", Value::Null, "The server had an error."),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn overflow(context_tokens: u64) -> Value {
    json!({"error": {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": context_tokens + 1,
        "n_ctx": context_tokens,
    }})
}

fn split(steps: Vec<Step>, writes: &Writes) -> Vec<Step> {
    let mut out = Vec::new();
    let mut offset = 0;
    let mut pending: Vec<u8> = Vec::new();
    for step in steps {
        match step {
            Step::Write(bytes) if writes.split != Split::Events => pending.extend(bytes),
            step => {
                flush(&mut pending, &mut offset, &writes.split, &mut out);
                out.push(step);
            }
        }
    }
    flush(&mut pending, &mut offset, &writes.split, &mut out);
    if writes.gap_ms == 0 {
        return out;
    }
    let gap = Step::Pause(Duration::from_millis(writes.gap_ms));
    out.into_iter()
        .flat_map(|step| {
            let gap = matches!(step, Step::Write(_)).then(|| gap.clone());
            std::iter::once(step).chain(gap)
        })
        .collect()
}

fn flush(pending: &mut Vec<u8>, offset: &mut usize, split: &Split, out: &mut Vec<Step>) {
    while !pending.is_empty() {
        let size = match split {
            Split::Events => pending.len(),
            Split::Each(size) => (*size).max(1),
            Split::At(offsets) => {
                offsets.iter().filter(|at| **at > *offset).min().map_or(pending.len(), |at| at - *offset)
            }
        };
        let rest = pending.split_off(size.min(pending.len()));
        let write = std::mem::replace(pending, rest);
        *offset += write.len();
        out.push(Step::Write(write));
    }
}

fn cut(steps: Vec<Step>, cut: &Cut) -> Vec<Step> {
    let mut left = cut.at;
    let mut out = Vec::new();
    for step in steps {
        if matches!(left, CutAt::Byte(0) | CutAt::Write(0)) {
            break;
        }
        match step {
            Step::Write(bytes) => out.push(Step::Write(take(&mut left, bytes))),
            Step::Forever(bytes, gap) => {
                while !matches!(left, CutAt::Byte(0) | CutAt::Write(0)) && !bytes.is_empty() {
                    out.push(Step::Write(take(&mut left, bytes.clone())));
                    out.push(Step::Pause(gap));
                }
            }
            other => out.push(other),
        }
    }
    if matches!(left, CutAt::Byte(0) | CutAt::Write(0)) {
        out.push(cut.how.step());
    }
    out
}

fn take(left: &mut CutAt, mut bytes: Vec<u8>) -> Vec<u8> {
    match left {
        CutAt::Start => {}
        CutAt::Byte(count) => {
            bytes.truncate(*count);
            *count -= bytes.len();
        }
        CutAt::Write(count) => *count -= 1,
    }
    bytes
}

impl CutHow {
    fn step(self) -> Step {
        match self {
            CutHow::Reset => Step::Reset,
            CutHow::Close => Step::Close,
            CutHow::Stall => Step::Stall,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(steps: &[Step]) -> Vec<String> {
        let write = |step: &Step| match step {
            Step::Write(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => format!("{other:?}"),
        };
        steps.iter().map(write).collect()
    }

    fn body() -> Vec<Step> {
        vec![Step::Write(b"abc".into()), Step::Write(b"def".into()), Step::Stall, Step::Write(b"gh".into())]
    }

    #[test]
    fn writes_end_where_they_are_told_to() {
        let split = |split| writes(&super::split(body(), &Writes { split, gap_ms: 0 }));
        assert_eq!(split(Split::Events), ["abc", "def", "Stall", "gh"]);
        assert_eq!(split(Split::Each(4)), ["abcd", "ef", "Stall", "gh"]);
        assert_eq!(split(Split::At(vec![7, 1, 6])), ["a", "bcdef", "Stall", "g", "h"]);
        let paced = super::split(body(), &Writes { split: Split::Each(100), gap_ms: 2 });
        assert_eq!(writes(&paced), ["abcdef", "Pause(2ms)", "Stall", "gh", "Pause(2ms)"]);
    }

    #[test]
    fn an_answer_breaks_off_where_it_is_told_to() {
        let cut = |at, steps| writes(&super::cut(steps, &Cut { at, how: CutHow::Reset }));
        assert_eq!(cut(CutAt::Byte(0), body()), ["Reset"]);
        assert_eq!(cut(CutAt::Byte(4), body()), ["abc", "d", "Reset"]);
        assert_eq!(cut(CutAt::Byte(8), body()), ["abc", "def", "Stall", "gh", "Reset"]);
        assert_eq!(cut(CutAt::Byte(9), body()), ["abc", "def", "Stall", "gh"]);
        assert_eq!(cut(CutAt::Write(1), body()), ["abc", "Reset"]);
        let endless = vec![Step::Forever(b"xy".into(), Duration::from_millis(1))];
        assert_eq!(cut(CutAt::Byte(3), endless), ["xy", "Pause(1ms)", "x", "Pause(1ms)", "Reset"]);
    }
}
