//! A store of one's own: another store with something in front of it. Here every commit is counted; a store
//! for a fleet would send it elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use klbr_core::config::Config;
use klbr_core::event::{Body, EventKey};
use klbr_core::ids::{AgentName, EventId, Seq};
use klbr_core::ledger::Ledger;
use klbr_core::record::Stamped;
use klbr_core::runtime::AgentBuilder;
use klbr_core::runtime::store::{
    AdapterEntry, Checkpoint, Commit, Hit, Kept, Memory, MemoryChange, Search, Store, StoreError,
};
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::time::Timestamp;
use klbr_core::update::Happening;

/// Counts commits on their way to another store.
struct Counting<S> {
    inner: S,
    commits: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl<S: Store> Store for Counting<S> {
    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.inner.commit(commit).await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn load(&self, agent: &AgentName) -> Result<Kept, StoreError> {
        self.inner.load(agent).await
    }

    async fn checkpoint(&self, agent: &AgentName, checkpoint: Checkpoint) -> Result<(), StoreError> {
        self.inner.checkpoint(agent, checkpoint).await
    }

    async fn find(&self, agent: &AgentName, keys: &[EventKey]) -> Result<Vec<Option<EventId>>, StoreError> {
        self.inner.find(agent, keys).await
    }

    async fn bodies(&self, agent: &AgentName, events: &[EventId]) -> Result<Vec<Body>, StoreError> {
        self.inner.bodies(agent, events).await
    }

    async fn records(&self, agent: &AgentName, after: Seq, limit: usize) -> Result<Vec<Stamped>, StoreError> {
        self.inner.records(agent, after, limit).await
    }

    async fn last(&self, agent: &AgentName) -> Result<Seq, StoreError> {
        self.inner.last(agent).await
    }

    async fn ledger(&self, agent: &AgentName) -> Result<Ledger, StoreError> {
        self.inner.ledger(agent).await
    }

    async fn search(&self, agent: &AgentName, search: Search) -> Result<Vec<Hit>, StoreError> {
        self.inner.search(agent, search).await
    }

    async fn result(&self, agent: &AgentName, id: u64) -> Result<Option<Arc<str>>, StoreError> {
        self.inner.result(agent, id).await
    }

    async fn remember(
        &self,
        agent: &AgentName,
        key: &str,
        at: Timestamp,
        change: MemoryChange,
    ) -> Result<Option<Memory>, StoreError> {
        self.inner.remember(agent, key, at, change).await
    }

    async fn memories(
        &self,
        agent: &AgentName,
        text: &str,
        tags: &[Arc<str>],
        limit: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        self.inner.memories(agent, text, tags, limit).await
    }

    async fn pinned(&self, agent: &AgentName) -> Result<Vec<Memory>, StoreError> {
        self.inner.pinned(agent).await
    }

    async fn keep_adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        changes: Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<(), StoreError> {
        self.inner.keep_adapter(agent, instance, changes).await
    }

    async fn adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        prefix: &str,
    ) -> Result<Vec<AdapterEntry>, StoreError> {
        self.inner.adapter(agent, instance, prefix).await
    }

    async fn agents(&self) -> Result<Vec<AgentName>, StoreError> {
        self.inner.agents().await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let commits = Arc::new(AtomicUsize::new(0));
    let store = Counting { inner: MemoryStore::new(), commits: commits.clone() };
    let model = ScriptedModel::new([Scripted::calls(&[
        ("local_send", r#"{"content":"Kept."}"#),
        ("wait_and_continue", r#"{"duration":"10m"}"#),
    ])]);
    let agent = AgentBuilder::new(Config::new("ada".parse()?, "scripted"), store, model).start().await?;
    let mut updates = agent.handle().updates(None).await?;
    agent.handle().say("keep", "Keep this.").await?;
    while let Some(update) = updates.next().await? {
        if let Happening::Waiting { .. } = update.happening {
            break;
        }
    }
    println!("{}", agent.handle().ledger().await?);
    agent.shutdown().await;
    println!("{} commits", commits.load(Ordering::Relaxed));
    Ok(())
}
