//! Records and bodies between the port's types and the database's rows.

use std::collections::HashMap;

use klbr_core::event::Body;
use klbr_core::ids::{AgentName, EventId, Seq};
use klbr_core::record::Stamped;
use klbr_core::runtime::store::StoreError;
use klbr_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::body::{self, Base};
use crate::error::{Outcome, damaged};
use crate::upcast::UPCASTERS;

const NUMBER_BITS: u32 = 40;
const NUMBERS: i64 = (1 << NUMBER_BITS) - 1;

/// The row of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AgentRow(pub(crate) i64);

impl AgentRow {
    /// The row of an agent that is kept already.
    pub(crate) fn find(conn: &Connection, agent: &AgentName) -> Outcome<Option<AgentRow>> {
        let mut select = conn.prepare_cached("SELECT id FROM agents WHERE name = ?1")?;
        Ok(select.query_row([agent.as_str()], |row| row.get(0)).optional()?.map(AgentRow))
    }

    /// The key of the agent's `number`-th row in a series.
    pub(crate) fn key(self, number: u64) -> Outcome<i64> {
        match i64::try_from(number) {
            Ok(number) if number <= NUMBERS => Ok(self.first() | number),
            _ => Err(StoreError::Missing(format!("row {number}")).into()),
        }
    }

    /// The lowest key of the agent in every series.
    pub(crate) fn first(self) -> i64 {
        self.0 << NUMBER_BITS
    }

    /// The highest key of the agent in every series.
    pub(crate) fn last(self) -> i64 {
        self.first() | NUMBERS
    }
}

/// An agent's name as it is kept.
pub(crate) fn parse_name(name: &str) -> Outcome<AgentName> {
    name.parse().or_else(|error| damaged(format!("an agent's name: {error}")))
}

/// The agent of a key.
pub(crate) fn agent_of(key: i64) -> AgentRow {
    AgentRow(key >> NUMBER_BITS)
}

/// The number of a key within its agent's series.
pub(crate) fn number_of(key: i64) -> u64 {
    (key & NUMBERS).unsigned_abs()
}

/// The number of the agent's newest record; zero when it has none.
pub(crate) fn last_seq(conn: &Connection, agent: AgentRow) -> Outcome<Seq> {
    let mut select = conn.prepare_cached("SELECT max(key) FROM records WHERE key BETWEEN ?1 AND ?2")?;
    let key: Option<i64> = select.query_row([agent.first(), agent.last()], |row| row.get(0))?;
    Ok(Seq(key.map_or(0, number_of)))
}

/// Selects the rows of the records after the key `?1` up to `?2`, at most `?3` (negative: all), in order.
pub(crate) const RECORDS: &str =
    "SELECT key, kind, version, at, body FROM records WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3";

/// A record's columns `key, kind, version, at, body`, not yet unpacked.
pub(crate) struct RecordRow {
    pub(crate) key: i64,
    pub(crate) kind: String,
    pub(crate) version: u32,
    pub(crate) at: i64,
    pub(crate) body: Vec<u8>,
}

impl RecordRow {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(RecordRow {
            key: row.get(0)?,
            kind: row.get(1)?,
            version: row.get(2)?,
            at: row.get(3)?,
            body: row.get(4)?,
        })
    }
}

/// Reads bodies with what they were compressed against; remembers the last dictionaries, since neighbours share
/// them.
#[derive(Default)]
pub(crate) struct Unpacker {
    dictionaries: HashMap<(AgentRow, Base), Vec<u8>>,
}

/// How many dictionaries are remembered: about one for each kind of record.
const DICTIONARIES: usize = 64;

impl Unpacker {
    /// The record of a row.
    pub(crate) fn record(&mut self, conn: &Connection, row: &RecordRow) -> Outcome<Stamped> {
        let seq = Seq(number_of(row.key));
        let bytes = self.unpack(conn, agent_of(row.key), &row.body).map_err(|fail| named(fail, seq))?;
        let record = UPCASTERS.read(&row.kind, row.version, &bytes).map_err(|fail| named(fail, seq))?;
        if record.kind() != row.kind {
            return damaged(format!("record {seq} is filed as {:?} and is {:?}", row.kind, record.kind()));
        }
        Ok(Stamped { seq, at: Timestamp(row.at), record })
    }

    fn unpack(&mut self, conn: &Connection, agent: AgentRow, packed: &[u8]) -> Outcome<Vec<u8>> {
        body::unpack(packed, |base| {
            let named = (agent, base.clone());
            if let Some(bytes) = self.dictionaries.get(&named) {
                return Ok(bytes.clone());
            }
            let bytes = dictionary(conn, agent, base)?;
            if self.dictionaries.len() >= DICTIONARIES {
                self.dictionaries.clear();
            }
            self.dictionaries.insert(named, bytes.clone());
            Ok(bytes)
        })
    }
}

fn named(fail: crate::error::Fail, seq: Seq) -> crate::error::Fail {
    match fail {
        crate::error::Fail::Store(StoreError::Damaged(what)) => {
            StoreError::Damaged(format!("record {seq}: {what}")).into()
        }
        other => other,
    }
}

/// What a base names.
fn dictionary(conn: &Connection, agent: AgentRow, base: &Base) -> Outcome<Vec<u8>> {
    match base {
        Base::Record(seq) => {
            let mut select = conn.prepare_cached("SELECT body FROM records WHERE key = ?1")?;
            let packed: Option<Vec<u8>> =
                select.query_row([agent.key(seq.0)?], |row| row.get(0)).optional()?;
            match packed {
                Some(packed) => plain(&packed),
                None => damaged(format!("record {seq}, which others are compressed against, is missing")),
            }
        }
        Base::Events(events) => {
            let mut bytes = Vec::new();
            for event in events {
                match event_bytes(conn, agent, *event)? {
                    Some(body) => bytes.extend(body),
                    None => return damaged(format!("the body of {event} is missing")),
                }
            }
            Ok(bytes)
        }
        Base::Checkpoint(seq) => {
            damaged(format!("it needs the checkpoint at record {seq}, which may be gone"))
        }
    }
}

fn plain(packed: &[u8]) -> Outcome<Vec<u8>> {
    body::unpack(packed, |base| damaged(format!("a dictionary has one itself: {base:?}")))
}

/// An event's body as JSON bytes.
pub(crate) fn event_bytes(conn: &Connection, agent: AgentRow, event: EventId) -> Outcome<Option<Vec<u8>>> {
    let mut select = conn.prepare_cached("SELECT body FROM events WHERE key = ?1")?;
    let packed: Option<Vec<u8>> = select.query_row([agent.key(event.0)?], |row| row.get(0)).optional()?;
    packed.map(|packed| plain(&packed)).transpose()
}

/// An event's body.
pub(crate) fn event_body(conn: &Connection, agent: AgentRow, event: EventId) -> Outcome<Body> {
    match event_bytes(conn, agent, event)? {
        Some(bytes) => {
            serde_json::from_slice(&bytes).or_else(|error| damaged(format!("the body of {event}: {error}")))
        }
        None => Err(StoreError::Missing(format!("body of {event}")).into()),
    }
}
