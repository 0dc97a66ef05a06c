//! Streams of real providers, read as an independent assembler read them, however they are cut.

use std::fmt::Write as _;
use std::fs;

use klbr_core::model::{Finish, RawCall, Sampled, Usage};
use serde_json::Value;

use crate::outcome::{Outcome, read, read_cut};
use crate::shared;

/// Offsets inside characters, line ends, tags, escapes and field names: where a cut hurts.
fn sore_points(bytes: &[u8]) -> Vec<usize> {
    let is_sore = |at: usize| {
        let (before, after) = (bytes[at - 1], bytes[at]);
        after & 0xc0 == 0x80
            || matches!(before, b'\r' | b'\n' | b'<' | b'/' | b'\\' | b':')
            || matches!(after, b'\n' | b'>' | b'"')
    };
    (1..bytes.len()).filter(|at| is_sore(*at)).collect()
}

/// Offsets at random distances of 1 to 64 bytes; the same for the same seed.
fn random_points(seed: u64, length: usize) -> Vec<usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut at = 0;
    std::iter::from_fn(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        at += 1 + usize::try_from(state % 64).expect("below 64");
        (at < length).then_some(at)
    })
    .collect()
}

/// What the stream is expected to be, in the port's words.
struct Expected {
    text: String,
    reasoning: String,
    calls: Vec<RawCall>,
    finish: Finish,
    usage: Option<Usage>,
    /// Whether the expectation says how many tokens were cached.
    counts_cached: bool,
    error: bool,
    /// Rules that had to map it.
    mapped: Vec<&'static str>,
}

impl Expected {
    fn new(expect: &Value, body: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut expected = Expected {
            text: text(&expect["text"]),
            reasoning: text(&expect["reasoning"]),
            calls: expect["tool_calls"].as_array().expect("calls").iter().map(expected_call).collect(),
            finish: match expect["finish_reason"].as_str() {
                None => Finish::Unsaid,
                Some("stop") => Finish::Stop,
                Some("tool_calls") => Finish::ToolCalls,
                Some("length") => Finish::Length,
                Some(other) => panic!("a finish reason that no expectation had: {other}"),
            },
            usage: expected_usage(&expect["usage"]),
            counts_cached: expect["usage"]["cached_tokens"].is_u64(),
            error: expect["error"].as_bool().expect("error"),
            mapped: Vec::new(),
        };
        expected.map_inline_reasoning();
        expected.map_refusal(body);
        expected
    }

    /// The expectation leaves inline reasoning in the text; the port keeps them apart.
    fn map_inline_reasoning(&mut self) {
        let Some((reasoning, text)) =
            self.text.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"))
        else {
            return;
        };
        self.mapped.push("inline reasoning");
        (self.reasoning, self.text) = (reasoning.to_owned(), text.trim_start().to_owned());
    }

    /// The expectation has no word for a refusal; for the port it is what the model said.
    fn map_refusal(&mut self, body: &str) {
        if !self.text.is_empty() {
            return;
        }
        for data in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let Ok(chunk) = serde_json::from_str::<Value>(data) else { continue };
            self.text.push_str(chunk["choices"][0]["delta"]["refusal"].as_str().unwrap_or_default());
        }
        if !self.text.is_empty() {
            self.mapped.push("refusal as text");
        }
    }

    fn differs_from(&self, outcome: &Outcome) -> Option<String> {
        let mut differences = String::new();
        let mut compare = |what: &str, seen: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
            let (seen, expected) = (format!("{seen:?}"), format!("{expected:?}"));
            if seen != expected {
                writeln!(differences, "  {what}: {seen}\n    expected: {expected}")
                    .expect("a string takes it");
            }
        };
        compare("shown text", &outcome.text, &self.text);
        compare("shown reasoning", &outcome.reasoning, &self.reasoning);
        compare("failed", &outcome.end.is_err(), &self.error);
        if let Ok(sampled) = &outcome.end {
            compare("text", &sampled.text, &self.text);
            compare("reasoning", &sampled.reasoning.as_deref().unwrap_or_default(), &self.reasoning);
            compare("calls", &sampled.calls, &self.calls);
            compare("finish", &sampled.finish, &self.finish);
            let silent =
                |usage: Usage| Usage { cached: usage.cached.filter(|_| self.counts_cached), ..usage };
            compare("usage", &sampled.usage.map(silent), &self.usage);
        }
        (!differences.is_empty()).then_some(differences)
    }
}

