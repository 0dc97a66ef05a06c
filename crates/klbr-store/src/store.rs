//! The store's handle: the port, over one writing thread and two that read.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use klbr_core::event::{Body, EventKey};
use klbr_core::ids::{AgentName, EventId, Seq};
use klbr_core::ledger::Ledger;
use klbr_core::record::Stamped;
use klbr_core::runtime::store::{
    AdapterEntry, Checkpoint, Commit, Hit, Kept, Memory, MemoryChange, Search, Store, StoreError,
};
use klbr_core::time::Timestamp;
use tokio::sync::oneshot;

use crate::error::{Outcome, closed};
use crate::lane::Lane;
use crate::options::{Access, Options};
use crate::reader::{Job, Reader};
use crate::schema::{self, MIGRATIONS, OpenError};
use crate::tables::Tables;
use crate::writer::{Request, Work, Writer};

/// How many requests may wait in front of a thread; more wait for room.
const ROOM: usize = 1024;

/// Agents in one SQLite file.
///
/// One thread owns the connection that writes, and makes everything that waits durable with one sync. Two
/// threads read, one for short questions and one for long ones, so that a search keeps no commit and no
/// admission waiting. When the last handle is dropped, what was handed over is finished first; [`close`]
/// does the same and says how it went.
///
/// [`close`]: SqliteStore::close
pub struct SqliteStore {
    // Dropped in this order: the connection that writes ends last.
    short: Lane<Job>,
    long: Lane<Job>,
    writer: Option<Lane<Request>>,
}

impl SqliteStore {
    /// Opens the database at `path`, or makes it when it is not there; brings an older one up to date after
    /// copying it beside itself. Blocks while it does.
    ///
    /// # Errors
    ///
    /// Fails as [`OpenError`] says. A damaged file is set aside, and nothing takes its place.
    pub fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let conn = schema::open(path, options, MIGRATIONS)?;
        let failed = |error: rusqlite::Error| schema::unavailable(path, error);
        let reader = || schema::connect(path, Access::Read).map(Reader::new).map_err(failed);
        let start = |name: &str, reader: Reader| {
            Lane::start(name, ROOM, move |queue| reader.run(&queue))
                .map_err(|error| schema::unavailable(path, error))
        };
        let writer = match options.access {
            Access::Read => None,
            Access::Write => {
                let beside = schema::connect_beside(path, options.durability).map_err(failed)?;
                let tables = Tables::new(conn, options.durability)
                    .map_err(|fail| schema::unavailable(path, StoreError::from(fail)))?;
                let writer = Writer::new(tables, beside, schema::log_of(path))
                    .and_then(|writer| Lane::start("klbr-store-write", ROOM, move |queue| writer.run(&queue)))
                    .map_err(|error| schema::unavailable(path, error))?;
                Some(writer)
            }
        };
        let (short, long) = (start("klbr-store-read", reader()?)?, start("klbr-store-search", reader()?)?);
        Ok(SqliteStore { writer, short, long })
    }

    /// Finishes what was handed over, copies the log into the database and ends the threads. Every request
    /// after it is refused. Dropping the future leaves the rest of it to the last handle's drop.
    ///
    /// # Errors
    ///
    /// Fails when the log could not be copied; nothing is lost then, the next start does it.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.short.shut();
        self.long.shut();
        // The last connection that ends empties the log into the database, and that is to be the one that writes.
        self.short.ended().await;
        self.long.ended().await;
        let Some(writer) = &self.writer else { return Ok(()) };
        let (answer, answered) = oneshot::channel();
        writer.send(Request::Close(answer)).await?;
        writer.shut();
        answered.await.map_err(|_| closed())?
    }

    async fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Tables) -> Outcome<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let writer = self.writer.as_ref().ok_or_else(read_only)?;
        writer.send(Work::request(run, answer)).await?;
        answered.await.map_err(|_| closed())?
    }

    async fn read<T: Send + 'static>(
        &self,
        lane: &Lane<Job>,
        run: impl FnOnce(&Reader) -> Outcome<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        // Nobody listens any more when the future was dropped.
        lane.send(Box::new(move |reader| drop(answer.send(run(reader).map_err(StoreError::from))))).await?;
        answered.await.map_err(|_| closed())?
    }

    /// Waits until what the agent has committed by now can be found.
    async fn catch_up(&self, agent: &AgentName) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let (answer, answered) = oneshot::channel();
        writer.send(Request::CatchUp(agent.clone(), answer)).await?;
        answered.await.map_err(|_| closed())?
    }
}

