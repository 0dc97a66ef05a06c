//! The store port in memory: exact, forgetful, and able to fail on purpose.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;

use crate::event::{Body, EventKey, Header};
use crate::ids::{AgentName, EventId, Seq};
use crate::ledger::{Fate, Ledger};
use crate::record::{Move, Record, Stamped};
use crate::runtime::store::history::{self, Query};
use crate::runtime::store::{
    AdapterEntry, Checkpoint, Commit, Hit, Kept, Memory, MemoryChange, Search, Store, StoreError,
};
use crate::time::Timestamp;

/// A store that lives as long as its handles. Clones are handles to the same store, so that a restart can be
/// played by dropping everything else.
#[derive(Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

/// How an injected failure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// As a device that is lost.
    Unavailable,
    /// As another writer that was faster.
    Conflict,
}

#[derive(Default)]
struct Inner {
    lives: BTreeMap<AgentName, Life>,
    commits: u64,
    faults: HashMap<u64, Fault>,
}

#[derive(Default)]
struct Life {
    records: Vec<Stamped>,
    keys: HashMap<EventKey, EventId>,
    bodies: BTreeMap<EventId, Body>,
    fates: BTreeMap<EventId, Fate>,
    results: HashMap<u64, Arc<str>>,
    checkpoint: Option<Checkpoint>,
    memories: BTreeMap<u64, Memory>,
    made: u64,
    answers: HashMap<String, Option<Memory>>,
    adapters: BTreeMap<(String, String), Vec<u8>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the `nth` commit from now fail, of whichever agent; 1 is the next one. Nothing of it is kept.
    pub fn fail_commit(&self, nth: u64, fault: Fault) {
        let mut inner = self.lock();
        let at = inner.commits + nth;
        inner.faults.insert(at, fault);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code under this lock panics")
    }

    fn read<T>(&self, agent: &AgentName, of: impl FnOnce(&Life) -> T) -> T {
        match self.lock().lives.get(agent) {
            Some(life) => of(life),
            None => of(&Life::default()),
        }
    }
}

impl Life {
    fn last(&self) -> Seq {
        self.records.last().map_or(Seq(0), |record| record.seq)
    }

