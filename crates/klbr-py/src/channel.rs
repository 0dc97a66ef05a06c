//! Channels that are Python objects: one method delivers, another finds out what an earlier process delivered.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{ActionSpec, Delivery, Outcome, Role};
use klbr_core::attention::mark_tool;
use klbr_core::runtime::channel::{Channel, ChannelSettings};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;
use serde_json::json;

use crate::bridge::EventLoop;
use crate::tool::{ToolSpec, outcome};

/// What the Python half says of a channel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelSpec {
    pub(crate) instance: String,
    alias_prefix: Option<String>,
    instructions: Option<String>,
    batch_delay_ms: Option<u64>,
    wakes_on_ambient: Option<bool>,
    delivery: ToolSpec,
    /// The name of the action that decides about people's messages, if there is to be one.
    mark: Option<String>,
}

/// A channel whose deliveries are tasks on an event loop.
pub(crate) struct PyChannel {
    instance: String,
    settings: ChannelSettings,
    delivery: ActionSpec,
    mark: Option<ActionSpec>,
    event_loop: EventLoop,
    /// Both take a delivery as JSON, and answer with an outcome as JSON.
    deliver: Arc<Py<PyAny>>,
    reconcile: Option<Arc<Py<PyAny>>>,
}

impl PyChannel {
    pub(crate) fn new(
        spec: ChannelSpec,
        event_loop: EventLoop,
        deliver: Py<PyAny>,
        reconcile: Option<Py<PyAny>>,
    ) -> Self {
        let usual = ChannelSettings::default();
        PyChannel {
            settings: ChannelSettings {
                alias_prefix: spec.alias_prefix.map_or(usual.alias_prefix, Into::into),
                instructions: spec.instructions.map(Into::into),
                batch_delay: spec.batch_delay_ms.map_or(usual.batch_delay, Duration::from_millis),
                wakes_on_ambient: spec.wakes_on_ambient.unwrap_or(usual.wakes_on_ambient),
                pending_timeout: usual.pending_timeout,
            },
            delivery: spec.delivery.action(Role::Delivery { channel: spec.instance.as_str().into() }),
            mark: spec.mark.map(|name| mark_tool(&name, &spec.instance)),
            instance: spec.instance,
            event_loop,
            deliver: Arc::new(deliver),
            reconcile: reconcile.map(Arc::new),
        }
    }

    async fn call(&self, function: &Arc<Py<PyAny>>, delivery: &Delivery) -> Outcome {
        let attempt = delivery.attempt();
        let told = json!({
            "action": attempt.action.to_string(),
            "attempt": attempt.number,
            "arguments": &*attempt.arguments,
            "destination": attempt.frame.destination,
            "anchors": attempt.frame.anchors,
            "conversations": attempt.conversations,
            "first_attempted": delivery.first_attempted(),
        });
        let told = told.to_string();
        let make = move |py: Python<'_>| Ok(PyTuple::new(py, [told])?.unbind());
        outcome(self.event_loop.call(function.clone(), Box::new(make)).await)
    }
}

#[async_trait]
impl Channel for PyChannel {
    fn instance(&self) -> &str {
        &self.instance
    }

    fn settings(&self) -> ChannelSettings {
        self.settings.clone()
    }

    fn delivery_action(&self) -> ActionSpec {
        self.delivery.clone()
    }

    fn mark_action(&self) -> Option<ActionSpec> {
        self.mark.clone()
    }

    async fn deliver(&self, delivery: Delivery) -> Outcome {
        self.call(&self.deliver, &delivery).await
    }

    async fn reconcile(&self, delivery: Delivery) -> Outcome {
        match &self.reconcile {
            Some(reconcile) => self.call(reconcile, &delivery).await,
            None => Outcome::unknown(
                "The process ended while this was being sent. Whether it was sent is not known.",
            ),
        }
    }
}
