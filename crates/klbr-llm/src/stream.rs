//! A reply out of a response's bytes, without I/O.
//!
//! Owns the whole way from bytes to [`Piece`]s: framing, lenient chunks, calls in fragments, inline
//! reasoning, error frames, and what the end of the bytes means. Refuses clocks and sockets: whoever reads
//! the response says when the bytes ended and how.

mod assemble;
mod banner;
mod chunk;
pub(crate) mod object;
mod sse;
mod think;

use std::collections::VecDeque;
use std::time::Duration;

use klbr_core::model::{Delta, Failure};
use klbr_core::runtime::model::Piece;

use self::assemble::Assembler;
use self::object::Object;
use self::sse::Event;
use crate::failure;

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// Bytes that no dialect known here writes.
#[derive(Debug)]
struct Broken(String);

/// How a response's bytes ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The response is complete as HTTP.
    Closed,
    /// The connection broke, with these words.
    Broken(String),
    /// Nothing arrived for this long.
    Stalled(Duration),
}

/// Reads one streamed reply. Any split of the same bytes gives the same pieces, but for where the deltas
/// are cut.
///
/// ```
/// use klbr_core::runtime::model::Piece;
/// use klbr_llm::stream::{End, Reader};
///
/// let mut reader = Reader::new();
/// reader.handle_bytes(b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n");
/// reader.handle_end(End::Closed);
/// let pieces: Vec<_> = std::iter::from_fn(|| reader.poll()).collect();
/// assert!(matches!(&pieces[1], Ok(Piece::Finished(sampled)) if sampled.text == "hi"));
/// ```
#[derive(Debug, Default)]
pub struct Reader {
    decoder: sse::Decoder,
    assembler: Assembler,
    pieces: VecDeque<Result<Piece, Failure>>,
    over: bool,
}

