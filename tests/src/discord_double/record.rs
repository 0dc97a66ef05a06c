//! What the double was sent and what it did: the evidence of every proof over it.
//!
//! Owns the entries and their order. Each has a sequence number that grows over all kinds; a request's is renewed when
//! it is answered, so that who reads "after N" sees it again with its outcome. Refuses to judge.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::nonce;
use super::snowflake::Snowflake;
use super::world::Mentions;
use crate::clock::Stamp;

/// An entry of any kind, with the number that orders them all.
pub trait Entry {
    /// When it was last written to, as a count.
    fn seq(&self) -> u64;
}

/// One request to the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Renewed when it is answered.
    pub seq: u64,
    /// Counts requests, from 1.
    pub number: u64,
    /// Which connection it came on.
    pub connection: u64,
    /// When it was read whole.
    pub at: Stamp,
    /// `POST`, `GET`…
    pub method: String,
    /// The path without `/api/v10`.
    pub path: String,
    /// The path's query.
    pub query: String,
    /// The route, ids left out: `/channels/{channel}/messages`; empty where there is none.
    pub route: String,
    /// The body as JSON; text where it is none; null where there is none.
    pub body: Value,
    /// It came before a limit's `retry_after` was over.
    pub violation: bool,
    /// It has come to a gate; with its outcome still open it waits there.
    pub held: bool,
    /// How it ended; nothing as long as it is not answered.
    pub outcome: Option<Outcome>,
}

impl Asked {
    /// Whether it is a `METHOD /route`.
    pub fn is(&self, method: &str, route: &str) -> bool {
        self.method == method && self.route == route
    }

    /// The status that was answered, if one was.
    pub fn status(&self) -> Option<u16> {
        self.outcome.as_ref()?.status
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// When.
    pub at: Stamp,
    /// The status that was answered; nothing where the connection was cut before it.
    pub status: Option<u16>,
    /// Discord's code in an error's body.
    pub code: Option<u64>,
    /// The message that it made, or that was found under its nonce.
    pub message: Option<Snowflake>,
    /// The message was there before: its nonce was known.
    pub known_nonce: bool,
    /// Which fault was made, by name.
    pub fault: Option<String>,
    /// Whether what was asked for was done, whatever was answered.
    pub performed: bool,
    /// The client was gone before the answer was ready.
    pub abandoned: bool,
}

/// A message that the bot made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    /// Renewed when it is deleted.
    pub seq: u64,
    /// The request's number.
    pub request: u64,
    /// When.
    pub at: Stamp,
    /// The message.
    pub id: Snowflake,
    /// Its channel.
    pub channel: Snowflake,
    /// As it was first sent.
    pub content: String,
    /// As it was given, number or string.
    pub nonce: Option<Value>,
    /// Whether the nonce was to be enforced.
    pub enforced: bool,
    /// The message that it answers.
    pub reference: Option<Snowflake>,
    /// Whom it pinged.
    pub pings: Mentions,
    /// It is gone.
    pub deleted: bool,
}

/// Something on a gateway connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at: Stamp,
    /// Counts connections, over both protocols.
    pub connection: u64,
    /// What.
    pub what: What,
}

/// What happens on a gateway connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It was opened.
    Connected {
        /// Whether it came to the URL for resuming.
        resume_url: bool,
        /// What was asked for.
        query: String,
    },
    /// It was not let in.
    TurnedAway {
        /// The HTTP status.
        status: u16,
    },
    /// A session began.
    Identified {
        /// Its id.
        session: String,
        /// Which shard of how many.
        shard: [u64; 2],
        /// The intents, as bits.
        intents: u64,
        /// It came sooner after the last one than Discord allows (5 s for each shard's bucket).
        too_soon: bool,
    },
    /// A session went on.
    Resumed {
        /// Its id.
        session: String,
        /// The last number that the client says it saw.
        after: u64,
        /// How many dispatches were sent again.
        replayed: usize,
    },
    /// The double answered with invalid session.
    Invalid {
        /// Whether it may be resumed.
        resumable: bool,
        /// Why.
        why: String,
    },
    /// A heartbeat came.
    Heartbeat {
        /// The last number that the client says it saw.
        sequence: Option<u64>,
        /// Whether it was acknowledged.
        acknowledged: bool,
    },
    /// The client sent something else.
    Sent {
        /// Its operation.
        op: u64,
    },
    /// The double closed it.
    Closed {
        /// Discord's code.
        code: u16,
        /// Why.
        why: String,
    },
    /// The double cut it without a word.
    Cut,
    /// The client closed it, or went.
    Gone {
        /// Its code, if it said one.
        code: Option<u16>,
    },
}

