//! What is remembered (`C-MEM`).

use std::sync::Arc;

use klbr_core::ids::AgentName;
use klbr_core::runtime::store::{Memory, MemoryChange};
use klbr_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Tables;
use crate::error::{Outcome, damaged};
use crate::row::{AgentRow, number_of};

impl Tables {
    /// Changes what is remembered, once for each key.
    pub(crate) fn remember(
        &mut self,
        agent: &AgentName,
        key: &str,
        at: Timestamp,
        change: MemoryChange,
    ) -> Outcome<Option<Memory>> {
        let agent = self.agent(agent)?;
        let answered: Option<String> = self
            .conn
            .prepare_cached("SELECT answer FROM memory_answers WHERE agent = ?1 AND change = ?2")?
            .query_row(params![agent.0, key], |row| row.get(0))
            .optional()?;
        if let Some(answer) = answered {
            return read_json(&answer);
        }
        let answer = self.change(agent, at, change)?;
        self.conn
            .prepare_cached("INSERT INTO memory_answers (agent, change, answer) VALUES (?1, ?2, ?3)")?
            .execute(params![agent.0, key, write_json(&answer)?])?;
        Ok(answer)
    }

    fn change(&mut self, agent: AgentRow, at: Timestamp, change: MemoryChange) -> Outcome<Option<Memory>> {
        let memory = match change {
            MemoryChange::Add { text, tags, pinned } => {
                let id: i64 = self
                    .conn
                    .prepare_cached(
                        "UPDATE agents SET memories = memories + 1 WHERE id = ?1 RETURNING memories",
                    )?
                    .query_row([agent.0], |row| row.get(0))?;
                Memory { id: id.unsigned_abs(), text, tags, pinned, at }
            }
            MemoryChange::Update { id, text, tags, pinned } => {
                let Some(old) = one(&self.conn, agent, id)? else { return Ok(None) };
                Memory {
                    id,
                    text: text.unwrap_or(old.text),
                    tags: tags.unwrap_or(old.tags),
                    pinned: pinned.unwrap_or(old.pinned),
                    at,
                }
            }
            MemoryChange::Forget { id } => {
                let old = one(&self.conn, agent, id)?;
                if old.is_some() {
                    self.conn
                        .prepare_cached("DELETE FROM memories WHERE key = ?1")?
                        .execute([agent.key(id)?])?;
                }
                return Ok(old);
            }
        };
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO memories (key, text, tags, pinned, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                agent.key(memory.id)?,
                &*memory.text,
                write_json(&memory.tags)?,
                memory.pinned,
                memory.at.0
            ])?;
        Ok(Some(memory))
    }
}

fn one(conn: &Connection, agent: AgentRow, id: u64) -> Outcome<Option<Memory>> {
    // An id that fits no key names nothing.
    let Ok(key) = agent.key(id) else { return Ok(None) };
    let mut select =
        conn.prepare_cached("SELECT key, text, tags, pinned, at FROM memories WHERE key = ?1")?;
    select.query_row([key], columns).optional()?.map(memory).transpose()
}

/// Every memory of an agent, oldest first.
pub(crate) fn all(conn: &Connection, agent: AgentRow) -> Outcome<Vec<Memory>> {
    let mut select = conn.prepare_cached(
        "SELECT key, text, tags, pinned, at FROM memories WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    )?;
    let rows = select.query_map([agent.first(), agent.last()], columns)?;
    rows.map(|row| memory(row?)).collect()
}

type Columns = (i64, String, String, bool, i64);

fn columns(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

fn memory((key, text, tags, pinned, at): Columns) -> Outcome<Memory> {
    let tags: Vec<Arc<str>> = read_json(&tags)?;
    Ok(Memory { id: number_of(key), text: text.into(), tags, pinned, at: Timestamp(at) })
}

fn read_json<T: serde::de::DeserializeOwned>(text: &str) -> Outcome<T> {
    serde_json::from_str(text).or_else(|error| damaged(format!("a memory: {error}")))
}

fn write_json<T: serde::Serialize>(value: &T) -> Outcome<String> {
    serde_json::to_string(value).or_else(|error| damaged(format!("a memory: {error}")))
}
