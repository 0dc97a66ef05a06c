//! Updates: everything that happens to an agent, without a gap, for as many clients as there are.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::store::{Store, StoreError};
use crate::ids::{AgentName, Seq};
use crate::update::Update;

/// How many records are read at once while catching up.
const PAGE: usize = 256;

/// A client's view of what happens: first what it has missed, then what comes.
///
/// A client that falls behind misses live pieces, never a durable update.
pub struct Updates {
    agent: AgentName,
    store: Arc<dyn Store>,
    live: broadcast::Receiver<Arc<Update>>,
    /// The last record that the client has been told of, or that told it nothing.
    last: Seq,
    missed: VecDeque<Update>,
    is_behind: bool,
}

impl Updates {
    pub(super) fn new(
        agent: AgentName,
        store: Arc<dyn Store>,
        live: broadcast::Receiver<Arc<Update>>,
        last: Seq,
    ) -> Self {
        Updates { agent, store, live, last, missed: VecDeque::new(), is_behind: true }
    }

    /// The next update; none when the agent has stopped and everything was told.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read; a later call tries again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no update.
    pub async fn next(&mut self) -> Result<Option<Update>, StoreError> {
        loop {
            if let Some(update) = self.missed.pop_front() {
                return Ok(Some(update));
            }
            if self.is_behind {
                let page = self.store.records(&self.agent, self.last, PAGE).await?;
                self.is_behind = page.len() == PAGE;
                if let Some(newest) = page.last() {
                    self.last = newest.seq;
                }
                self.missed.extend(page.iter().filter_map(Update::from_record));
                continue;
            }
            match self.live.recv().await {
                Ok(update) => match update.id {
                    Some(id) if id <= self.last => {}
                    Some(id) => {
                        self.last = id;
                        return Ok(Some(Update::clone(&update)));
                    }
                    None => return Ok(Some(Update::clone(&update))),
                },
                Err(broadcast::error::RecvError::Lagged(_)) => self.is_behind = true,
                Err(broadcast::error::RecvError::Closed) => return Ok(None),
            }
        }
    }
}