    /// Refuses what cannot be applied, before anything is.
    fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        let mut fresh: BTreeSet<EventId> = BTreeSet::new();
        let mut keys: BTreeSet<EventKey> = BTreeSet::new();
        for (event, _) in commit.admissions(self.last())? {
            let key = key_of(event);
            if self.keys.contains_key(&key)
                || self.bodies.contains_key(&event.id)
                || !fresh.insert(event.id)
                || !keys.insert(key)
            {
                return Err(StoreError::Contradiction(format!("{} is admitted already", event.id)));
            }
        }
        for moved in commit.records.iter().flat_map(|stamped| stamped.record.moves()) {
            match moved {
                Move::One(event, _) if !self.bodies.contains_key(&event) && !fresh.contains(&event) => {
                    return Err(StoreError::Contradiction(format!("{event} was never admitted")));
                }
                Move::One(..) | Move::Framed(_) => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, commit: Commit) {
        self.bodies.extend(commit.bodies);
        for stamped in commit.records {
            if let Record::Admitted { event, .. } = &stamped.record {
                self.keys.insert(key_of(event), event.id);
            }
            for moved in stamped.record.moves() {
                match moved {
                    Move::One(event, fate) => {
                        self.fates.insert(event, fate);
                    }
                    Move::Framed(to) => {
                        self.fates.values_mut().filter(|f| **f == Fate::Framed).for_each(|f| *f = to);
                    }
                }
            }
            if let Some(result) = history::call_result(&stamped.record) {
                self.results.insert(result.id, result.full.clone());
            }
            self.records.push(stamped);
        }
    }

    fn remember(&mut self, at: Timestamp, change: MemoryChange) -> Option<Memory> {
        match change {
            MemoryChange::Add { text, tags, pinned } => {
                self.made += 1;
                let memory = Memory { id: self.made, text, tags, pinned, at };
                self.memories.insert(memory.id, memory.clone());
                Some(memory)
            }
            MemoryChange::Update { id, text, tags, pinned } => {
                let memory = self.memories.get_mut(&id)?;
                memory.text = text.unwrap_or_else(|| memory.text.clone());
                memory.tags = tags.unwrap_or_else(|| memory.tags.clone());
                memory.pinned = pinned.unwrap_or(memory.pinned);
                memory.at = at;
                Some(memory.clone())
            }
            MemoryChange::Forget { id } => self.memories.remove(&id),
        }
    }

    fn search(&self, search: &Search) -> Vec<Hit> {
        let query = Query::parse(&search.text);
        let blank = search.text.trim().is_empty();
        let mut hits: Vec<Hit> = Vec::new();
        for stamped in self.records.iter().rev() {
            let outside = search.since.is_some_and(|since| stamped.at < since)
                || search.until.is_some_and(|until| stamped.at >= until);
            let body = |event| self.bodies.get(&event).cloned().ok_or(());
            let Some(passage) = history::passage(&stamped.record, body).ok().flatten() else { continue };
            let elsewhere = search.source.as_deref().is_some_and(|source| source != &*passage.source)
                || search.conversation.as_ref().is_some_and(|id| passage.conversation.as_deref() != Some(id));
            if outside || elsewhere {
                continue;
            }
            let score = if blank { Some(0.0) } else { query.fit(&passage.text).map(|(_, score)| score) };
            let Some(score) = score else { continue };
            hits.push(Hit {
                seq: stamped.seq,
                at: stamped.at,
                source: passage.source,
                conversation: passage.conversation,
                excerpt: query.excerpt(&passage.text),
                score,
            });
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.into_iter().skip(search.offset).take(search.limit).collect()
    }
}

fn key_of(event: &Header) -> EventKey {
    EventKey { instance: event.source.instance.clone(), external_id: event.external_id.clone() }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.commits += 1;
        let count = inner.commits;
        let fault = inner.faults.remove(&count);
        let life = inner.lives.entry(commit.agent.clone()).or_default();
        match fault {
            Some(Fault::Unavailable) => return Err(StoreError::Unavailable("an injected failure".into())),
            Some(Fault::Conflict) => {
                let expected = life.last().next();
                return Err(StoreError::Conflict { expected: expected.next(), got: expected });
            }
            None => {}
        }
        life.check(&commit)?;
        life.apply(commit);
        Ok(())
    }

    async fn load(&self, agent: &AgentName) -> Result<Kept, StoreError> {
        Ok(self.read(agent, |life| {
            let checkpoint = life.checkpoint.clone();
            let after = checkpoint.as_ref().map_or(Seq(0), |checkpoint| checkpoint.seq);
            Kept { checkpoint, records: life.records.iter().filter(|r| r.seq > after).cloned().collect() }
        }))
    }

    async fn checkpoint(&self, agent: &AgentName, checkpoint: Checkpoint) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let life = inner.lives.entry(agent.clone()).or_default();
        let (expected, got) = (life.last(), checkpoint.seq);
        if got > expected {
            return Err(StoreError::Conflict { expected, got });
        }
        life.checkpoint = Some(checkpoint);
        Ok(())
    }

    async fn find(&self, agent: &AgentName, keys: &[EventKey]) -> Result<Vec<Option<EventId>>, StoreError> {
        Ok(self.read(agent, |life| keys.iter().map(|key| life.keys.get(key).copied()).collect()))
    }

    async fn bodies(&self, agent: &AgentName, events: &[EventId]) -> Result<Vec<Body>, StoreError> {
        self.read(agent, |life| {
            let body = |event: &EventId| {
                let missing = || StoreError::Missing(format!("body of {event}"));
                life.bodies.get(event).cloned().ok_or_else(missing)
            };
            events.iter().map(body).collect()
        })
    }

