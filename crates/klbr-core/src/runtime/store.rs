//! The store port: what an agent's life is kept in.
//!
//! What every store has to agree on beyond the trait, what of a record can be found and how well a text
//! fits a search, is in [`history`].

pub mod history;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Body, EventKey, Header};
use crate::ids::{AgentName, EventId, Seq};
use crate::ledger::Ledger;
use crate::record::{Record, Stamped};
use crate::time::Timestamp;

/// What must become durable together. Nothing of it is, or all of it.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The agent.
    pub agent: AgentName,
    /// The records, numbered without a gap after those already kept.
    pub records: Vec<Stamped>,
    /// The bodies of the events that the records admit.
    pub bodies: Vec<(EventId, Body)>,
}

impl Commit {
    /// The events that are admitted, each with its body, once it is sure that the records follow `last`.
    ///
    /// # Errors
    ///
    /// Fails when a record's number is not the next one, and when admissions and bodies do not pair up.
    pub fn admissions(&self, last: Seq) -> Result<Vec<(&Header, &Body)>, StoreError> {
        let mut bodies: BTreeMap<EventId, &Body> = self.bodies.iter().map(|(id, body)| (*id, body)).collect();
        let mut admitted = Vec::with_capacity(bodies.len());
        let mut expected = last;
        for stamped in &self.records {
            expected = expected.next();
            if stamped.seq != expected {
                return Err(StoreError::Conflict { expected, got: stamped.seq });
            }
            if let Record::Admitted { event, .. } = &stamped.record {
                let body = bodies.remove(&event.id).ok_or_else(|| {
                    StoreError::Contradiction(format!("{} comes without a body of its own", event.id))
                })?;
                admitted.push((event, body));
            }
        }
        match bodies.keys().next() {
            Some(event) => {
                Err(StoreError::Contradiction(format!("a body comes without the admission of {event}")))
            }
            None => Ok(admitted),
        }
    }
}

/// An agent as it was kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The newest checkpoint that can still be read, if any. A cache, never an authority (`C-REC-5`).
    pub checkpoint: Option<Checkpoint>,
    /// Every record after it, in order.
    pub records: Vec<Stamped>,
}

/// A folded state, so that a restart need not fold everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last record that it folds.
    pub seq: Seq,
    /// The state as the core wrote it.
    pub bytes: Vec<u8>,
}

/// What is looked for in an agent's history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// Words, parts of words, identifiers, in any script. Not a query language. When it is blank, everything
    /// that passes the filters is found, newest first.
    pub text: String,
    /// Only what happened at or after this.
    pub since: Option<Timestamp>,
    /// Only what happened before this.
    pub until: Option<Timestamp>,
    /// Only from this source instance (`local` for the operator), or from the agent itself (`agent`).
    pub source: Option<String>,
    /// Only from this conversation, by its channel's id.
    pub conversation: Option<String>,
    /// How many hits at most, best first.
    pub limit: usize,
    /// How many of the best to pass over.
    pub offset: usize,
}

/// One place in the history that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The record that holds it.
    pub seq: Seq,
    /// When it happened, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// Who said it: a source instance, or `agent`.
    pub source: Arc<str>,
    /// Where it was said.
    pub conversation: Option<Arc<str>>,
    /// The text around the find.
    pub excerpt: String,
    /// How well it fits; higher is better, comparable within one answer.
    pub score: f64,
}

/// Whether a tag says where a memory belongs, as in `conversation:d1` (`C-MEM`).
pub fn is_scope(tag: &str) -> bool {
    SCOPES.iter().any(|scope| tag.len() > scope.len() && tag.starts_with(scope))
}

/// What a tag of a memory begins with.
pub(super) const SCOPES: [&str; 6] = ["source:", "conversation:", "guild:", "channel:", "thread:", "author:"];

/// One remembered text (`C-MEM`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Its number within the agent, from 1, never reused.
    pub id: u64,
    /// What is remembered.
    pub text: Arc<str>,
    /// Scope tags, such as `conversation:d1`.
    pub tags: Vec<Arc<str>>,
    /// Whether it stands in every prefix made from here on.
    pub pinned: bool,
    /// When it was made or last changed, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
}

/// A key and its value, as an adapter keeps them.
pub type AdapterEntry = (String, Vec<u8>);