fn read_only() -> StoreError {
    StoreError::Unavailable("it was opened for reading".into())
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.write(move |tables| tables.commit(&commit)).await
    }

    async fn load(&self, agent: &AgentName) -> Result<Kept, StoreError> {
        let agent = agent.clone();
        self.read(&self.long, move |reader| reader.load(&agent)).await
    }

    async fn checkpoint(&self, agent: &AgentName, checkpoint: Checkpoint) -> Result<(), StoreError> {
        let agent = agent.clone();
        self.write(move |tables| tables.checkpoint(&agent, &checkpoint)).await
    }

    async fn find(&self, agent: &AgentName, keys: &[EventKey]) -> Result<Vec<Option<EventId>>, StoreError> {
        let (agent, keys) = (agent.clone(), keys.to_vec());
        self.read(&self.short, move |reader| reader.find(&agent, &keys)).await
    }

    async fn bodies(&self, agent: &AgentName, events: &[EventId]) -> Result<Vec<Body>, StoreError> {
        let (agent, events) = (agent.clone(), events.to_vec());
        self.read(&self.short, move |reader| reader.bodies(&agent, &events)).await
    }

    async fn records(&self, agent: &AgentName, after: Seq, limit: usize) -> Result<Vec<Stamped>, StoreError> {
        let agent = agent.clone();
        self.read(&self.long, move |reader| reader.records(&agent, after, limit)).await
    }

    async fn last(&self, agent: &AgentName) -> Result<Seq, StoreError> {
        let agent = agent.clone();
        self.read(&self.short, move |reader| reader.last(&agent)).await
    }

    async fn ledger(&self, agent: &AgentName) -> Result<Ledger, StoreError> {
        let agent = agent.clone();
        self.read(&self.long, move |reader| reader.ledger(&agent)).await
    }

    async fn search(&self, agent: &AgentName, search: Search) -> Result<Vec<Hit>, StoreError> {
        self.catch_up(agent).await?;
        let agent = agent.clone();
        self.read(&self.long, move |reader| reader.search(&agent, &search)).await
    }

    async fn result(&self, agent: &AgentName, id: u64) -> Result<Option<Arc<str>>, StoreError> {
        let agent = agent.clone();
        self.read(&self.short, move |reader| reader.result(&agent, id)).await
    }

    async fn remember(
        &self,
        agent: &AgentName,
        key: &str,
        at: Timestamp,
        change: MemoryChange,
    ) -> Result<Option<Memory>, StoreError> {
        let (agent, key) = (agent.clone(), key.to_owned());
        self.write(move |tables| tables.remember(&agent, &key, at, change)).await
    }

    async fn memories(
        &self,
        agent: &AgentName,
        text: &str,
        tags: &[Arc<str>],
        limit: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        let (agent, text, tags) = (agent.clone(), text.to_owned(), tags.to_vec());
        self.read(&self.short, move |reader| reader.memories(&agent, &text, &tags, limit)).await
    }

    async fn pinned(&self, agent: &AgentName) -> Result<Vec<Memory>, StoreError> {
        let agent = agent.clone();
        self.read(&self.short, move |reader| reader.pinned(&agent)).await
    }

    async fn keep_adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        changes: Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<(), StoreError> {
        let (agent, instance) = (agent.clone(), instance.to_owned());
        self.write(move |tables| tables.keep_adapter(&agent, &instance, &changes)).await
    }

    async fn adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        prefix: &str,
    ) -> Result<Vec<AdapterEntry>, StoreError> {
        let (agent, instance, prefix) = (agent.clone(), instance.to_owned(), prefix.to_owned());
        self.read(&self.short, move |reader| reader.adapter(&agent, &instance, &prefix)).await
    }

    async fn agents(&self) -> Result<Vec<AgentName>, StoreError> {
        self.read(&self.short, |reader| reader.agents()).await
    }
}
