//! What is read, each answer from one consistent view of the database.

mod search;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use klbr_core::event::{Body, EventKey};
use klbr_core::ids::{AgentName, EventId, Seq};
use klbr_core::ledger::{Fate, Ledger};
use klbr_core::record::Stamped;
use klbr_core::runtime::store::history::{call_result, fitting};
use klbr_core::runtime::store::{AdapterEntry, Checkpoint, Hit, Kept, Memory, Search};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Outcome, damaged};
use crate::lane::Queued;
use crate::row::{AgentRow, RECORDS, RecordRow, Unpacker, event_body, last_seq, number_of, parse_name};
use crate::tables::{self, all_memories, checkpoints};

/// Something to be read and answered.
pub(crate) type Job = Box<dyn FnOnce(&Reader) + Send>;

/// A connection that only reads.
pub(crate) struct Reader {
    conn: Connection,
}

impl Reader {
    pub(crate) fn new(conn: Connection) -> Self {
        Reader { conn }
    }

    /// Serves until every handle is gone.
    pub(crate) fn run(self, queue: &Receiver<Queued<Job>>) {
        while let Ok(Queued { job, place }) = queue.recv() {
            job(&self);
            drop(place);
        }
    }

    /// Reads from one view; an agent that is not kept gives the empty answer.
    pub(crate) fn view<T: Default>(
        &self,
        agent: &AgentName,
        read: impl FnOnce(&Connection, AgentRow) -> Outcome<T>,
    ) -> Outcome<T> {
        let view = self.conn.unchecked_transaction()?;
        let value = match AgentRow::find(&view, agent)? {
            Some(row) => read(&view, row)?,
            None => T::default(),
        };
        view.finish()?;
        Ok(value)
    }

    pub(crate) fn load(&self, agent: &AgentName) -> Outcome<Kept> {
        self.view(agent, |conn, agent| {
            let checkpoint = newest_checkpoint(conn, agent)?;
            let after = checkpoint.as_ref().map_or(Seq(0), |checkpoint| checkpoint.seq);
            Ok(Kept { checkpoint, records: records_after(conn, agent, after, i64::MAX)? })
        })
    }

    pub(crate) fn find(&self, agent: &AgentName, keys: &[EventKey]) -> Outcome<Vec<Option<EventId>>> {
        let found = self.view(agent, |conn, agent| {
            let mut select = conn.prepare_cached(
                "SELECT key FROM events WHERE agent = ?1 AND instance = ?2 AND external_id = ?3",
            )?;
            let mut find = |key: &EventKey| {
                let found = select
                    .query_row(params![agent.0, &*key.instance, &*key.external_id], |row| row.get(0))
                    .optional()?;
                Ok(found.map(|key| EventId(number_of(key))))
            };
            Ok(Some(keys.iter().map(&mut find).collect::<Outcome<Vec<_>>>()?))
        })?;
        Ok(found.unwrap_or_else(|| vec![None; keys.len()]))
    }

    pub(crate) fn bodies(&self, agent: &AgentName, events: &[EventId]) -> Outcome<Vec<Body>> {
        let bodies = self.view(agent, |conn, agent| {
            events.iter().map(|event| event_body(conn, agent, *event)).collect::<Outcome<Vec<_>>>()
        })?;
        match events.get(bodies.len()) {
            None => Ok(bodies),
            Some(event) => {
                Err(klbr_core::runtime::store::StoreError::Missing(format!("body of {event}")).into())
            }
        }
    }

