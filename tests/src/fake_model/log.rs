//! What the fake saw and did: captured requests and stamped events.
//!
//! Owns the shapes that the control API serves, and the waiting for more of them. Refuses to forget anything until it
//! is told to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::clock::Stamp;

/// A request as it arrived, to the byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Captured {
    /// Counted from 1, never reused while the process lives.
    pub number: u64,
    /// The connection that carried it, counted from 1.
    pub connection: u64,
    /// When its first byte was read.
    pub began: Stamp,
    /// When its last byte was read.
    pub arrived: Stamp,
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte, after the transfer encoding.
    #[serde(with = "exact")]
    pub body: Vec<u8>,
}

impl Captured {
    /// Whether it asks for a chat completion.
    pub fn is_chat(&self) -> bool {
        self.method == "POST" && self.path.split('?').next() == Some("/v1/chat/completions")
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The first header of this name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Exact bytes in JSON: a string where they are UTF-8, else an array of numbers.
mod exact {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => bytes.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Text(String),
            Numbers(Vec<u8>),
        }
        Ok(match Wire::deserialize(deserializer)? {
            Wire::Text(text) => text.into_bytes(),
            Wire::Numbers(bytes) => bytes,
        })
    }
}

/// Something that happened on a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Counted from 1 without gaps, in the order in which they were noted.
    pub seq: u64,
    /// When it happened.
    pub at: Stamp,
    /// The connection, counted from 1.
    pub connection: u64,
    /// The request whose answer it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A client connected.
    Connected,
    /// A request was read whole.
    Arrived {
        /// The method.
        method: String,
        /// The path with its query.
        path: String,
        /// The index of the script's rule that answers it; absent for pages and where none matches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<usize>,
    },
    /// The answer waits for a gate.
    Holding {
        /// The gate's name.
        gate: String,
    },
    /// The status line and headers were handed to the kernel.
    Head {
        /// The status.
        status: u16,
    },
    /// Bytes of the body were handed to the kernel.
    Wrote {
        /// Bytes of the body in this write.
        bytes: usize,
        /// Bytes of the body so far.
        total: usize,
    },
    /// Nothing more will be written; the socket stays open.
    Stalling,
    /// The client was seen to be gone. With a request: before its answer was whole.
    Dropped {
        /// How.
        how: DropHow,
    },
    /// The fake ended the answer.
    Ended {
        /// How.
        how: EndHow,
    },
    /// What came is no request.
    Unreadable {
        /// Why.
        reason: String,
    },
}

/// How a client's going was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropHow {
    /// It closed its side in order.
    Closed,
    /// The connection was reset.
    Reset,
}

/// How the fake ended an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndHow {
    /// Whole.
    Whole,
    /// By resetting the connection, as scripted.
    Reset,
    /// By closing the connection, as scripted.
    Close,
}

/// The log of one process.
pub(super) struct Log {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    events: Vec<Event>,
    requests: Vec<Captured>,
    last_event: u64,
    last_request: u64,
}

impl Log {
    pub(super) fn new() -> Log {
        Log { inner: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(super) fn note(&self, at: Stamp, connection: u64, request: Option<u64>, what: What) {
        let mut inner = self.lock();
        inner.last_event += 1;
        let seq = inner.last_event;
        inner.events.push(Event { seq, at, connection, request, what });
        drop(inner);
        self.changed.send_replace(seq);
    }

    /// Captures a request under the next number.
    pub(super) fn capture(&self, request: impl FnOnce(u64) -> Captured) -> u64 {
        let mut inner = self.lock();
        inner.last_request += 1;
        let number = inner.last_request;
        inner.requests.push(request(number));
        number
    }

    pub(super) fn events_after(&self, seq: u64) -> Vec<Event> {
        let inner = self.lock();
        let from = inner.events.partition_point(|event| event.seq <= seq);
        inner.events[from..].to_vec()
    }

    pub(super) fn requests_after(&self, number: u64) -> Vec<Captured> {
        let inner = self.lock();
        let from = inner.requests.partition_point(|request| request.number <= number);
        inner.requests[from..].to_vec()
    }

    /// Forgets what was logged; numbers go on.
    pub(super) fn clear(&self) {
        let mut inner = self.lock();
        inner.events.clear();
        inner.requests.clear();
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
