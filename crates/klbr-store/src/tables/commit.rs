//! Records with everything that follows from them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use klbr_core::event::{Body, Header};
use klbr_core::ids::Seq;
use klbr_core::ledger::Fate;
use klbr_core::record::{Move, Record, Stamped};
use klbr_core::runtime::store::Commit;
use klbr_core::runtime::store::history::call_result;
use rusqlite::params;
use serde::Serialize;

use super::{ROW, Tables};
use crate::body::{self, Base};
use crate::error::{Outcome, contradiction};
use crate::row::{AgentRow, event_bytes, last_seq};
use crate::upcast::UPCASTERS;

/// From this size on a body is compressed against the text that it repeats, below it against its kind's first.
const LONG: usize = 256;
/// Up to this size a record is mostly what all of its kind have in common.
const ALIKE: usize = 2048;

/// What the next records of an agent may repeat.
#[derive(Default)]
pub(super) struct Bases {
    /// The newest reply: its arguments come back in intents and receipts.
    reply: Option<(Seq, Vec<u8>)>,
    /// The first record of each kind since the store was opened.
    kinds: HashMap<&'static str, (Seq, Vec<u8>)>,
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
            self.touched.insert(commit.agent.clone(), agent);
        }
        Ok(())
    }

    fn admit(&mut self, agent: AgentRow, event: &Header, body: &Body) -> Outcome<()> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO events (key, instance, external_id, body) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let body = body::pack(&json(body)?);
        self.written += body.len() + 2 * ROW;
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
        self.written += body.len() + ROW;
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

    /// The body of a record, against what it repeats.
    fn packed(&mut self, agent: AgentRow, stamped: &Stamped, bytes: &[u8]) -> Outcome<Vec<u8>> {
        let Stamped { seq, record, .. } = stamped;
        let bases = self.bases.entry(agent).or_default();
        let long = bytes.len() >= LONG;
        match record {
            // The one kind that has to be fast.
            Record::Admitted { .. } => return Ok(body::pack(bytes)),
            Record::FrameMade { events, .. } if long && !events.is_empty() => {
                let mut dictionary = Vec::new();
                for event in events {
                    dictionary.extend(event_bytes(&self.conn, agent, *event)?.unwrap_or_default());
                }
                return Ok(body::pack_against(bytes, &Base::Events(events.clone()), &dictionary));
            }
            Record::StepSampled { .. } => {
                // It serves as a dictionary, so it has none.
                bases.reply = Some((*seq, bytes.to_vec()));
                return Ok(body::pack(bytes));
            }
            Record::Intended { .. }
            | Record::Held { .. }
            | Record::Settled { delivered: Some(_), .. }
            | Record::Receipt { delivered: Some(_), .. }
                if long && let Some((reply, dictionary)) = &bases.reply =>
            {
                return Ok(body::pack_against(bytes, &Base::Record(*reply), dictionary));
            }
            _ => {}
        }
        Ok(match bases.kinds.entry(record.kind()) {
            Entry::Occupied(first) if bytes.len() <= ALIKE || matches!(record, Record::PrefixMade { .. }) => {
                let (first, dictionary) = first.get();
                body::pack_against(bytes, &Base::Record(*first), dictionary)
            }
            Entry::Occupied(_) => body::pack(bytes),
            Entry::Vacant(none) => {
                none.insert((*seq, bytes.to_vec()));
                body::pack(bytes)
            }
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
}

fn json<T: Serialize>(value: &T) -> Outcome<Vec<u8>> {
    serde_json::to_vec(value).or_else(|error| contradiction(format!("it cannot be written: {error}")))
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}
