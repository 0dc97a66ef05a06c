//! A client that sees bytes: what the tests speak to the fake with.

use std::time::Duration;

use klbr_tests::fake_model::{Event, FakeModel, What};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Far longer than anything here takes.
pub(super) const WATCHDOG: Duration = Duration::from_secs(20);

/// A fake with one answer for every chat request.
pub(super) async fn always(answer: Value) -> FakeModel {
    scripted(json!({"rules": [{"answer": answer}]})).await
}

pub(super) async fn scripted(script: Value) -> FakeModel {
    FakeModel::scripted(&script).await.unwrap()
}

/// A fake whose streamed reply consists of these parts.
pub(super) async fn says(parts: Value) -> FakeModel {
    always(json!({"body": {"reply": {"parts": parts}}})).await
}

pub(super) fn streaming(text: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]})
}

/// Sends a chat request through an HTTP client.
pub(super) async fn post(fake: &FakeModel, body: &Value) -> reqwest::Response {
    let url = format!("{}/chat/completions", fake.ready().base);
    klbr_tests::http::client().post(url).json(body).send().await.unwrap()
}

/// The data of each event of a whole streamed reply.
pub(super) async fn stream(fake: &FakeModel, body: &Value) -> Vec<String> {
    let response = post(fake, body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    data(&response.text().await.unwrap())
}

pub(super) fn data(body: &str) -> Vec<String> {
    body.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

/// What the chunks of a stream add up to: one member of the deltas, joined.
pub(super) fn joined(data: &[String], field: &str) -> String {
    let piece = |data: &String| {
        let chunk: Value = serde_json::from_str(data).ok()?;
        chunk["choices"][0]["delta"][field].as_str().map(str::to_owned)
    };
    data.iter().filter_map(piece).collect()
}

/// A connection that shows each byte as it came.
pub(super) struct Raw {
    pub(super) stream: TcpStream,
    pub(super) seen: Vec<u8>,
}

impl Raw {
    /// Connects and sends a chat request.
    pub(super) async fn ask(fake: &FakeModel, body: &[u8]) -> Raw {
        let address = fake.ready().server.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        Raw { stream, seen: Vec::new() }
    }

    /// Reads until so many bytes of a chunked body are there, or its end: the bytes so far.
    pub(super) async fn body(&mut self, wanted: usize) -> Vec<u8> {
        loop {
            let body = unchunked(&self.seen);
            if body.len() >= wanted || self.fill().await.unwrap() == 0 {
                return body;
            }
        }
    }

    /// Reads until the head is there.
    pub(super) async fn head(&mut self) {
        while !self.seen.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            assert!(self.fill().await.unwrap() > 0, "the connection ended before the head");
        }
    }

    /// Reads until the connection ends: `Ok` in order, `Err` by a reset.
    pub(super) async fn end(&mut self) -> std::io::Result<Vec<u8>> {
        while self.fill().await? > 0 {}
        Ok(unchunked(&self.seen))
    }

    async fn fill(&mut self) -> std::io::Result<usize> {
        tokio::time::timeout(WATCHDOG, self.stream.read_buf(&mut self.seen)).await.expect("nothing came")
    }
}

/// The bytes of a chunked body as far as they came.
fn unchunked(wire: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let Some(head) = wire.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return body };
    let mut rest = &wire[head + 4..];
    while let Some(line) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let chunk = &rest[line + 2..];
        body.extend(&chunk[..size.min(chunk.len())]);
        rest = chunk.get(size + 2..).unwrap_or_default();
    }
    body
}

/// Waits for an event of the chat request of this number.
pub(super) async fn event(
    fake: &FakeModel,
    request: u64,
    what: &str,
    wanted: impl Fn(&What) -> bool,
) -> Event {
    let of = |event: &Event| event.request == Some(request) && wanted(&event.what);
    fake.control().wait_event(what, 0, WATCHDOG, of).await.unwrap()
}
