//! Following updates: from a record on, through every break of the connection, none twice.

use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use klbr_core::ids::Seq;
use klbr_core::update::Update;
use klbr_server::api::path;
use reqwest::{Method, Response};

use super::{CallError, Client, answered};

/// The first pause after a break; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause between tries.
const LONGEST: Duration = Duration::from_secs(3);

/// What a follower is told.
#[derive(Debug)]
pub(crate) enum News {
    /// The stream stands.
    Attached,
    /// Something happened.
    Update(Box<Update>),
    /// The stream broke, or cannot be had; it is tried again.
    Lost(CallError),
}

/// Everything after a record, for as long as it is listened to. After a break it resumes behind the last
/// durable update. Pieces may be lost with a connection, durable updates never are.
pub(crate) fn follow(client: Client, after: Seq) -> BoxStream<'static, News> {
    let follower = Follower { client, last: after, lines: None, pause: Duration::ZERO };
    stream::unfold(follower, |mut follower| async move {
        let news = follower.next().await;
        Some((news, follower))
    })
    .boxed()
}

struct Follower {
    client: Client,
    last: Seq,
    lines: Option<Lines>,
    pause: Duration,
}

impl Follower {
    async fn next(&mut self) -> News {
        loop {
            let Some(lines) = &mut self.lines else {
                tokio::time::sleep(self.pause).await;
                match self.attach().await {
                    Ok(lines) => {
                        self.lines = Some(lines);
                        self.pause = FIRST;
                        return News::Attached;
                    }
                    Err(error) => {
                        self.pause = (self.pause * 2).clamp(FIRST, LONGEST);
                        return News::Lost(error);
                    }
                }
            };
            match lines.next_data().await {
                Ok(Some(update)) => match update.id {
                    Some(id) if id <= self.last => {}
                    id => {
                        self.last = id.unwrap_or(self.last);
                        return News::Update(Box::new(update));
                    }
                },
                Ok(None) => {
                    self.lines = None;
                    return News::Lost(CallError::Unreachable("the stream of updates ended".into()));
                }
                Err(error) => {
                    self.lines = None;
                    return News::Lost(error);
                }
            }
        }
    }

    async fn attach(&self) -> Result<Lines, CallError> {
        let request = self.client.request(Method::GET, path::EVENTS)?;
        let request = request.header("last-event-id", self.last.0.to_string());
        Ok(Lines { response: answered(request).await?, buffer: Vec::new(), read: 0 })
    }
}

/// The lines of a stream of server-sent events.
struct Lines {
    response: Response,
    buffer: Vec<u8>,
    read: usize,
}

impl Lines {
    /// The next event's data; none at the stream's end.
    async fn next_data(&mut self) -> Result<Option<Update>, CallError> {
        loop {
            while let Some(length) = self.buffer[self.read..].iter().position(|byte| *byte == b'\n') {
                let line = &self.buffer[self.read..self.read + length];
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                // Each event has one line of data: JSON without line breaks.
                let data = line.strip_prefix(b"data:").map(|data| data.strip_prefix(b" ").unwrap_or(data));
                let update = data.map(serde_json::from_slice);
                self.read += length + 1;
                match update {
                    Some(Ok(update)) => return Ok(Some(update)),
                    Some(Err(error)) => return Err(CallError::Unreachable(error.into())),
                    None => {}
                }
            }
            self.buffer.drain(..self.read);
            self.read = 0;
            match self.response.chunk().await.map_err(super::unreachable)? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}
