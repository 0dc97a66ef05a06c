//! Sessions: who hears which event, numbered, kept for a resume.
//!
//! Owns the numbers, the kept frames and the tricks that are played on them. Refuses sockets: a session that is
//! connected has a queue to write to.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use axum::extract::ws::Utf8Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::super::snowflake::Snowflake;

pub(in super::super) const GUILDS: u64 = 1;
pub(in super::super) const GUILD_MEMBERS: u64 = 1 << 1;
pub(in super::super) const GUILD_PRESENCES: u64 = 1 << 8;
pub(in super::super) const GUILD_MESSAGES: u64 = 1 << 9;
pub(in super::super) const GUILD_REACTIONS: u64 = 1 << 10;
pub(in super::super) const GUILD_TYPING: u64 = 1 << 11;
pub(in super::super) const DIRECT_MESSAGES: u64 = 1 << 12;
pub(in super::super) const DIRECT_REACTIONS: u64 = 1 << 13;
pub(in super::super) const DIRECT_TYPING: u64 = 1 << 14;
pub(in super::super) const MESSAGE_CONTENT: u64 = 1 << 15;

/// What is written to a connection.
#[derive(Clone, Debug)]
pub(in super::super) enum Out {
    Text(Utf8Bytes),
    Close(u16, String),
    Cut,
}

/// Something that is dispatched.
#[derive(Clone, Debug)]
pub(in super::super) struct Dispatch {
    /// The event's name.
    pub(in super::super) name: &'static str,
    /// The guild, which decides the shard; direct messages go to the first.
    pub(in super::super) guild: Option<Snowflake>,
    /// One of these intents is needed; 0 for none.
    pub(in super::super) intents: u64,
    /// The event.
    pub(in super::super) data: Value,
    /// What a session without the intent for content gets instead.
    pub(in super::super) stripped: Option<Value>,
}

/// What is done with the next dispatches, each so many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tricks {
    /// Never given to any session: missed for good.
    pub drop: usize,
    /// Numbered and kept, but not written: only a resume from before them brings them.
    pub lose: usize,
    /// Written twice, with one number.
    pub duplicate: usize,
    /// Held back until so many are there, then written youngest first.
    pub reorder: usize,
    /// Written, until so many are; with the last of them the connections that heard it are cut.
    pub cut_after: usize,
}

/// A session, as it is told of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// Its id.
    pub id: String,
    /// Which shard of how many.
    pub shard: [u64; 2],
    /// Its intents, as bits.
    pub intents: u64,
    /// The number of its last dispatch.
    pub sequence: u64,
    /// The last number that the client says it saw.
    pub seen: u64,
    /// The connection that it has, if it has one.
    pub connection: Option<u64>,
}

#[derive(Debug)]
pub(in super::super) struct Session {
    pub(in super::super) state: SessionState,
    kept: VecDeque<(u64, Utf8Bytes)>,
    held: Vec<Utf8Bytes>,
    queue: Option<UnboundedSender<Out>>,
    gone: Instant,
}

impl Session {
    fn write(&self, out: Out) {
        if let Some(queue) = &self.queue {
            // A connection that just ended is noticed by its own task.
            let _ = queue.send(out);
        }
    }

    fn covers(&self, guild: Option<Snowflake>) -> bool {
        guild.map_or(0, |guild| (guild.0 >> 22) % self.state.shard[1]) == self.state.shard[0]
    }
}

/// Why a resume is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    Unknown,
    /// The number was never given out.
    Sequence,
    /// What was missed is no longer kept.
    TooOld,
}

#[derive(Debug, Default)]
pub(in super::super) struct Sessions {
    all: BTreeMap<String, Session>,
    counter: u64,
    pub(in super::super) tricks: Tricks,
    /// When the last IDENTIFY of each shard came.
    identified: BTreeMap<u64, Instant>,
}

impl Sessions {
    /// Begins a session on a connection.
    pub(in super::super) fn begin(
        &mut self,
        connection: u64,
        queue: UnboundedSender<Out>,
        shard: [u64; 2],
        intents: u64,
    ) -> String {
        self.counter += 1;
        let id = format!("{:016x}{:016x}", std::process::id(), self.counter);
        let state = SessionState {
            id: id.clone(),
            shard,
            intents,
            sequence: 0,
            seen: 0,
            connection: Some(connection),
        };
        let session = Session {
            state,
            kept: VecDeque::new(),
            held: Vec::new(),
            queue: Some(queue),
            gone: Instant::now(),
        };
        self.all.insert(id.clone(), session);
        id
    }

    /// How long ago the shard's last IDENTIFY came, and that one comes now.
    pub(in super::super) fn identifies(&mut self, shard: u64) -> Option<Duration> {
        self.identified.insert(shard, Instant::now()).map(|last| last.elapsed())
    }

