//! An agent that runs, as Python holds it: every method is a coroutine that the runtime answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use klbr_core::event::{Author, Body, Bucket, Change, Control, NewEvent, Priority, Source, SourceKind};
use klbr_core::ids::Seq;
use klbr_core::runtime::store::{MemoryChange, Search};
use klbr_core::runtime::{AgentHandle, RunningAgent};
use klbr_core::time::Timestamp;
use klbr_core::update::Update;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::bridge::awaitable;
use crate::convert::{Plain, read};
use crate::wiring::Home;

/// A running agent.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Agent {
    handle: AgentHandle,
    running: Arc<tokio::sync::Mutex<Option<RunningAgent>>>,
    home: Arc<Home>,
    /// The last record before this process.
    since: Seq,
}

/// An event from outside, as the Python half writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heard {
    kind: SourceKind,
    instance: String,
    external_id: String,
    priority: Priority,
    text: String,
    conversation: Option<String>,
    author: Option<Author>,
    attributes: Vec<(Arc<str>, Arc<str>)>,
    attention: Option<Bucket>,
    amends: Option<(String, Change)>,
}

impl Heard {
    fn event(self) -> NewEvent {
        let body = Body { author: self.author, text: self.text.into(), attributes: self.attributes };
        let source = Source::new(self.kind, self.instance);
        let mut event = NewEvent::external(source, self.external_id, self.priority, body);
        if let Some(id) = self.conversation {
            event = event.in_conversation(id);
        }
        if let Some(bucket) = self.attention {
            event = event.for_attention(bucket);
        }
        if let Some((of, change)) = self.amends {
            event = event.amending(of, change);
        }
        event
    }
}

impl Agent {
    pub(crate) fn new(running: RunningAgent, home: Home, since: Seq) -> Self {
        let handle = running.handle().clone();
        Agent {
            handle,
            running: Arc::new(tokio::sync::Mutex::new(Some(running))),
            home: Arc::new(home),
            since,
        }
    }

    fn admit_event<'py>(&self, py: Python<'py>, event: NewEvent) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.clone();
        awaitable(py, async move {
            let admission = handle.admit(event).await?;
            Ok((admission.event.0, admission.repeated))
        })
    }
}

#[pymethods]
impl Agent {
    /// Admits an event that is told in JSON; answers with its number and whether it is a repeat.
    fn admit<'py>(&self, py: Python<'py>, event: &str) -> PyResult<Bound<'py, PyAny>> {
        let heard: Heard = read("an event", event)?;
        self.admit_event(py, heard.event())
    }

    /// Says something as the operator.
    fn say<'py>(&self, py: Python<'py>, key: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
        self.admit_event(py, NewEvent::operator(key, text))
    }

    /// Gives a management command that is told in JSON.
    fn control<'py>(&self, py: Python<'py>, key: &str, control: &str) -> PyResult<Bound<'py, PyAny>> {
        let control: Control = read("a command", control)?;
        self.admit_event(py, NewEvent::control(key, control))
    }

    /// Everything after a record; after what was there before this process, when it is None.
    #[pyo3(signature = (after))]
    fn updates<'py>(&self, py: Python<'py>, after: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        let (handle, after) = (self.handle.clone(), after.map_or(self.since, Seq));
        awaitable(py, async move {
            let updates = handle.updates(Some(after)).await?;
            Ok(Updates { updates: Arc::new(tokio::sync::Mutex::new(updates)), ready: Arc::default() })
        })
    }

    /// How it is doing.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.clone();
        awaitable(py, async move { Ok(Plain(handle.status().await?)) })
    }

    /// Where every event is.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.clone();
        awaitable(py, async move { Ok(Plain(handle.ledger().await?)) })
    }

    /// The events that wait.
    fn waiting<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.clone();
        awaitable(py, async move { Ok(Plain(handle.waiting(limit).await?)) })
    }

    /// What was addressed to it.
    fn attention<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.clone();
        awaitable(py, async move { Ok(Plain(handle.attention(limit).await?)) })
    }

    /// Looks for text in its history; the search is told in JSON.
    fn search<'py>(&self, py: Python<'py>, search: &str) -> PyResult<Bound<'py, PyAny>> {
        let search: Search = read("a search", search)?;
        let handle = self.handle.clone();
        awaitable(py, async move { Ok(Plain(handle.search(search).await?)) })
    }

    /// Remembers a text; `key` makes a repeat known.
    fn remember<'py>(
        &self,
        py: Python<'py>,
        key: String,
        text: String,
        tags: Vec<String>,
        pinned: bool,
        at: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.clone();
        let tags = tags.into_iter().map(Into::into).collect();
        let change = MemoryChange::Add { text: text.into(), tags, pinned };
        awaitable(py, async move {
            let made = handle.store().remember(handle.agent(), &key, Timestamp(at), change).await;
            Ok(Plain(made?))
        })
    }

    /// Stops it in order.
    fn shutdown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (running, home) = (self.running.clone(), self.home.clone());
        awaitable(py, async move {
            if let Some(agent) = running.lock().await.take() {
                agent.shutdown().await;
                if let Home::File(store) = &*home {
                    store.close().await?;
                }
            }
            Ok(())
        })
    }
}

/// What happens to an agent, update by update.
///
/// One that was fetched stays until it is taken, so that a cancelled wait loses none.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Updates {
    updates: Arc<tokio::sync::Mutex<klbr_core::runtime::Updates>>,
    ready: Arc<Mutex<VecDeque<Update>>>,
}

#[pymethods]
impl Updates {
    /// Waits until there is an update to take; answers False when the agent has stopped and all was told.
    fn ready<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (updates, ready) = (self.updates.clone(), self.ready.clone());
        awaitable(py, async move {
            let mut updates = updates.lock().await;
            if !queue(&ready).is_empty() {
                return Ok(true);
            }
            let next = updates.next().await?;
            let is_there = next.is_some();
            queue(&ready).extend(next);
            Ok(is_there)
        })
    }

    /// The oldest update that was not taken yet, if one is here.
    fn take(&self) -> Option<Plain<Update>> {
        queue(&self.ready).pop_front().map(Plain)
    }
}

fn queue(ready: &Mutex<VecDeque<Update>>) -> std::sync::MutexGuard<'_, VecDeque<Update>> {
    ready.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The JSON Schema of an update, which the package's types are generated from.
#[pyfunction]
pub(crate) fn update_schema() -> Plain<serde_json::Value> {
    Plain(schemars::schema_for!(Update).to_value())
}
