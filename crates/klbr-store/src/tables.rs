//! The tables as the writer changes them. Every change is part of a transaction that the writer begins and ends.

mod commit;
mod index;
mod memory;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use klbr_core::ids::AgentName;
use rusqlite::Connection;

use crate::error::Outcome;
use crate::options::Durability;
use crate::row::AgentRow;
use crate::writer::{Change, copy_log};

pub(crate) use memory::all as all_memories;

/// The writing connection and what it remembers between changes.
pub(crate) struct Tables {
    conn: Connection,
    durability: Durability,
    agents: HashMap<AgentName, AgentRow>,
    bases: HashMap<AgentRow, commit::Bases>,
    places: HashMap<(Arc<str>, Option<Arc<str>>), i64>,
    /// Agents with records that the index does not cover; those of the running transaction stand apart.
    behind: BTreeSet<AgentRow>,
    touched: BTreeSet<AgentRow>,
    partly: Option<index::Partly>,
}

impl Tables {
    pub(crate) fn new(conn: Connection, durability: Durability) -> Outcome<Self> {
        let behind = conn
            .prepare(
                "SELECT id FROM agents WHERE indexed <
                 (SELECT max(key) & 0xFFFFFFFFFF FROM records WHERE key BETWEEN id << 40 AND (id + 1 << 40) - 1)",
            )?
            .query_map([], |row| row.get(0).map(AgentRow))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Tables {
            conn,
            durability,
            agents: HashMap::new(),
            bases: HashMap::new(),
            places: HashMap::new(),
            behind,
            touched: BTreeSet::new(),
            partly: None,
        })
    }

    pub(crate) fn batch(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.execute_batch(sql)
    }

    pub(crate) fn copy_log(&self, how: &str) -> rusqlite::Result<()> {
        copy_log(&self.conn, how)
    }

    /// Whether SQLite has given up the running transaction by itself.
    pub(crate) fn is_rolled_back(&self) -> bool {
        self.conn.is_autocommit()
    }

    /// Runs one change so that nothing of it stays when it fails.
    pub(crate) fn within_savepoint(&mut self, change: &mut dyn Change) -> Outcome<()> {
        self.conn.execute_batch("SAVEPOINT change")?;
        let ran = change.run(self);
        if ran.is_ok() {
            self.conn.execute_batch("RELEASE change")?;
        } else {
            self.forget();
            if !self.is_rolled_back() {
                self.conn.execute_batch("ROLLBACK TO change; RELEASE change")?;
            }
        }
        ran
    }

    /// The running transaction is committed, or lost and to be rolled back.
    pub(crate) fn ended(&mut self, committed: bool) {
        if committed {
            self.behind.append(&mut self.touched);
            return;
        }
        self.touched.clear();
        self.forget();
        if !self.is_rolled_back()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a lost transaction could not be rolled back");
        }
    }

    /// Forgets what may not be in the database after all.
    fn forget(&mut self) {
        self.agents.clear();
        self.bases.clear();
        self.places.clear();
        self.partly = None;
    }

    /// The row of an agent, made when there is none.
    fn agent(&mut self, agent: &AgentName) -> Outcome<AgentRow> {
        if let Some(row) = self.agents.get(agent) {
            return Ok(*row);
        }
        let row = match AgentRow::find(&self.conn, agent)? {
            Some(row) => row,
            None => {
                self.conn
                    .prepare_cached("INSERT INTO agents (name) VALUES (?1)")?
                    .execute([agent.as_str()])?;
                AgentRow(self.conn.last_insert_rowid())
            }
        };
        self.agents.insert(agent.clone(), row);
        Ok(row)
    }
}
