//! Records with everything that follows from them, and checkpoints.

use klbr_core::event::{Body, Header};
use klbr_core::ids::{AgentName, Seq};
use klbr_core::ledger::Fate;
use klbr_core::record::{Move, Record, Stamped};
use klbr_core::runtime::store::history::call_result;
use klbr_core::runtime::store::{Checkpoint, Commit, StoreError};
use rusqlite::params;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Tables;
use crate::body::{self, Base};
use crate::error::{Outcome, contradiction};
use crate::row::{AgentRow, event_bytes, last_seq};
use crate::upcast::UPCASTERS;

/// Below this a body is not worth a dictionary.
const REPEATED: usize = 256;
/// How many checkpoints are kept; the older one serves when the newest cannot be read.
const CHECKPOINTS: usize = 2;

/// What the next records of an agent may repeat.
#[derive(Default)]
pub(super) struct Bases {
    /// The newest reply: its arguments come back in intents and receipts.
    reply: Option<(Seq, Vec<u8>)>,
    /// The first prefix since the store was opened.
    prefix: Option<(Seq, Vec<u8>)>,
}

impl Tables {
    /// Keeps a commit.
    pub(crate) fn commit(&mut self, commit: &Commit) -> Outcome<()> {
        let agent = self.agent(&commit.agent)?;
        for (event, body) in commit.admissions(last_seq(&self.conn, agent)?)? {
            self.admit(agent, event, body)?;
        }
        for stamped in &commit.records {
            self.record(agent, stamped)?;
            for moved in stamped.record.moves() {
                self.move_event(agent, moved, &stamped.record)?;
            }
            if let Some(result) = call_result(&stamped.record) {
                let mut insert = self
                    .conn
                    .prepare_cached("INSERT OR REPLACE INTO call_results (key, seq) VALUES (?1, ?2)")?;
                insert.execute([agent.key(result.id)?, agent.key(stamped.seq.0)? - agent.first()])?;
            }
        }
        if !commit.records.is_empty() {
            self.touched.insert(agent);
        }
        Ok(())
    }

    fn admit(&mut self, agent: AgentRow, event: &Header, body: &Body) -> Outcome<()> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO events (key, instance, external_id, body) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let body = body::pack(&json(body)?);
        let key = agent.key(event.id.0)?;
        match insert.execute(params![key, &*event.source.instance, &*event.external_id, body]) {
            Ok(_) => Ok(()),
            Err(error) if is_constraint(&error) => contradiction(format!("{} is admitted already", event.id)),
            Err(error) => Err(error.into()),
        }
    }

    fn record(&mut self, agent: AgentRow, stamped: &Stamped) -> Outcome<()> {
        let record = &stamped.record;
        let bytes = json(record)?;
        let body = self.packed(agent, stamped, &bytes)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO records (key, kind, version, at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let kind = record.kind();
        insert.execute(params![
            agent.key(stamped.seq.0)?,
            kind,
            UPCASTERS.version(kind),
            stamped.at.0,
            body
        ])?;
        Ok(())
    }

    /// The body of a record, against the text that it repeats where there is one.
    fn packed(&mut self, agent: AgentRow, stamped: &Stamped, bytes: &[u8]) -> Outcome<Vec<u8>> {
        let bases = self.bases.entry(agent).or_default();
        let against = |base: &Option<(Seq, Vec<u8>)>| match base {
            Some((seq, dictionary)) if bytes.len() >= REPEATED => {
                body::pack_against(bytes, &Base::Record(*seq), dictionary)
            }
            _ => body::pack(bytes),
        };
        Ok(match &stamped.record {
            Record::FrameMade { events, .. } if bytes.len() >= REPEATED && !events.is_empty() => {
                let mut dictionary = Vec::new();
                for event in events {
                    dictionary.extend(event_bytes(&self.conn, agent, *event)?.unwrap_or_default());
                }
                body::pack_against(bytes, &Base::Events(events.clone()), &dictionary)
            }
            Record::StepSampled { .. } => {
                bases.reply = Some((stamped.seq, bytes.to_vec()));
                body::pack(bytes)
            }
            Record::Intended { .. }
            | Record::Held { .. }
            | Record::Settled { delivered: Some(_), .. }
            | Record::Receipt { delivered: Some(_), .. } => against(&bases.reply),
            Record::PrefixMade { .. } if bases.prefix.is_none() => {
                bases.prefix = Some((stamped.seq, bytes.to_vec()));
                body::pack(bytes)
            }
            Record::PrefixMade { .. } => against(&bases.prefix),
            _ => body::pack(bytes),
        })
    }

    fn move_event(&mut self, agent: AgentRow, moved: Move, record: &Record) -> Outcome<()> {
        match moved {
            Move::One(event, fate) if matches!(record, Record::Admitted { .. }) => {
                let mut insert =
                    self.conn.prepare_cached("INSERT INTO event_fates (key, fate) VALUES (?1, ?2)")?;
                insert.execute(params![agent.key(event.0)?, fate.as_str()])?;
            }
            Move::One(event, fate) => {
                let mut update =
                    self.conn.prepare_cached("UPDATE event_fates SET fate = ?2 WHERE key = ?1")?;
                if update.execute(params![agent.key(event.0)?, fate.as_str()])? == 0 {
                    return contradiction(format!("{event} was never admitted"));
                }
            }
            Move::Framed(Fate::Framed) => {}
            Move::Framed(fate) => {
                let mut update = self.conn.prepare_cached(
                    "UPDATE event_fates SET fate = ?3 WHERE fate = 'framed' AND key BETWEEN ?1 AND ?2",
                )?;
                update.execute(params![agent.first(), agent.last(), fate.as_str()])?;
            }
        }
        Ok(())
    }

    /// Keeps a checkpoint and the one before it.
    pub(crate) fn checkpoint(&mut self, agent: &AgentName, checkpoint: &Checkpoint) -> Outcome<()> {
        let agent = self.agent(agent)?;
        let last = last_seq(&self.conn, agent)?;
        if checkpoint.seq > last {
            return Err(StoreError::Conflict { expected: last, got: checkpoint.seq }.into());
        }
        let key = agent.key(checkpoint.seq.0)?;
        // The oldest goes first, so that the newest is written where it was.
        self.conn
            .prepare_cached(
                "DELETE FROM checkpoints WHERE key = ?3 OR key IN
                 (SELECT key FROM checkpoints WHERE key BETWEEN ?1 AND ?2 AND key <> ?3
                  ORDER BY key DESC LIMIT -1 OFFSET ?4)",
            )?
            .execute(params![agent.first(), agent.last(), key, CHECKPOINTS as i64 - 1])?;
        let body = body::pack(&checkpoint.bytes);
        let sum = Sha256::digest(&body);
        self.conn
            .prepare_cached("INSERT INTO checkpoints (key, sum, body) VALUES (?1, ?2, ?3)")?
            .execute(params![key, &sum[..], body])?;
        Ok(())
    }
}

fn json<T: Serialize>(value: &T) -> Outcome<Vec<u8>> {
    serde_json::to_vec(value).or_else(|error| contradiction(format!("it cannot be written: {error}")))
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}