    /// Takes a session up on a new connection, and sends what was missed; how many those were.
    pub(in super::super) fn resume(
        &mut self,
        id: &str,
        after: u64,
        connection: u64,
        queue: UnboundedSender<Out>,
        life: Duration,
    ) -> Result<usize, Refusal> {
        let session = self.all.get_mut(id).ok_or(Refusal::Unknown)?;
        if session.state.connection.is_none() && session.gone.elapsed() > life {
            self.all.remove(id);
            return Err(Refusal::Unknown);
        }
        if after > session.state.sequence {
            return Err(Refusal::Sequence);
        }
        let oldest = session.kept.front().map_or(session.state.sequence + 1, |(number, _)| *number);
        if after + 1 < oldest {
            return Err(Refusal::TooOld);
        }
        session.write(Out::Close(4000, "the session went on elsewhere".to_owned()));
        session.queue = Some(queue);
        session.state.connection = Some(connection);
        session.state.seen = after;
        session.held.clear();
        let missed: Vec<Utf8Bytes> = session
            .kept
            .iter()
            .filter(|(number, _)| *number > after)
            .map(|(_, frame)| frame.clone())
            .collect();
        let count = missed.len();
        missed.into_iter().for_each(|frame| session.write(Out::Text(frame)));
        Ok(count)
    }

    /// A connection ended: its session keeps what comes, or ends too.
    pub(in super::super) fn detach(&mut self, connection: u64, ends: bool) {
        let is_its = |session: &Session| session.state.connection == Some(connection);
        if ends {
            self.all.retain(|_, session| !is_its(session));
        } else if let Some(session) = self.all.values_mut().find(|session| is_its(session)) {
            session.queue = None;
            session.state.connection = None;
            session.gone = Instant::now();
        }
    }

    /// The client said which number it saw last.
    pub(in super::super) fn saw(&mut self, connection: u64, sequence: u64) {
        if let Some(session) =
            self.all.values_mut().find(|session| session.state.connection == Some(connection))
        {
            session.state.seen = sequence;
        }
    }

    pub(in super::super) fn get(&self, id: &str) -> Option<&Session> {
        self.all.get(id)
    }

    pub(in super::super) fn states(&self) -> Vec<SessionState> {
        self.all.values().map(|session| session.state.clone()).collect()
    }

    /// Forgets all sessions that have no connection, and lets those that have one end with it.
    pub(in super::super) fn expire(&mut self) {
        self.all.clear();
    }

    /// Writes to the connected sessions of a shard, or of all; how many those were.
    pub(in super::super) fn write(&self, shard: Option<u64>, out: &Out) -> usize {
        let wanted = |session: &&Session| {
            session.queue.is_some() && shard.is_none_or(|shard| session.state.shard[0] == shard)
        };
        self.all.values().filter(wanted).map(|session| session.write(out.clone())).count()
    }

    /// Gives an event to one session, whatever its intents; no trick is played on it.
    pub(in super::super) fn dispatch_to(&mut self, id: &str, name: &str, data: &Value, keep: usize) {
        if let Some(session) = self.all.get_mut(id) {
            let frame = session.number(name, &data.to_string(), keep);
            session.write(Out::Text(frame));
        }
    }

    /// Gives an event to every session that is to hear it.
    pub(in super::super) fn dispatch(&mut self, event: &Dispatch, keep: usize) {
        let wants = |session: &Session| {
            session.covers(event.guild) && (event.intents == 0 || session.state.intents & event.intents != 0)
        };
        if !self.all.values().any(wants) {
            return;
        }
        let took = |count: &mut usize| {
            let takes = *count > 0;
            *count -= usize::from(takes);
            takes
        };
        if took(&mut self.tricks.drop) {
            return;
        }
        let loses = took(&mut self.tricks.lose);
        let doubles = !loses && took(&mut self.tricks.duplicate);
        let holds = !loses && took(&mut self.tricks.reorder);
        let releases = holds && self.tricks.reorder == 0;
        let cuts = took(&mut self.tricks.cut_after) && self.tricks.cut_after == 0;
        let whole = event.data.to_string();
        let stripped = event.stripped.as_ref().map(Value::to_string);
        for session in self.all.values_mut().filter(|session| wants(session)) {
            let reads = session.state.intents & MESSAGE_CONTENT != 0;
            let data = stripped.as_ref().filter(|_| !reads).unwrap_or(&whole);
            let frame = session.number(event.name, data, keep);
            if holds {
                session.held.push(frame);
                if releases {
                    let held = std::mem::take(&mut session.held);
                    held.into_iter().rev().for_each(|frame| session.write(Out::Text(frame)));
                }
            } else if !loses {
                for _ in 0..1 + usize::from(doubles) {
                    session.write(Out::Text(frame.clone()));
                }
            }
            if cuts {
                session.write(Out::Cut);
            }
        }
    }
}

impl Session {
    /// Numbers an event and keeps it.
    fn number(&mut self, name: &str, data: &str, keep: usize) -> Utf8Bytes {
        self.state.sequence += 1;
        let number = self.state.sequence;
        let frame = Utf8Bytes::from(format!(r#"{{"t":"{name}","s":{number},"op":0,"d":{data}}}"#));
        self.kept.push_back((number, frame.clone()));
        while self.kept.len() > keep {
            self.kept.pop_front();
        }
        frame
    }
}