    pub(crate) fn records(&self, agent: &AgentName, after: Seq, limit: usize) -> Outcome<Vec<Stamped>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.view(agent, |conn, agent| records_after(conn, agent, after, limit))
    }

    pub(crate) fn last(&self, agent: &AgentName) -> Outcome<Seq> {
        self.view(agent, last_seq)
    }

    pub(crate) fn ledger(&self, agent: &AgentName) -> Outcome<Ledger> {
        self.view(agent, ledger)
    }

    pub(crate) fn search(&self, agent: &AgentName, search: &Search) -> Outcome<Vec<Hit>> {
        self.view(agent, |conn, agent| search::search(conn, agent, search))
    }

    pub(crate) fn result(&self, agent: &AgentName, id: u64) -> Outcome<Option<Arc<str>>> {
        self.view(agent, |conn, agent| {
            let Ok(key) = agent.key(id) else { return Ok(None) };
            let seq: Option<i64> = conn
                .prepare_cached("SELECT seq FROM call_results WHERE key = ?1")?
                .query_row([key], |row| row.get(0))
                .optional()?;
            let Some(seq) = seq else { return Ok(None) };
            let record = record(conn, agent.first() + seq, &mut Unpacker::default())?;
            match record.as_ref().and_then(|stamped| call_result(&stamped.record)) {
                Some(result) if result.id == id => Ok(Some(result.full.clone())),
                _ => damaged(format!("result {id} should stand in record {seq} and does not")),
            }
        })
    }

    pub(crate) fn memories(
        &self,
        agent: &AgentName,
        text: &str,
        tags: &[Arc<str>],
        limit: usize,
    ) -> Outcome<Vec<Memory>> {
        self.view(agent, |conn, agent| Ok(fitting(all_memories(conn, agent)?.into_iter(), text, tags, limit)))
    }

    pub(crate) fn pinned(&self, agent: &AgentName) -> Outcome<Vec<Memory>> {
        self.view(agent, |conn, agent| {
            Ok(all_memories(conn, agent)?.into_iter().filter(|memory| memory.pinned).collect())
        })
    }

    pub(crate) fn adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        prefix: &str,
    ) -> Outcome<Vec<AdapterEntry>> {
        self.view(agent, |conn, agent| tables::adapter(conn, agent, instance, prefix))
    }

    pub(crate) fn agents(&self) -> Outcome<Vec<AgentName>> {
        agents(&self.conn)
    }
}

/// The agents that have records, by name.
pub(crate) fn agents(conn: &Connection) -> Outcome<Vec<AgentName>> {
    let mut select = conn.prepare_cached(
        "SELECT name FROM agents WHERE EXISTS
         (SELECT 1 FROM records WHERE key BETWEEN id << 40 AND (id + 1 << 40) - 1) ORDER BY name",
    )?;
    let names = select.query_map([], |row| row.get::<_, String>(0))?;
    names.map(|name| parse_name(&name?)).collect()
}

/// Counts each term from its own rows.
pub(crate) fn ledger(conn: &Connection, agent: AgentRow) -> Outcome<Ledger> {
    let mut ledger = Ledger {
        admitted: conn
            .prepare_cached("SELECT count(*) FROM events INDEXED BY events_once WHERE agent = ?1")?
            .query_row([agent.0], |row| row.get(0).map(i64::unsigned_abs))?,
        ..Ledger::default()
    };
    let mut select = conn
        .prepare_cached("SELECT fate, count(*) FROM event_fates WHERE key BETWEEN ?1 AND ?2 GROUP BY fate")?;
    let mut rows = select.query([agent.first(), agent.last()])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        match Fate::ALL.into_iter().find(|fate| fate.as_str() == name) {
            Some(fate) => *ledger.term(fate) = row.get::<_, i64>(1)?.unsigned_abs(),
            None => return damaged(format!("an event has the fate {name:?}")),
        }
    }
    Ok(ledger)
}

/// The newest checkpoint that can be read.
fn newest_checkpoint(conn: &Connection, agent: AgentRow) -> Outcome<Option<Checkpoint>> {
    let last = last_seq(conn, agent)?;
    for (seq, bytes) in checkpoints(conn, agent)?.into_iter().rev() {
        match bytes {
            Some(bytes) if seq <= last => return Ok(Some(Checkpoint { seq, bytes })),
            _ => tracing::warn!(%seq, "a checkpoint cannot be read and is passed over"),
        }
    }
    Ok(None)
}

fn records_after(conn: &Connection, agent: AgentRow, after: Seq, limit: i64) -> Outcome<Vec<Stamped>> {
    let mut select = conn.prepare_cached(RECORDS)?;
    // A number beyond every key has nothing after it.
    let Ok(after) = agent.key(after.0) else { return Ok(Vec::new()) };
    let rows = select.query_map([after, agent.last(), limit], RecordRow::read)?;
    let mut unpacker = Unpacker::default();
    rows.map(|row| unpacker.record(conn, &row?)).collect()
}

fn record(conn: &Connection, key: i64, unpacker: &mut Unpacker) -> Outcome<Option<Stamped>> {
    let mut select = conn.prepare_cached(RECORDS)?;
    let row = select.query_row([key - 1, key, 1], RecordRow::read).optional()?;
    row.map(|row| unpacker.record(conn, &row)).transpose()
}
