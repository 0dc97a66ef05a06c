//! The handle: what an embedder, a CLI or an adapter does with a running agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, oneshot};

use super::adapter::AdapterState;
use super::store::{Hit, Search, Store, StoreError};
use super::updates::Updates;
use crate::action::Conversations;
use crate::event::{Control, EventError, NewEvent};
use crate::ids::{AgentName, EventId, Seq};
use crate::ledger::Ledger;
use crate::policy::{Asked, InForce, Observed};
use crate::status::{Attended, Status, Waiting};
use crate::update::Update;

/// A running agent, as seen from outside. Cheap to clone; many tasks may use it at once.
#[derive(Clone)]
pub struct AgentHandle {
    agent: AgentName,
    requests: mpsc::Sender<Request>,
    /// Only the agent itself keeps the updates open: they end when it does.
    updates: broadcast::WeakSender<Arc<Update>>,
    store: Arc<dyn Store>,
}

/// An event's place, once it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The event's id: the first one's, for a repeat.
    pub event: EventId,
    /// Whether the same happening had been admitted before.
    pub repeated: bool,
}

/// An event that was not admitted. Nothing of it is kept; it may be offered again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdmitError {
    /// It can never be admitted as it is.
    #[error(transparent)]
    Invalid(#[from] EventError),
    /// The store failed.
    #[error("the event could not be made durable: {0}")]
    Store(String),
    /// The agent is shutting down, or has.
    #[error("the agent is shutting down")]
    Stopped,
}

/// A question that a stopped agent does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent has stopped")]
pub struct Stopped;

/// An event on its way in, and who waits for its place.
pub(super) struct Offered {
    pub(super) event: NewEvent,
    pub(super) reply: oneshot::Sender<Result<Admission, AdmitError>>,
}

pub(super) enum Request {
    Admit(Vec<Offered>),
    Status(oneshot::Sender<Status>),
    Waiting { limit: usize, reply: oneshot::Sender<Vec<Waiting>> },
    Attention { limit: usize, reply: oneshot::Sender<Vec<Attended>> },
    Conversations(oneshot::Sender<Conversations>),
    Observed { observed: Box<Observed>, reply: oneshot::Sender<Result<(), AdmitError>> },
    Observers(oneshot::Sender<BTreeMap<Arc<str>, Seq>>),
    Soul(oneshot::Sender<Arc<str>>),
    Epochs(oneshot::Sender<Vec<InForce>>),
    Asked(oneshot::Sender<Vec<Asked>>),
    ModelFound { model: Arc<str>, context_tokens: Option<u64>, reply: oneshot::Sender<()> },
    Shutdown(oneshot::Sender<()>),
}

impl AgentHandle {
    pub(super) fn new(
        agent: AgentName,
        requests: mpsc::Sender<Request>,
        updates: broadcast::WeakSender<Arc<Update>>,
        store: Arc<dyn Store>,
    ) -> Self {
        AgentHandle { agent, requests, updates, store }
    }

    /// The agent's name.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }

    /// Admits an event; when this returns, it is durable.
    ///
    /// A repeat of the same external id from the same source is answered with the first one's id.
    ///
    /// Events are admitted in the order of the calls only when each call is awaited before the next is made. Of
    /// calls under way at once no order is promised, not even when one task polls them in order: what has to
    /// keep its order goes through [`AgentHandle::admit_all`].
    ///
    /// # Errors
    ///
    /// Fails when the event is invalid, the store fails, or the agent stops; nothing is kept then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the answer, not the event: offer it again with the same external id.
    pub async fn admit(&self, event: NewEvent) -> Result<Admission, AdmitError> {
        let mut answers = self.admit_all(vec![event]).await;
        answers.pop().expect("one event has one answer")
    }

    /// Admits events in their order, in one commit; when this returns, they are durable. Answers for each, in the
    /// same order.
    ///
    /// What another call admits stands before or after all of them. An invalid event is refused by itself; a
    /// store that fails and an agent that stops refuse every one that is not a repeat.
    ///
    /// # Cancel safety
    ///
    /// As [`AgentHandle::admit`]: all of them are admitted then, or none is.
    pub async fn admit_all(&self, events: Vec<NewEvent>) -> Vec<Result<Admission, AdmitError>> {
        let mut offered = Vec::with_capacity(events.len());
        let mut answers = Vec::with_capacity(events.len());
        for event in events {
            answers.push(event.validate().map(|()| {
                let (reply, answer) = oneshot::channel();
                offered.push(Offered { event, reply });
                answer
            }));
        }
        if !offered.is_empty() {
            // Refused, the request is dropped with everyone's reply, which says so.
            let _ = self.requests.send(Request::Admit(offered)).await;
        }
        let mut admitted = Vec::with_capacity(answers.len());
        for answer in answers {
            admitted.push(match answer {
                Ok(answer) => answer.await.unwrap_or(Err(AdmitError::Stopped)),
                Err(error) => Err(error.into()),
            });
        }
        admitted
    }

