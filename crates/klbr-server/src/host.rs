//! One hosted agent: how far it is, for everyone who asks.

use std::sync::{Arc, OnceLock};

use klbr_core::ids::AgentName;
use klbr_core::runtime::AgentHandle;
use klbr_discord::Discord;
use tokio::sync::watch;

use crate::api::{ChannelStatus, ModelStatus, Models, State};
use crate::daemon::StartError;
use crate::metrics::Metrics;
use crate::model::LateModel;
use crate::python::Python;

/// How far an agent is.
#[derive(Clone)]
pub(crate) enum Slot {
    Starting,
    Ready(AgentHandle),
    Stopping,
    Failed(Arc<StartError>),
}

/// Which model an agent was given.
#[derive(Clone)]
pub(crate) enum Given {
    /// A server, found at the latest when it is needed.
    Late(LateModel),
    /// The host's own, by this name.
    BuiltIn(Arc<str>),
}

/// A hosted agent.
pub(crate) struct Hosted {
    pub(crate) name: AgentName,
    pub(crate) model: Given,
    pub(crate) metrics: Metrics,
    /// Discord, once the agent is there.
    pub(crate) discord: OnceLock<Discord>,
    /// Python, once the agent is there and unless it is switched off.
    pub(crate) python: OnceLock<Python>,
    channel: watch::Sender<Option<ChannelStatus>>,
    slot: watch::Sender<Slot>,
}

impl Hosted {
    pub(crate) fn new(name: AgentName, model: Given) -> Self {
        Hosted {
            name,
            model,
            metrics: Metrics::default(),
            discord: OnceLock::new(),
            python: OnceLock::new(),
            channel: watch::Sender::new(None),
            slot: watch::Sender::new(Slot::Starting),
        }
    }

    pub(crate) fn set(&self, slot: Slot) {
        self.slot.send_replace(slot);
    }

    pub(crate) fn set_channel(&self, status: ChannelStatus) {
        self.channel.send_replace(Some(status));
    }

    pub(crate) fn channel(&self) -> Option<ChannelStatus> {
        self.channel.borrow().clone()
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot.borrow().clone()
    }

    /// Returns when it has left the state of starting.
    pub(crate) async fn settled(&self) -> Slot {
        let mut slots = self.slot.subscribe();
        let settled = slots.wait_for(|slot| !matches!(slot, Slot::Starting)).await;
        // The sender is this very value: it cannot be gone.
        settled.map_or(Slot::Stopping, |slot| slot.clone())
    }

    /// Returns when it has failed.
    pub(crate) async fn failed(&self) -> Arc<StartError> {
        let mut slots = self.slot.subscribe();
        let failed = slots.wait_for(|slot| matches!(slot, Slot::Failed(_))).await;
        match failed.as_deref() {
            Ok(Slot::Failed(error)) => error.clone(),
            // The sender is this very value: it cannot be gone.
            Ok(_) | Err(_) => Arc::new(StartError::Ended),
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.slot() {
            Slot::Starting => State::Starting,
            Slot::Ready(_) => State::Ready,
            Slot::Stopping => State::Stopping,
            Slot::Failed(error) => State::Failed { why: crate::daemon::whole_story(&*error) },
        }
    }

    pub(crate) fn model_status(&self) -> ModelStatus {
        match &self.model {
            Given::Late(model) => model.status(),
            Given::BuiltIn(name) => ModelStatus::BuiltIn { model: name.to_string() },
        }
    }

    pub(crate) async fn models(&self) -> Models {
        match &self.model {
            Given::Late(model) => model.offered().await,
            Given::BuiltIn(_) => Models { servers: Vec::new(), in_use: self.model_status() },
        }
    }
}
