//! A response's body as the pieces of a reply.
//!
//! Owns the waiting: for the first byte, for the next one, and for the end. The connection is closed as
//! soon as the reply is over or dropped.

use std::time::Duration;

use futures_util::{Stream, stream};
use klbr_core::model::Failure;
use klbr_core::runtime::model::Piece;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use crate::config::Timeouts;
use crate::http::{self, Deadline, Http};
use crate::stream::{End, Reader};

/// The most that is read of a body that is no event stream.
const MOST: usize = 16 << 20;

/// How long the end of a response may take after the end of its reply: a new connection costs more.
const SETTLE: Duration = Duration::from_millis(5);

struct Reading {
    response: Option<Response>,
    reader: Reader,
    /// What is read of a body that is JSON instead of an event stream.
    body: Option<Vec<u8>>,
    /// How long the first byte may take; absent once it has come.
    first_byte: Option<Deadline>,
    timeouts: Timeouts,
    http: Http,
}

/// Reads a successful response.
///
/// # Errors
///
/// Fails when the response is a page for people.
pub(super) fn stream(
    response: Response,
    first_byte: Deadline,
    timeouts: Timeouts,
    http: Http,
) -> Result<impl Stream<Item = Result<Piece, Failure>> + Send + use<>, Failure> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/html") {
        let message = "a page for people came instead of a reply: is the base URL right?".to_owned();
        return Err(Failure::Malformed(message));
    }
    let body = kind.starts_with("application/json").then(Vec::new);
    let reader = Reader::new();
    let reading =
        Reading { response: Some(response), reader, body, first_byte: Some(first_byte), timeouts, http };
    Ok(stream::unfold(reading, |mut reading| async move {
        let piece = reading.next().await?;
        Some((piece, reading))
    }))
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        loop {
            if let Some(piece) = self.reader.poll() {
                return Some(piece.map_err(|failure| self.redact(failure)));
            }
            let response = self.response.as_mut()?;
            let deadline = match self.first_byte {
                Some(deadline) => deadline,
                None if self.reader.has_finish() => Deadline::after(self.timeouts.linger),
                None => Deadline::after(self.timeouts.idle),
            };
            match deadline.within(response.chunk()).await {
                Ok(Ok(Some(bytes))) => self.handle_bytes(&bytes),
                Ok(Ok(None)) => self.handle_end(End::Closed),
                Ok(Err(error)) => self.handle_end(End::Broken(http::words(&error))),
                Err(Failure::Stalled(after)) => self.handle_end(End::Stalled(after)),
                Err(other) => return Some(Err(other)),
            }
            if self.reader.is_over() {
                self.close().await;
            }
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        self.first_byte = None;
        let Some(body) = &mut self.body else { return self.reader.handle_bytes(bytes) };
        body.extend_from_slice(bytes);
        let is_json =
            body.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|byte| b"{[".contains(byte));
        if !is_json || body.len() > MOST {
            // An event stream under a wrong name, or nothing that a reply can be.
            let body = self.body.take().unwrap_or_default();
            self.reader.handle_bytes(&body);
        }
    }

    fn handle_end(&mut self, end: End) {
        match self.body.take() {
            Some(body) if end == End::Closed => self.reader.handle_body(&body),
            _ => self.reader.handle_end(end),
        }
    }

    /// Lets go of the connection. One whose response ends now by itself is used again.
    async fn close(&mut self) {
        if let Some(mut response) = self.response.take() {
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            let _in_time = Deadline::after(SETTLE).within(rest).await;
        }
    }

    fn redact(&self, failure: Failure) -> Failure {
        let redact = |message| self.http.redact(message);
        match failure {
            Failure::Disconnected(message) => Failure::Disconnected(redact(message)),
            Failure::Malformed(message) => Failure::Malformed(redact(message)),
            Failure::RateLimited { retry_after, message } => {
                Failure::RateLimited { retry_after, message: redact(message) }
            }
            Failure::Provider { status, retry_after, message } => {
                Failure::Provider { status, retry_after, message: redact(message) }
            }
            Failure::ContextOverflow { limit, message } => {
                Failure::ContextOverflow { limit, message: redact(message) }
            }
            Failure::Unauthorized { status, message } => {
                Failure::Unauthorized { status, message: redact(message) }
            }
            Failure::Refused { status, message } => Failure::Refused { status, message: redact(message) },
            Failure::Stalled(after) => Failure::Stalled(after),
        }
    }
}
