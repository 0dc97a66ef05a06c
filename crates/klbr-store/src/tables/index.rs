//! The history index: brought forward behind the commits, record by record, with a durable cursor.
//!
//! A long text goes in piece by piece, so that no step keeps a commit waiting for long. A step is not synced by
//! itself: a power cut may take the newest steps, and the cursor with them.

use std::sync::Arc;

use klbr_core::ids::AgentName;
use klbr_core::runtime::store::history::{self, Passage};
use rusqlite::{OptionalExtension, params};

use super::{ROW, Syncing, Tables};
use crate::error::{Fail, Outcome};
use crate::row::{AgentRow, RECORDS, RecordRow, Unpacker, event_body, number_of};
use crate::script::{piece_end, spaced_only, spread};

/// How much text one step covers, in bytes.
const STEP: usize = 32 << 10;
/// How many records one step covers.
const COUNT: usize = 64;
/// The longest piece of a text that is one row of the index, in bytes.
const PIECE: usize = 32 << 10;

/// A record whose text is not covered to its end yet.
pub(super) struct Partly {
    key: i64,
    passage: Passage,
    done: usize,
}

impl Tables {
    /// Whether there are committed records that the index does not cover.
    pub(crate) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// The same for the records of one agent.
    pub(crate) fn is_behind_with(&self, agent: &AgentName) -> bool {
        self.behind.contains_key(agent)
    }

    /// Covers some more records, those of `first` before others.
    pub(crate) fn index_step(&mut self, first: Option<&AgentName>) -> Outcome<()> {
        let preferred = first.and_then(|agent| self.behind.get_key_value(agent));
        let Some((name, &agent)) = preferred.or(self.behind.first_key_value()) else { return Ok(()) };
        let name = name.clone();
        let stepped = self.index_in_transaction(agent);
        match stepped {
            Ok(true) => drop(self.behind.remove(&name)),
            Ok(false) => {}
            Err(_) => self.ended(false),
        }
        stepped.map(drop)
    }

    /// Whether the agent is covered to its end.
    fn index_in_transaction(&mut self, agent: AgentRow) -> Outcome<bool> {
        self.begin(Syncing::WithTheNext)?;
        let mut left = STEP;
        let mut count = COUNT;
        let (mut cursor, done): (i64, u32) = self
            .conn
            .prepare_cached("SELECT indexed, indexed_bytes FROM agents WHERE id = ?1")?
            .query_row([agent.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut done = done as usize;
        cursor += agent.first();
        let mut partly = self.partly.take().filter(|partly| partly.key == cursor + 1 && partly.done == done);
        let mut ended = false;
        let mut unpacker = Unpacker::default();
        while left > 0 && count > 0 {
            let mut next = match partly.take() {
                Some(partly) => partly,
                None => match self.next_text(agent, cursor, &mut unpacker)? {
                    Some((key, Some(passage))) => Partly { key, done, passage },
                    Some((key, None)) => {
                        (cursor, done, count) = (key, 0, count - 1);
                        continue;
                    }
                    None => {
                        ended = true;
                        break;
                    }
                },
            };
            while next.done < next.passage.text.len() && left > 0 {
                let stop = piece_end(&next.passage.text, next.done, PIECE);
                self.insert(next.key, &next.passage, next.done, stop)?;
                left = left.saturating_sub(stop - next.done);
                next.done = stop;
            }
            if next.done < next.passage.text.len() {
                done = next.done;
                partly = Some(next);
                break;
            }
            (cursor, done, count) = (next.key, 0, count - 1);
        }
        self.conn
            .prepare_cached("UPDATE agents SET indexed = ?2, indexed_bytes = ?3 WHERE id = ?1")?
            .execute(params![agent.0, number_of(cursor).cast_signed(), done as i64])?;
        self.commit_all()?;
        self.partly = partly;
        Ok(ended)
    }

    fn next_text(
        &self,
        agent: AgentRow,
        after: i64,
        unpacker: &mut Unpacker,
    ) -> Outcome<Option<(i64, Option<Passage>)>> {
        let row = self
            .conn
            .prepare_cached(RECORDS)?
            .query_row([after, agent.last(), 1], RecordRow::read)
            .optional()?;
        let Some(row) = row else { return Ok(None) };
        let passage = unpacker.record(&self.conn, &row).and_then(|stamped| {
            history::passage(&stamped.record, |event| event_body(&self.conn, agent, event))
        });
        match passage {
            Ok(passage) => Ok(Some((row.key, passage))),
            // What cannot be read cannot be found; the rest can.
            Err(Fail::Store(error)) => {
                tracing::warn!(%error, "the history index passes over what cannot be read");
                Ok(Some((row.key, None)))
            }
            Err(fail) => Err(fail),
        }
    }

    fn insert(&mut self, key: i64, passage: &Passage, start: usize, stop: usize) -> Outcome<()> {
        let place = self.place(&passage.source, passage.conversation.as_ref())?;
        self.conn
            .prepare_cached("INSERT INTO passages (record, place, start, stop) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![key, place, start as i64, stop as i64])?;
        let id = self.conn.last_insert_rowid();
        let text = &passage.text[start..stop];
        self.written += 2 * text.len() + ROW;
        self.conn
            .prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?
            .execute(params![id, spread(text)])?;
        self.conn
            .prepare_cached("INSERT INTO parts (rowid, text) VALUES (?1, ?2)")?
            .execute(params![id, spaced_only(text)])?;
        Ok(())
    }

    fn place(&mut self, source: &Arc<str>, conversation: Option<&Arc<str>>) -> Outcome<i64> {
        let known = (source.clone(), conversation.cloned());
        if let Some(id) = self.places.get(&known) {
            return Ok(*id);
        }
        let found: Option<i64> = self
            .conn
            .prepare_cached("SELECT id FROM places WHERE source = ?1 AND conversation IS ?2")?
            .query_row(params![&**source, conversation.map(|c| &**c)], |row| row.get(0))
            .optional()?;
        let id = match found {
            Some(id) => id,
            None => {
                self.conn
                    .prepare_cached("INSERT INTO places (source, conversation) VALUES (?1, ?2)")?
                    .execute(params![&**source, conversation.map(|c| &**c)])?;
                self.conn.last_insert_rowid()
            }
        };
        self.places.insert(known, id);
        Ok(id)
    }
}