impl Entry for Asked {
    fn seq(&self) -> u64 {
        self.seq
    }
}

impl Entry for Created {
    fn seq(&self) -> u64 {
        self.seq
    }
}

impl Entry for Noted {
    fn seq(&self) -> u64 {
        self.seq
    }
}

/// The figures of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Requests to the API.
    pub requests: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that came before a limit's `retry_after` was over.
    pub violations: u64,
    /// Messages that the bot made.
    pub created: usize,
    /// Those of them whose nonce an earlier one in the same channel had: made twice.
    pub repeated: usize,
    /// Answers with a message that was there under its nonce.
    pub known_nonces: u64,
    /// Gateway connections.
    pub connects: u64,
    /// The most gateway connections that were opened within one second.
    pub most_connects_per_second: u64,
    /// Sessions that began.
    pub identified: u64,
    /// Sessions that went on.
    pub resumed: u64,
}

/// All that was noted.
#[derive(Debug)]
pub(super) struct Record {
    seq: u64,
    numbers: u64,
    requests: Vec<Asked>,
    created: Vec<Created>,
    gateway: Vec<Noted>,
    changes: watch::Sender<u64>,
}

impl Record {
    pub(super) fn new() -> Record {
        Record {
            seq: 0,
            numbers: 0,
            requests: Vec::new(),
            created: Vec::new(),
            gateway: Vec::new(),
            changes: watch::Sender::new(0),
        }
    }

    /// Hears of each new entry.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.changes.send_replace(self.seq);
        self.seq
    }

    /// Notes a request; answers with its number.
    pub(super) fn ask(&mut self, asked: Asked) -> u64 {
        let seq = self.next();
        self.numbers += 1;
        self.requests.push(Asked { seq, number: self.numbers, ..asked });
        self.numbers
    }

    /// Writes to a request that was noted; one that was forgotten since stays so.
    pub(super) fn amend(&mut self, number: u64, amend: impl FnOnce(&mut Asked)) {
        let seq = self.next();
        if let Ok(place) = self.requests.binary_search_by_key(&number, |asked| asked.number) {
            self.requests[place].seq = seq;
            amend(&mut self.requests[place]);
        }
    }

    pub(super) fn create(&mut self, created: Created) {
        let seq = self.next();
        self.created.push(Created { seq, ..created });
    }

    /// Notes that a message is gone.
    pub(super) fn delete(&mut self, id: Snowflake) {
        let seq = self.next();
        if let Some(created) = self.created.iter_mut().find(|created| created.id == id) {
            created.deleted = true;
            created.seq = seq;
        }
    }

    pub(super) fn note(&mut self, connection: u64, what: What) {
        let seq = self.next();
        self.gateway.push(Noted { seq, at: Stamp::now(), connection, what });
    }

    pub(super) fn requests(&self) -> &[Asked] {
        &self.requests
    }

    pub(super) fn created(&self) -> &[Created] {
        &self.created
    }

    pub(super) fn gateway(&self) -> &[Noted] {
        &self.gateway
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.created.clear();
        self.gateway.clear();
    }

    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary {
            requests: self.requests.len() as u64,
            created: self.created.len(),
            violations: self.requests.iter().filter(|asked| asked.violation).count() as u64,
            ..Summary::default()
        };
        let mut nonces = BTreeSet::new();
        for created in &self.created {
            let nonce = created.nonce.as_ref().and_then(nonce::text);
            summary.repeated +=
                usize::from(nonce.is_some_and(|nonce| !nonces.insert((created.channel, nonce))));
        }
        for outcome in self.requests.iter().filter_map(|asked| asked.outcome.as_ref()) {
            summary.known_nonces += u64::from(outcome.known_nonce);
            if let Some(status) = outcome.status {
                *summary.statuses.entry(status).or_default() += 1;
            }
        }
        let mut connects = Vec::new();
        for noted in &self.gateway {
            match &noted.what {
                What::Connected { .. } | What::TurnedAway { .. } => connects.push(noted.at.mono_ns),
                What::Identified { .. } => summary.identified += 1,
                What::Resumed { .. } => summary.resumed += 1,
                _ => {}
            }
        }
        summary.connects = connects.len() as u64;
        let within = |(place, from): (usize, &u64)| {
            connects[place..].iter().take_while(|at| **at - from < 1_000_000_000).count() as u64
        };
        summary.most_connects_per_second = connects.iter().enumerate().map(within).max().unwrap_or(0);
        summary
    }
}
