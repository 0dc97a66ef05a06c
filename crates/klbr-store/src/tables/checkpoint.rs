//! Folded states: the newest, and one before it for when that cannot be read. A cache (`C-REC-5`).
//!
//! States of one agent are much alike: the newest is compressed against the other, which stands by itself.

use klbr_core::ids::{AgentName, Seq};
use klbr_core::runtime::store::{Checkpoint, StoreError};
use rusqlite::{Connection, Row, params};
use sha2::{Digest, Sha256};

use super::{ROW, Tables};
use crate::body::{self, Base};
use crate::error::{Outcome, damaged};
use crate::row::{AgentRow, last_seq, number_of};

impl Tables {
    /// Keeps a checkpoint, and the newest of those before it that stands by itself.
    pub(crate) fn checkpoint(&mut self, agent: &AgentName, checkpoint: &Checkpoint) -> Outcome<()> {
        let agent = self.agent(agent)?;
        let last = last_seq(&self.conn, agent)?;
        if checkpoint.seq > last {
            return Err(StoreError::Conflict { expected: last, got: checkpoint.seq }.into());
        }
        let key = agent.key(checkpoint.seq.0)?;
        let kept = rows(&self.conn, agent)?;
        let older = kept.into_iter().rev().find(|row| row.key != key && body::is_self_contained(&row.body));
        let older = older.and_then(|row| Some((row.key, row.plain(&[])?)));
        let alone = body::pack(&checkpoint.bytes);
        let body = match &older {
            Some((older, dictionary)) => {
                let base = Base::Checkpoint(Seq(number_of(*older)));
                let against = body::pack_against(&checkpoint.bytes, &base, dictionary);
                // When they have grown apart, this one is what the next is compressed against.
                if against.len() < alone.len() / 2 { against } else { alone }
            }
            None => alone,
        };
        self.written += body.len() + ROW;
        // What goes makes room for what comes.
        self.conn
            .prepare_cached("DELETE FROM checkpoints WHERE key BETWEEN ?1 AND ?2 AND key IS NOT ?3")?
            .execute(params![agent.first(), agent.last(), older.map(|(key, _)| key)])?;
        self.conn
            .prepare_cached("INSERT INTO checkpoints (key, sum, body) VALUES (?1, ?2, ?3)")?
            .execute(params![key, &Sha256::digest(&body)[..], body])?;
        Ok(())
    }
}

/// An agent's checkpoints, oldest first, each with its bytes if it can be read.
pub(crate) fn checkpoints(conn: &Connection, agent: AgentRow) -> Outcome<Vec<(Seq, Option<Vec<u8>>)>> {
    let rows = rows(conn, agent)?;
    Ok(rows.iter().map(|row| (Seq(number_of(row.key)), row.plain(&rows))).collect())
}

struct Kept {
    key: i64,
    sum: Vec<u8>,
    body: Vec<u8>,
}

fn rows(conn: &Connection, agent: AgentRow) -> Outcome<Vec<Kept>> {
    let mut select = conn
        .prepare_cached("SELECT key, sum, body FROM checkpoints WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
    let read = |row: &Row<'_>| Ok(Kept { key: row.get(0)?, sum: row.get(1)?, body: row.get(2)? });
    Ok(select.query_map([agent.first(), agent.last()], read)?.collect::<rusqlite::Result<_>>()?)
}

impl Kept {
    /// What it holds, when that is what was written; `others` has what it was compressed against.
    fn plain(&self, others: &[Kept]) -> Option<Vec<u8>> {
        if self.sum != Sha256::digest(&self.body)[..] {
            return None;
        }
        let plain = body::unpack(&self.body, |base| {
            let older = others.iter().find(|row| *base == Base::Checkpoint(Seq(number_of(row.key))));
            match older.filter(|row| body::is_self_contained(&row.body)).and_then(|row| row.plain(&[])) {
                Some(dictionary) => Ok(dictionary),
                None => damaged("a checkpoint lacks the one that it was compressed against"),
            }
        });
        plain.ok()
    }
}
