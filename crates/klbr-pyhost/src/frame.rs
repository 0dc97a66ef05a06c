//! Frames: four bytes of length (big endian), then one JSON object. Owns the cutting and the bound on a frame's size.
//!
//! JSON, because Python parses it in C without a dependency: a question of 557 bytes takes 4 µs each way there; the
//! same as MessagePack takes 28 and 11 µs in pure Python.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest frame, in bytes. More is a broken peer.
pub(crate) const MAX_FRAME: usize = 16 * 1024 * 1024;

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes is longer than {MAX_FRAME}")]
    TooLong(usize),
    #[error("a frame is not what the protocol knows: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the connection ended")]
    Ended,
}

/// A frame's bytes.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > MAX_FRAME {
        return Err(FrameError::TooLong(length));
    }
    let prefix = u32::try_from(length).expect("MAX_FRAME fits 32 bits");
    bytes[..4].copy_from_slice(&prefix.to_be_bytes());
    Ok(bytes)
}

/// Cuts what is read into frames.
#[derive(Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    /// Where the first byte that was not used yet stands.
    start: usize,
}

impl Decoder {
    /// Takes what was read elsewhere.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame, if there is one.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let waiting = &self.buffer[self.start..];
        let Some((prefix, rest)) = waiting.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = serde_json::from_slice(body)?;
        self.start += 4 + length;
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
        Ok(Some(frame))
    }

    /// Waits for the next frame. Cancel-safe: what was read stays.
    pub(crate) async fn read<T: DeserializeOwned>(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<T, FrameError> {
        loop {
            if let Some(frame) = self.next()? {
                return Ok(frame);
            }
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            self.buffer.reserve(16 * 1024);
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(FrameError::Ended);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_however_the_bytes_are_cut() {
        let sent = [serde_json::json!({"t": "a"}), serde_json::json!({"t": "b", "text": "ä\u{0}\n"})];
        let bytes: Vec<u8> = sent.iter().flat_map(|frame| encode(frame).unwrap()).collect();
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut heard: Vec<serde_json::Value> = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.feed(piece);
                while let Some(frame) = decoder.next().unwrap() {
                    heard.push(frame);
                }
            }
            assert_eq!(heard, sent, "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut decoder = Decoder::default();
        decoder.feed(b"Hello, this was printed");
        assert!(matches!(decoder.next::<serde_json::Value>(), Err(FrameError::TooLong(_))));
        let mut decoder = Decoder::default();
        decoder.feed(b"\0\0\0\x02{]");
        assert!(matches!(decoder.next::<serde_json::Value>(), Err(FrameError::Unreadable(_))));
    }
}
