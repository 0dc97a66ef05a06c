//! Looking after a store's file: check, backup, restore, export.
//!
//! None of it needs a running store; all but [`restore`] may be used beside one. Each blocks until it is done.

use std::io::Write;
use std::path::{Path, PathBuf};

use klbr_core::ids::{AgentName, Seq};
use klbr_core::ledger::Ledger;
use klbr_core::runtime::store::StoreError;
use klbr_core::runtime::store::history::call_result;
use rusqlite::Connection;
use serde_json::json;

use crate::error::{Fail, Outcome, damaged};
use crate::options::{Access, Durability, Options};
use crate::reader::{agents, ledger};
use crate::row::{AgentRow, RECORDS, RecordRow, Unpacker, event_body, number_of};
use crate::schema::{self, MIGRATIONS, OpenError};
use crate::tables::checkpoints;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Each agent.
    pub agents: Vec<AgentReport>,
    /// What is wrong, in words; empty when nothing is.
    pub faults: Vec<String>,
}

/// What a check found of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReport {
    /// The agent.
    pub agent: AgentName,
    /// How many records it has.
    pub records: u64,
    /// Where its events are.
    pub ledger: Ledger,
}

/// An upkeep that came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepError {
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file that is to be made is there already; it was left alone.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// What was to be restored is no whole store.
    #[error("{} is no store to restore: {what}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Reads everything that is kept at `path`: the file's integrity, each agent's records without a gap and in the
/// order of time, every body, every result, and the ledger's sum. Changes nothing, not even when it finds damage.
///
/// # Errors
///
/// Fails when the file cannot be opened as a store of this release. What is wrong within it is in the report.
pub fn check(path: &Path) -> Result<Report, UpkeepError> {
    let conn = open_to_read(path)?;
    let mut report = Report { agents: Vec::new(), faults: Vec::new() };
    let checked =
        conn.unchecked_transaction().map_err(Fail::from).and_then(|view| check_view(&view, &mut report));
    if let Err(fail) = checked {
        report.faults.push(StoreError::from(fail).to_string());
    }
    Ok(report)
}

fn check_view(conn: &Connection, report: &mut Report) -> Outcome<()> {
    let mut select = conn.prepare("PRAGMA integrity_check")?;
    for line in select.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            report.faults.push(line);
        }
    }
    for agent in agents(conn)? {
        let Some(row) = AgentRow::find(conn, &agent)? else { continue };
        let mut fault = |what: String| report.faults.push(format!("{agent}: {what}"));
        let records = check_records(conn, row, &mut fault)?;
        check_events(conn, row, &mut fault)?;
        for (seq, bytes) in checkpoints(conn, row)? {
            if bytes.is_none() {
                fault(format!("the checkpoint at record {seq} cannot be read"));
            }
        }
        let ledger = ledger(conn, row)?;
        if !ledger.balances() {
            fault(format!("the ledger does not balance: {ledger}"));
        }
        report.agents.push(AgentReport { agent: agent.clone(), records, ledger });
    }
    Ok(())
}

fn check_records(conn: &Connection, agent: AgentRow, fault: &mut impl FnMut(String)) -> Outcome<u64> {
    let mut unpacker = Unpacker::default();
    let mut select = conn.prepare(RECORDS)?;
    let mut rows = select.query([agent.first(), agent.last(), -1])?;
    let (mut last, mut at, mut count) = (Seq(0), i64::MIN, 0);
    while let Some(row) = rows.next()? {
        let row = RecordRow::read(row)?;
        let seq = Seq(number_of(row.key));
        if seq != last.next() {
            fault(format!("record {} is missing", last.next()));
        }
        if row.at < at {
            fault(format!("record {seq} is older than the one before it"));
        }
        (last, at, count) = (seq, row.at, count + 1);
        let stamped = match unpacker.record(conn, &row) {
            Ok(stamped) => stamped,
            Err(Fail::Store(error)) => {
                fault(error.to_string());
                continue;
            }
            Err(fail) => return Err(fail),
        };
        if let Some(result) = call_result(&stamped.record) {
            let filed: i64 = conn
                .prepare_cached("SELECT count(*) FROM call_results WHERE key = ?1")?
                .query_row([agent.key(result.id)?], |row| row.get(0))?;
            if filed == 0 {
                fault(format!("result {} of record {seq} is not filed", result.id));
            }
        }
    }
    Ok(count)
}

