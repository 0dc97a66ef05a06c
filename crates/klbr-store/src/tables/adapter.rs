//! What an agent's adapters keep beside its records.

use klbr_core::ids::AgentName;
use klbr_core::runtime::store::AdapterEntry;
use rusqlite::{Connection, params};

use super::Tables;
use crate::error::Outcome;
use crate::row::AgentRow;

impl Tables {
    /// Changes an adapter's entries, all or none.
    pub(crate) fn keep_adapter(
        &mut self,
        agent: &AgentName,
        instance: &str,
        changes: &[(String, Option<Vec<u8>>)],
    ) -> Outcome<()> {
        let agent = self.agent(agent)?;
        for (key, value) in changes {
            match value {
                Some(value) => self
                    .conn
                    .prepare_cached(
                        "INSERT OR REPLACE INTO adapter_state (agent, instance, key, value)
                         VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![agent.0, instance, key, value])?,
                None => self
                    .conn
                    .prepare_cached(
                        "DELETE FROM adapter_state WHERE agent = ?1 AND instance = ?2 AND key = ?3",
                    )?
                    .execute(params![agent.0, instance, key])?,
            };
        }
        Ok(())
    }
}

/// An adapter's entries whose keys begin with `prefix`, by key.
pub(crate) fn adapter(
    conn: &Connection,
    agent: AgentRow,
    instance: &str,
    prefix: &str,
) -> Outcome<Vec<AdapterEntry>> {
    let mut select = conn.prepare_cached(
        "SELECT key, value FROM adapter_state
         WHERE agent = ?1 AND instance = ?2 AND key >= ?3 AND substr(key, 1, length(?3)) = ?3 ORDER BY key",
    )?;
    let rows = select.query_map(params![agent.0, instance, prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