    /// Says something to the agent as its operator. `key` names the message: the same key is the same message.
    ///
    /// # Errors
    ///
    /// As [`AgentHandle::admit`].
    pub async fn say(&self, key: &str, text: &str) -> Result<Admission, AdmitError> {
        self.admit(NewEvent::operator(key, text)).await
    }

    /// Gives the agent a management command. `key` names it: the same key is the same command.
    ///
    /// # Errors
    ///
    /// As [`AgentHandle::admit`].
    pub async fn control(&self, key: &str, control: Control) -> Result<Admission, AdmitError> {
        self.admit(NewEvent::control(key, control)).await
    }

    /// Everything that happens, from the record after `after` on; from now on when it is none. Of an agent that
    /// has stopped: everything that happened since then.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub async fn updates(&self, after: Option<Seq>) -> Result<Updates, StoreError> {
        let live = match self.updates.upgrade() {
            Some(updates) => updates.subscribe(),
            // Nothing comes any more of an agent that has stopped.
            None => broadcast::channel(1).1,
        };
        let after = match after {
            Some(seq) => seq,
            None => self.store.last(&self.agent).await?,
        };
        Ok(Updates::new(self.agent.clone(), self.store.clone(), live, after))
    }

    /// How the agent is doing.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn status(&self) -> Result<Status, Stopped> {
        self.ask(Request::Status).await
    }

    /// The events that wait, most urgent first, at most `limit`.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn waiting(&self, limit: usize) -> Result<Vec<Waiting>, Stopped> {
        self.ask(|reply| Request::Waiting { limit, reply }).await
    }

    /// The soul in force.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn soul(&self) -> Result<Arc<str>, Stopped> {
        self.ask(Request::Soul).await
    }

    /// Everything that was put in force, the oldest first; the last is in force.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn epochs(&self) -> Result<Vec<InForce>, Stopped> {
        self.ask(Request::Epochs).await
    }

    /// The questions that were decided since this was last asked, each slot's newest, where the configuration
    /// keeps them; with what was in force, whoever decided.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn asked(&self) -> Result<Vec<Asked>, Stopped> {
        self.ask(Request::Asked).await
    }

    /// The ledger, each term counted from its own rows in the store.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub async fn ledger(&self) -> Result<Ledger, StoreError> {
        self.store.ledger(&self.agent).await
    }

    /// Looks for text in everything that was said, heard and answered.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub async fn search(&self, search: Search) -> Result<Vec<Hit>, StoreError> {
        self.store.search(&self.agent, search).await
    }

    /// What an adapter of the agent keeps between two processes.
    pub fn adapter(&self, instance: impl Into<Arc<str>>) -> AdapterState {
        AdapterState::new(self.store.clone(), self.agent.clone(), instance)
    }

    /// What was addressed to the agent: undecided items first, each kind newest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn attention(&self, limit: usize) -> Result<Vec<Attended>, Stopped> {
        self.ask(|reply| Request::Attention { limit, reply }).await
    }

    /// Takes an observer's report in; when this returns, its cursor and what it wanted done are durable
    /// together. A report through a record that it has dealt with before changes nothing.
    ///
    /// # Errors
    ///
    /// Fails when the report would admit an event that preempts, when the store fails, or when the agent has
    /// stopped; nothing is kept then.
    pub async fn observed(&self, observed: Observed) -> Result<(), AdmitError> {
        observed.validate()?;
        let observed = Box::new(observed);
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Observed { observed, reply }).await.map_err(|_| AdmitError::Stopped)?;
        answer.await.unwrap_or(Err(AdmitError::Stopped))
    }

    /// How far each observer has come: the last record that it has dealt with.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn observers(&self) -> Result<BTreeMap<Arc<str>, Seq>, Stopped> {
        self.ask(Request::Observers).await
    }

    /// The conversations that have an alias.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn conversations(&self) -> Result<Conversations, Stopped> {
        self.ask(Request::Conversations).await
    }

    /// Tells the agent which model it is that answers, and how large its context is, in tokens, where that is
    /// known: for a host that learns it only while the agent lives. In force from the next turn on; another name
    /// than before is another model (`C-PFX-1`). It is kept for as long as the agent runs.
    ///
    /// # Errors
    ///
    /// Fails when the agent has stopped.
    pub async fn model_found(
        &self,
        model: impl Into<Arc<str>>,
        context_tokens: Option<u64>,
    ) -> Result<(), Stopped> {
        let model = model.into();
        self.ask(|reply| Request::ModelFound { model, context_tokens, reply }).await
    }

    /// The store that the agent lives in.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Stops the agent in order (`B-ID-3`): samplings are dropped, actions cancelled, everything committed.
    /// Returns when it has stopped; returns at once when it had.
    pub async fn shutdown(&self) {
        let _ = self.ask(Request::Shutdown).await;
    }

    /// Returns when the agent has stopped, whoever stopped it; at once when it had. What was admitted is durable
    /// then, and [`Updates`] end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn stopped(&self) {
        self.requests.closed().await;
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}