impl Reader {
    /// A reader of a reply that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes of an event stream; after the reply is over they are ignored.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.over {
            return;
        }
        let mut events = Vec::new();
        let result = self.decoder.handle_bytes(bytes, &mut |event| events.push(event));
        events.into_iter().for_each(|event| self.handle_event(event));
        if let Err(Broken(what)) = result {
            self.fail(Failure::Malformed(what));
        }
    }

    /// Takes a whole body that is JSON instead of an event stream, from a server that does not stream.
    pub fn handle_body(&mut self, body: &[u8]) {
        let data = String::from_utf8_lossy(body).into_owned();
        self.handle_event(Event { name: String::new(), data, cut: false });
        self.finish_or_fail(End::Closed);
    }

    /// Takes the end of the bytes. Without a finish reason or the end marker before it, that is a failure.
    pub fn handle_end(&mut self, end: End) {
        let mut events = Vec::new();
        self.decoder.handle_end(&mut |event| events.push(event));
        events.into_iter().for_each(|event| self.handle_event(event));
        self.finish_or_fail(end);
    }

    /// The next piece, once it has arrived.
    pub fn poll(&mut self) -> Option<Result<Piece, Failure>> {
        self.pieces.pop_front()
    }

    /// Whether nothing more is expected: the reply is whole or has failed.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether the provider has said why the reply ends; calls, usage and the end marker may still follow.
    pub fn has_finish(&self) -> bool {
        self.assembler.has_finish()
    }

    fn handle_event(&mut self, event: Event) {
        let data = event.data.trim();
        if self.over || data.is_empty() && !failure::names_error(&event.name) {
            return;
        }
        if data == DONE {
            return self.finish();
        }
        let problem = failure::from_event(&event.name, data, self.assembler.has_content());
        if let Some(failure) = problem {
            return self.fail(failure);
        }
        match Object::read(data) {
            Some(object) => self.handle_chunk(&object),
            None if event.cut => {}
            None if data == "null" => {}
            // A named event that is no object is a sign of life, not a damaged chunk.
            None if !event.name.is_empty() && !data.starts_with('{') => {}
            None => self.fail(Failure::Malformed(format!("no chunk of a reply: {}", failure::excerpt(data)))),
        }
    }

    fn handle_chunk(&mut self, object: &Object<'_>) {
        let mut deltas = Vec::new();
        self.assembler.handle(chunk::read(object), &mut deltas);
        self.show(deltas);
        if self.assembler.failed() {
            let message = "the provider ended the reply as failed".to_owned();
            self.fail(Failure::Provider { status: None, retry_after: None, message });
        }
    }

    fn finish_or_fail(&mut self, end: End) {
        if self.over {
            return;
        }
        if self.assembler.is_settled() {
            return self.finish();
        }
        self.fail(match end {
            End::Closed => Failure::Disconnected("the reply ended before it was whole".to_owned()),
            End::Broken(message) => Failure::Disconnected(message),
            End::Stalled(after) => Failure::Stalled(after),
        });
    }

    fn finish(&mut self) {
        let mut deltas = Vec::new();
        let sampled = std::mem::take(&mut self.assembler).finish(&mut deltas);
        self.show(deltas);
        self.pieces.push_back(Ok(Piece::Finished(sampled)));
        self.over = true;
    }

    fn fail(&mut self, failure: Failure) {
        if !self.over {
            self.pieces.push_back(Err(failure));
            self.over = true;
        }
    }

    fn show(&mut self, deltas: Vec<Delta>) {
        self.pieces.extend(deltas.into_iter().map(|delta| Ok(Piece::Delta(delta))));
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};

    use super::*;

    /// Reads events with these data, then the end of the bytes; one line a piece.
    #[track_caller]
    fn check(events: &[&str], expected: Expect) {
        let mut reader = Reader::new();
        for data in events {
            reader.handle_bytes(format!("data: {data}\n\n").as_bytes());
        }
        reader.handle_end(End::Closed);
        assert!(reader.is_over());
        let mut lines = String::new();
        while let Some(piece) = reader.poll() {
            match piece {
                Ok(Piece::Delta(delta)) => writeln!(lines, "{delta:?}"),
                Ok(Piece::Finished(sampled)) => {
                    writeln!(lines, "{}", serde_json::to_string(&sampled).unwrap())
                }
                Err(failure) => writeln!(lines, "{failure}"),
            }
            .unwrap();
        }
        expected.assert_eq(&lines);
    }

    #[test]
    fn calls_and_usage_may_come_after_the_finish_reason() {
        check(
            &[
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
                "[DONE]",
                r#"{"choices":[{"delta":{"content":"after the end"}}]}"#,
            ],
            expect![[r#"
                Scratch("a")
                CallStarted { name: "f" }
                {"text":"a","calls":[{"id":"c","name":"f","arguments":"{}"}],"finish":"stop","usage":{"input":3,"output":4}}
            "#]],
        );
    }

    #[test]
    fn a_marker_without_a_reason_is_an_end_that_says_nothing() {
        check(
            &[r#"{"choices":[{"delta":{"content":"a"}}]}"#, "[DONE]"],
            expect![[r#"
                Scratch("a")
                {"text":"a","calls":[],"finish":"unsaid"}
            "#]],
        );
    }

    #[test]
    fn what_llama_swap_says_itself_is_not_the_reply() {
        check(
            &[
                r#"{"choices":[{"delta":{"reasoning_content":"━━━━━\n"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"llama-swap loading model: q\n"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"."}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"\nDone! (1.00s)\n"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"━━━━━\n"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":" \n"}}]}"#,
                r#"{"choices":[{"delta":{"content":"hello"}}]}"#,
                r#"{"error":"group: model unloaded"}"#,
            ],
            expect![[r#"
                Scratch("hello")
                the provider failed: group: model unloaded
            "#]],
        );
    }

    #[test]
    fn inline_reasoning_is_told_apart_across_chunks() {
        check(
            &[
                r#"{"choices":[{"delta":{"content":"<th"}}]}"#,
                r#"{"choices":[{"delta":{"content":"ink>why"}}]}"#,
                r#"{"choices":[{"delta":{"content":"</think>\n\nso <"},"finish_reason":"stop"}]}"#,
            ],
            expect![[r#"
                Think("why")
                Scratch("so ")
                Scratch("<")
                {"text":"so <","reasoning":"why","calls":[],"finish":"stop"}
            "#]],
        );
    }

    #[test]
    fn reasoning_whose_tag_the_prompt_had_opened_is_reasoning_in_the_end() {
        check(
            &[r#"{"choices":[{"delta":{"content":"why</think>so"},"finish_reason":"stop"}]}"#],
            expect![[r#"
                Scratch("why")
                Scratch("so")
                {"text":"so","reasoning":"why","calls":[],"finish":"stop"}
            "#]],
        );
    }

    #[test]
    fn signs_of_life_are_no_chunks_and_damage_is_no_sign_of_life() {
        let mut reader = Reader::new();
        reader.handle_bytes(b"event: ping\ndata: 2026\n\ndata: null\n\n: still here\n\ndata:\n\n");
        assert!(!reader.is_over());
        reader.handle_bytes(b"event: chunk\ndata: {\"choices\n\n");
        assert!(matches!(reader.poll(), Some(Err(Failure::Malformed(_)))));
    }

    #[test]
    fn a_break_after_the_reason_loses_nothing_that_was_whole() {
        let mut reader = Reader::new();
        reader.handle_bytes(b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
        assert!(reader.has_finish() && !reader.is_over());
        reader.handle_end(End::Broken("reset".into()));
        assert!(matches!(reader.poll(), Some(Ok(Piece::Finished(_)))));
    }
}