fn expected_call(call: &Value) -> RawCall {
    RawCall {
        id: call["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
        name: call["name"].as_str().unwrap_or_default().to_owned(),
        arguments: call["arguments"].as_str().unwrap_or_default().to_owned(),
    }
}

fn expected_usage(usage: &Value) -> Option<Usage> {
    let input = usage["prompt_tokens"].as_u64()?;
    let output = usage["completion_tokens"].as_u64()?;
    ((input, output) != (0, 0)).then_some(Usage { input, output, cached: usage["cached_tokens"].as_u64() })
}

/// Reads a stream in every way; gives the first difference.
fn check(body: &[u8], expected: &Expected) -> Result<(), String> {
    let text = String::from_utf8(body.to_vec()).expect("a recording is UTF-8");
    let whole = read([body]);
    if let Some(differences) = expected.differs_from(&whole) {
        return Err(format!("whole:\n{differences}"));
    }
    check_broken_off(body, &whole)?;
    let endings =
        [("LF", text.clone()), ("CRLF", text.replace('\n', "\r\n")), ("CR", text.replace('\n', "\r"))];
    for (ending, body) in &endings {
        let body = body.as_bytes();
        let same = |how: String, outcome: Outcome| {
            if outcome == whole {
                Ok(())
            } else {
                Err(format!("{ending}, {how}: {outcome:?}\n not {whole:?}"))
            }
        };
        same("byte by byte".into(), read(body.chunks(1)))?;
        same("cut where it hurts".into(), read_cut(body, sore_points(body)))?;
        for seed in 0..2 {
            same(format!("cut by seed {seed}"), read_cut(body, random_points(seed, body.len())))?;
        }
    }
    Ok(())
}

/// A stream that breaks off is a failure, or comes after everything of the reply but its usage.
fn check_broken_off(body: &[u8], whole: &Outcome) -> Result<(), String> {
    let Ok(whole) = &whole.end else { return Ok(()) };
    let said = |sampled: &Sampled| {
        (sampled.text.clone(), sampled.reasoning.clone(), sampled.calls.clone(), sampled.finish.clone())
    };
    const BREAKS: usize = 12;
    let points = random_points(7, body.len());
    for length in points.iter().copied().step_by(1 + points.len() / BREAKS) {
        if let Ok(short) = read([&body[..length]]).end
            && said(&short) != said(whole)
        {
            return Err(format!("broken off after {length} bytes: {short:?}\n not {whole:?}"));
        }
    }
    Ok(())
}

#[test]
fn recorded_streams_read_as_expected_however_they_are_cut() {
    let Some(folder) = shared::folder("real/streams") else { return };
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the folder lists")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sse"))
        .collect();
    paths.sort();
    let mut failures = String::new();
    let mut mapped = std::collections::BTreeMap::<_, usize>::new();
    let mut good = 0;
    for path in &paths {
        let body = fs::read(path).expect("a recording");
        let case: Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).expect("its expectation"))
                .expect("JSON");
        let expected = Expected::new(&case["expect"], &String::from_utf8_lossy(&body));
        match check(&body, &expected) {
            Ok(()) => good += 1,
            Err(difference) => {
                writeln!(failures, "{}: {difference}", path.display()).expect("a string takes it");
            }
        }
        expected.mapped.iter().for_each(|rule| *mapped.entry(*rule).or_default() += 1);
    }
    println!("streams {good}/{} (mapped: {mapped:?})", paths.len());
    assert!(failures.is_empty(), "{failures}");
    assert!(!paths.is_empty(), "the folder holds recordings");
}
