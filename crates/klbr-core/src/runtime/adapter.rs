//! What an adapter remembers between two processes: cursors, sessions.

use std::sync::Arc;

use super::store::{AdapterEntry, Store, StoreError};
use crate::ids::AgentName;

/// The durable memory of one adapter of one agent. Cheap to clone.
///
/// It is no part of the agent's history: an adapter that loses it asks its source again, and what it then
/// admits twice is known as a repeat.
#[derive(Clone)]
pub struct AdapterState {
    store: Arc<dyn Store>,
    agent: AgentName,
    instance: Arc<str>,
}

impl AdapterState {
    /// The memory of the adapter with this instance name.
    pub fn new(store: Arc<dyn Store>, agent: AgentName, instance: impl Into<Arc<str>>) -> Self {
        AdapterState { store, agent, instance: instance.into() }
    }

    /// The value of one key.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let entries = self.list(key).await?;
        Ok(entries.into_iter().find(|(name, _)| name == key).map(|(_, value)| value))
    }

    /// Replaces the values of some keys, all or none; `None` removes a key.
    ///
    /// # Errors
    ///
    /// Fails when the store does; nothing is changed then.
    pub async fn put(&self, entries: &[(&str, Option<&[u8]>)]) -> Result<(), StoreError> {
        let owned = entries.iter().map(|(key, value)| ((*key).to_owned(), value.map(<[u8]>::to_vec)));
        self.store.keep_adapter(&self.agent, &self.instance, owned.collect()).await
    }

    /// Every entry whose key begins with `prefix`, by key.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub async fn list(&self, prefix: &str) -> Result<Vec<AdapterEntry>, StoreError> {
        self.store.adapter(&self.agent, &self.instance, prefix).await
    }
}