    async fn records(&self, agent: &AgentName, after: Seq, limit: usize) -> Result<Vec<Stamped>, StoreError> {
        Ok(self.read(agent, |life| {
            life.records.iter().filter(|record| record.seq > after).take(limit).cloned().collect()
        }))
    }

    async fn last(&self, agent: &AgentName) -> Result<Seq, StoreError> {
        Ok(self.read(agent, Life::last))
    }

    async fn ledger(&self, agent: &AgentName) -> Result<Ledger, StoreError> {
        Ok(self.read(agent, |life| {
            let mut ledger = Ledger { admitted: life.keys.len() as u64, ..Ledger::default() };
            life.fates.values().for_each(|&fate| *ledger.term(fate) += 1);
            ledger
        }))
    }

    async fn search(&self, agent: &AgentName, search: Search) -> Result<Vec<Hit>, StoreError> {
        Ok(self.read(agent, |life| life.search(&search)))
    }

    async fn result(&self, agent: &AgentName, id: u64) -> Result<Option<Arc<str>>, StoreError> {
        Ok(self.read(agent, |life| life.results.get(&id).cloned()))
    }

    async fn remember(
        &self,
        agent: &AgentName,
        key: &str,
        at: Timestamp,
        change: MemoryChange,
    ) -> Result<Option<Memory>, StoreError> {
        let mut inner = self.lock();
        let life = inner.lives.entry(agent.clone()).or_default();
        if let Some(answer) = life.answers.get(key) {
            return Ok(answer.clone());
        }
        let answer = life.remember(at, change);
        life.answers.insert(key.to_owned(), answer.clone());
        Ok(answer)
    }

    async fn memories(
        &self,
        agent: &AgentName,
        text: &str,
        tags: &[Arc<str>],
        limit: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        Ok(self.read(agent, |life| history::fitting(life.memories.values().cloned(), text, tags, limit)))
    }

    async fn pinned(&self, agent: &AgentName) -> Result<Vec<Memory>, StoreError> {
        Ok(self.read(agent, |life| life.memories.values().filter(|m| m.pinned).cloned().collect()))
    }

    async fn keep_adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        changes: Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let life = inner.lives.entry(agent.clone()).or_default();
        for (key, value) in changes {
            match value {
                Some(value) => life.adapters.insert((instance.to_owned(), key), value),
                None => life.adapters.remove(&(instance.to_owned(), key)),
            };
        }
        Ok(())
    }

    async fn adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        prefix: &str,
    ) -> Result<Vec<AdapterEntry>, StoreError> {
        Ok(self.read(agent, |life| {
            let is_its = |(of, key): &(String, String)| of == instance && key.starts_with(prefix);
            let entries = life.adapters.iter().filter(|(key, _)| is_its(key));
            entries.map(|((_, key), value)| (key.clone(), value.clone())).collect()
        }))
    }

    async fn agents(&self) -> Result<Vec<AgentName>, StoreError> {
        let inner = self.lock();
        Ok(inner
            .lives
            .iter()
            .filter(|(_, life)| !life.records.is_empty())
            .map(|(name, _)| name.clone())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::store_suite::fixtures::Script;

    #[tokio::test]
    async fn it_passes_the_suite() {
        crate::testkit::store_suite::check_all(async || MemoryStore::new()).await;
    }

    #[tokio::test]
    async fn an_injected_failure_keeps_nothing_and_passes() {
        let store = MemoryStore::new();
        let mut ada = Script::new("ada");
        ada.record(Record::Reset);
        let commit = ada.take();
        store.fail_commit(1, Fault::Unavailable);
        store.fail_commit(2, Fault::Conflict);
        assert!(matches!(store.commit(commit.clone()).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(store.commit(commit.clone()).await, Err(StoreError::Conflict { .. })));
        assert_eq!(store.last(ada.agent()).await.unwrap(), Seq(0));
        store.clone().commit(commit).await.unwrap();
        assert_eq!(store.last(ada.agent()).await.unwrap(), Seq(1));
    }
}
