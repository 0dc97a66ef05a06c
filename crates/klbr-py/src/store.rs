//! A store, opened to be read: what agents that live elsewhere, or lived once, were told, said and did.
//!
//! Every method blocks, with the interpreter's lock released. Refuses to write.

use std::path::PathBuf;

use klbr_core::ids::{AgentName, Seq};
use klbr_core::runtime::store::{Search, Store as _, StoreError};
use klbr_core::update::Update;
use klbr_store::{Access, Options, SqliteStore};
use pyo3::prelude::*;
use serde::Serialize;

use crate::convert::{Plain, read};
use crate::error::Fault;
use crate::fork;

/// A store that is read.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Store(SqliteStore);

impl Store {
    fn ask<T, F>(
        &self,
        py: Python<'_>,
        agent: &str,
        question: impl FnOnce(AgentName) -> F + Send,
    ) -> PyResult<Plain<T>>
    where
        T: Serialize + Send,
        F: Future<Output = Result<T, StoreError>>,
    {
        let runtime = fork::runtime()?;
        let agent = agent.parse::<AgentName>().map_err(Fault::from)?;
        let answer = py.detach(|| runtime.block_on(question(agent)));
        Ok(Plain(answer.map_err(Fault::from)?))
    }
}

#[pymethods]
impl Store {
    /// Opens the file, which has to be there.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        fork::runtime()?;
        let options = Options { access: Access::Read, ..Options::default() };
        let opened = py.detach(|| SqliteStore::open(&path, options));
        Ok(Store(opened.map_err(Fault::from)?))
    }

    /// Closes it; every question after that is refused.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let runtime = fork::runtime()?;
        Ok(py.detach(|| runtime.block_on(self.0.close())).map_err(Fault::from)?)
    }

    /// The agents that are kept here, by name.
    fn agents(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let runtime = fork::runtime()?;
        let agents = py.detach(|| runtime.block_on(self.0.agents())).map_err(Fault::from)?;
        Ok(agents.into_iter().map(|agent| agent.to_string()).collect())
    }

    /// The number of an agent's newest record.
    fn last(&self, py: Python<'_>, agent: &str) -> PyResult<Plain<Seq>> {
        self.ask(py, agent, |agent| async move { self.0.last(&agent).await })
    }

    /// The records after `after`, at most `limit`.
    fn records(
        &self,
        py: Python<'_>,
        agent: &str,
        after: u64,
        limit: usize,
    ) -> PyResult<Plain<Vec<serde_json::Value>>> {
        self.ask(py, agent, |agent| async move {
            let records = self.0.records(&agent, Seq(after), limit).await?;
            let told = records.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
            told.map_err(|error| StoreError::Damaged(error.to_string()))
        })
    }

    /// What clients were told by the records after `after`, and the number of the last one that was looked at.
    fn updates(
        &self,
        py: Python<'_>,
        agent: &str,
        after: u64,
        limit: usize,
    ) -> PyResult<Plain<(Vec<Update>, Option<Seq>)>> {
        self.ask(py, agent, |agent| async move {
            let records = self.0.records(&agent, Seq(after), limit).await?;
            let updates = records.iter().filter_map(Update::from_record).collect();
            Ok((updates, records.last().map(|record| record.seq)))
        })
    }

    /// Where every event of an agent is.
    fn ledger(&self, py: Python<'_>, agent: &str) -> PyResult<Plain<klbr_core::ledger::Ledger>> {
        self.ask(py, agent, |agent| async move { self.0.ledger(&agent).await })
    }

    /// Looks for text in an agent's history; the search is told in JSON.
    fn search(
        &self,
        py: Python<'_>,
        agent: &str,
        search: &str,
    ) -> PyResult<Plain<Vec<klbr_core::runtime::store::Hit>>> {
        let search: Search = read("a search", search)?;
        self.ask(py, agent, |agent| async move { self.0.search(&agent, search).await })
    }

    /// What an agent remembers, best first.
    fn memories(
        &self,
        py: Python<'_>,
        agent: &str,
        text: &str,
        tags: Vec<String>,
        limit: usize,
    ) -> PyResult<Plain<Vec<klbr_core::runtime::store::Memory>>> {
        let tags: Vec<_> = tags.into_iter().map(Into::into).collect();
        self.ask(py, agent, |agent| async move { self.0.memories(&agent, text, &tags, limit).await })
    }

    /// The whole text of a call's result by its number, if it was ever given.
    fn result(&self, py: Python<'_>, agent: &str, id: u64) -> PyResult<Option<String>> {
        let found = self.ask(py, agent, |agent| async move { self.0.result(&agent, id).await })?;
        Ok(found.0.map(|text| text.to_string()))
    }
}