fn check_events(conn: &Connection, agent: AgentRow, fault: &mut impl FnMut(String)) -> Outcome<()> {
    let mut select = conn.prepare(
        "SELECT e.key, f.fate FROM events e LEFT JOIN event_fates f ON f.key = e.key WHERE e.key BETWEEN ?1 AND ?2",
    )?;
    let mut rows = select.query([agent.first(), agent.last()])?;
    while let Some(row) = rows.next()? {
        let event = klbr_core::ids::EventId(number_of(row.get(0)?));
        if row.get::<_, Option<String>>(1)?.is_none() {
            fault(format!("{event} has no fate"));
        }
        match event_body(conn, agent, event) {
            Ok(_) => {}
            Err(Fail::Store(error)) => fault(error.to_string()),
            Err(fail) => return Err(fail),
        }
    }
    Ok(())
}

/// Copies the store at `path` as one consistent whole to the new file `to`, also while it is written.
///
/// # Errors
///
/// Fails when `to` exists, and when it cannot be written; then nothing is left there.
pub fn backup(path: &Path, to: &Path) -> Result<(), UpkeepError> {
    if to.exists() {
        return Err(UpkeepError::Exists { path: to.into() });
    }
    let conn = open_to_read(path)?;
    schema::copy_to(&conn, to).map_err(|error| {
        // What was begun is no backup.
        let _ = std::fs::remove_file(to);
        UpkeepError::Write { path: to.into(), source: Box::new(error) }
    })
}

/// Puts the backup `from` in the place of the store at `path`, which is kept beside it under a name that says so;
/// answers with that name. The caller holds the home's lock, and no store is open at `path`.
///
/// # Errors
///
/// Fails when `from` is no whole store; then nothing is changed.
pub fn restore(from: &Path, path: &Path) -> Result<Option<PathBuf>, UpkeepError> {
    let unfit = |what: String| UpkeepError::Unfit { path: from.into(), what };
    let report = check(from)?;
    if let Some(fault) = report.faults.first() {
        return Err(unfit(fault.clone()));
    }
    // The copy is whole and synced before anything is moved.
    let fresh = schema::beside(path, "restoring");
    backup(from, &fresh)?;
    schema::replace(&fresh, path)
        .map_err(|error| UpkeepError::Write { path: path.into(), source: Box::new(error) })
}

/// Writes an agent's life as JSON lines, oldest first: each record as `{"seq", "at", "kind", …}`, and the body of
/// an event in `body` of the record that admits it. Answers with the number of records.
///
/// # Errors
///
/// Fails when the store has no such agent, when a record cannot be read, and when `out` fails.
pub fn export(path: &Path, agent: &AgentName, out: &mut dyn Write) -> Result<u64, UpkeepError> {
    let conn = open_to_read(path)?;
    let view = conn.unchecked_transaction().map_err(|error| StoreError::from(Fail::from(error)))?;
    let exported = export_view(&view, agent, out);
    Ok(exported.map_err(StoreError::from)?)
}

fn export_view(conn: &Connection, agent: &AgentName, out: &mut dyn Write) -> Outcome<u64> {
    let Some(row) = AgentRow::find(conn, agent)? else {
        return Err(StoreError::Missing(format!("agent {agent}")).into());
    };
    let mut unpacker = Unpacker::default();
    let mut select = conn.prepare(RECORDS)?;
    let mut rows = select.query([row.first(), row.last(), -1])?;
    let mut count = 0;
    while let Some(columns) = rows.next()? {
        let stamped = unpacker.record(conn, &RecordRow::read(columns)?)?;
        let mut line = match serde_json::to_value(&stamped) {
            Ok(line) => line,
            Err(error) => return damaged(format!("record {}: {error}", stamped.seq)),
        };
        if let klbr_core::record::Record::Admitted { event, .. } = &stamped.record {
            line["body"] = json!(event_body(conn, row, event.id)?);
        }
        writeln!(out, "{line}").map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        count += 1;
    }
    out.flush().map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    Ok(count)
}

fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let options = Options { access: Access::Read, durability: Durability::PowerCut };
    schema::open(path, options, MIGRATIONS)
}
