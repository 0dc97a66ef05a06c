//! The tables as the writer changes them. Every change is part of a transaction that the writer begins and ends.

mod adapter;
mod checkpoint;
mod commit;
mod index;
mod memory;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use klbr_core::ids::AgentName;
use rusqlite::Connection;

use crate::error::{Fail, Outcome};
use crate::options::Durability;
use crate::row::{AgentRow, parse_name};
use crate::writer::{Change, copy_log};

pub(crate) use adapter::adapter;
pub(crate) use checkpoint::checkpoints;
pub(crate) use memory::all as all_memories;

/// The writing connection and what it remembers between changes.
pub(crate) struct Tables {
    conn: Connection,
    durability: Durability,
    agents: HashMap<AgentName, AgentRow>,
    bases: HashMap<AgentRow, commit::Bases>,
    places: HashMap<(Arc<str>, Option<Arc<str>>), i64>,
    /// Agents with records that the index does not cover; those of the running transaction stand apart.
    behind: BTreeMap<AgentName, AgentRow>,
    touched: BTreeMap<AgentName, AgentRow>,
    partly: Option<index::Partly>,
    syncing: Syncing,
    /// Whether the running transaction holds a part of something that was refused.
    torn: bool,
    /// About how many bytes were written since this was last taken.
    pub(crate) written: usize,
}

/// What a row costs beside its body, in bytes, roughly.
const ROW: usize = 256;

/// When a transaction reaches the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncing {
    /// Before its commit is over.
    AtOnce,
    /// With the next one that is synced; a power cut before that takes it whole.
    WithTheNext,
}

impl Tables {
    pub(crate) fn new(conn: Connection, durability: Durability) -> Outcome<Self> {
        let behind = conn
            .prepare(
                "SELECT id, name FROM agents WHERE indexed <
                 (SELECT max(key) & 0xFFFFFFFFFF FROM records WHERE key BETWEEN id << 40 AND (id + 1 << 40) - 1)",
            )?
            .query_map([], |row| Ok((AgentRow(row.get(0)?), row.get::<_, String>(1)?)))?
            .map(|agent| {
                let (row, name) = agent?;
                Ok((parse_name(&name)?, row))
            })
            .collect::<Outcome<_>>()?;
        Ok(Tables {
            conn,
            durability,
            agents: HashMap::new(),
            bases: HashMap::new(),
            places: HashMap::new(),
            behind,
            touched: BTreeMap::new(),
            partly: None,
            syncing: Syncing::AtOnce,
            torn: false,
            written: 0,
        })
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self, syncing: Syncing) -> rusqlite::Result<()> {
        if self.syncing != syncing && self.durability == Durability::PowerCut {
            self.conn.execute_batch(match syncing {
                Syncing::AtOnce => "PRAGMA synchronous = FULL",
                Syncing::WithTheNext => "PRAGMA synchronous = NORMAL",
            })?;
            self.syncing = syncing;
        }
        self.conn.execute_batch("BEGIN IMMEDIATE")
    }

    /// Commits the running transaction.
    pub(crate) fn commit_all(&self) -> rusqlite::Result<()> {
        self.conn.execute_batch("COMMIT")
    }

    pub(crate) fn copy_log(&self, how: &str) -> rusqlite::Result<()> {
        copy_log(&self.conn, how)
    }

    /// Whether the running transaction must not be committed: SQLite has given it up, or it is torn.
    pub(crate) fn is_lost(&self) -> bool {
        self.torn || self.conn.is_autocommit()
    }

    /// Runs one change so that nothing of it stays when it fails.
    pub(crate) fn within_savepoint(&mut self, change: &mut dyn Change) -> Outcome<()> {
        self.conn.execute_batch("SAVEPOINT change")?;
        let ran = change.run(self);
        let ended = match &ran {
            Ok(()) => self.conn.execute_batch("RELEASE change"),
            Err(_) => {
                self.forget();
                // A full disk or a failed device ends the whole transaction, whatever the savepoint.
                if self.conn.is_autocommit() {
                    return ran;
                }
                self.conn.execute_batch("ROLLBACK TO change; RELEASE change")
            }
        };
        self.torn |= ended.is_err();
        ran.and(ended.map_err(Fail::from))
    }

    /// The running transaction is committed, or lost and to be rolled back.
    pub(crate) fn ended(&mut self, committed: bool) {
        if committed {
            self.behind.append(&mut self.touched);
            return;
        }
        self.touched.clear();
        self.forget();
        self.torn = false;
        if !self.conn.is_autocommit()
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