/// A change to what is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// Remembers something new.
    Add {
        /// What.
        text: Arc<str>,
        /// Scope tags.
        tags: Vec<Arc<str>>,
        /// Whether it is pinned.
        pinned: bool,
    },
    /// Replaces what one memory says; what is absent stays.
    Update {
        /// Which.
        id: u64,
        /// The new text.
        text: Option<Arc<str>>,
        /// The new tags.
        tags: Option<Vec<Arc<str>>>,
        /// Whether it is pinned from here on.
        pinned: Option<bool>,
    },
    /// Forgets one memory.
    Forget {
        /// Which.
        id: u64,
    },
}

/// Where agents are kept.
///
/// Every method may be called by many tasks at once. Dropping a returned future never undoes a commit that
/// was handed over: it only gives up hearing of it.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes a commit durable. When this returns, it survives a power cut.
    ///
    /// # Errors
    ///
    /// Fails with [`StoreError::Conflict`] when the records do not follow those already kept, and then, as in
    /// every other failure, nothing of the commit is kept.
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// Reads what is needed to restore an agent; `Kept::default()` for one that is new.
    async fn load(&self, agent: &AgentName) -> Result<Kept, StoreError>;

    /// Keeps a checkpoint, and may drop older ones.
    async fn checkpoint(&self, agent: &AgentName, checkpoint: Checkpoint) -> Result<(), StoreError>;

    /// Which of these happenings are admitted already, in the same order.
    async fn find(&self, agent: &AgentName, keys: &[EventKey]) -> Result<Vec<Option<EventId>>, StoreError>;

    /// The bodies of these events, in the same order.
    async fn bodies(&self, agent: &AgentName, events: &[EventId]) -> Result<Vec<Body>, StoreError>;

    /// The records after `after`, at most `limit`, in order.
    async fn records(&self, agent: &AgentName, after: Seq, limit: usize) -> Result<Vec<Stamped>, StoreError>;

    /// The number of the newest record; zero for an agent that is new.
    async fn last(&self, agent: &AgentName) -> Result<Seq, StoreError>;

    /// The ledger, each term counted from its own rows (`C-LEDGER`).
    async fn ledger(&self, agent: &AgentName) -> Result<Ledger, StoreError>;

    /// Looks for text in everything that was said, heard and answered.
    async fn search(&self, agent: &AgentName, search: Search) -> Result<Vec<Hit>, StoreError>;

    /// The whole text of a call's result by its number, if it was ever given.
    async fn result(&self, agent: &AgentName, id: u64) -> Result<Option<Arc<str>>, StoreError>;

    /// Changes what is remembered; answers with the memory as it is now, or was when it is forgotten. The
    /// same `key` asked again changes nothing more and gives the same answer.
    async fn remember(
        &self,
        agent: &AgentName,
        key: &str,
        at: Timestamp,
        change: MemoryChange,
    ) -> Result<Option<Memory>, StoreError>;

    /// What is remembered under all of `tags` and, unless empty, fits `text`, best first.
    async fn memories(
        &self,
        agent: &AgentName,
        text: &str,
        tags: &[Arc<str>],
        limit: usize,
    ) -> Result<Vec<Memory>, StoreError>;

    /// Every pinned memory, oldest first.
    async fn pinned(&self, agent: &AgentName) -> Result<Vec<Memory>, StoreError>;

    /// Changes what an adapter of the agent keeps, all or none; `None` removes a key.
    async fn keep_adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        changes: Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<(), StoreError>;

    /// What an adapter of the agent keeps under keys that begin with `prefix`, by key.
    async fn adapter(
        &self,
        agent: &AgentName,
        instance: &str,
        prefix: &str,
    ) -> Result<Vec<AdapterEntry>, StoreError>;

    /// The agents that are kept here, by name.
    async fn agents(&self) -> Result<Vec<AgentName>, StoreError>;
}

/// A store that did not do what it was asked; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer has written, or a record is missing.
    #[error("the records do not follow: expected record {expected}, got {got}")]
    Conflict {
        /// The number that would have followed.
        expected: Seq,
        /// The number that came.
        got: Seq,
    },
    /// The commit contradicts what is kept, or itself: an event admitted twice, a body that is missing.
    #[error("the commit contradicts what is kept: {0}")]
    Contradiction(String),
    /// What is kept cannot be read; it was left as it is.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Something that was asked for is not there.
    #[error("the store has no {0}")]
    Missing(String),
    /// The store itself failed: a full disk, a lost device, a closed database.
    #[error("the store failed: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}
