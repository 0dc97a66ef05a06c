//! How a running action calls the others: the handle that its context has.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::driver::Arrival;
use crate::action::{ActionSpec, Answered};
use crate::config::Config;
use crate::ids::{ActionId, Fence};

/// The other actions, as one attempt may call them.
///
/// Each call is an action of its own, `turn.step.n.m`: reviewed, recorded and settled as any is, whoever is still
/// there to hear of it. When the attempt comes to its end, what it has called and not heard of is cancelled, or runs
/// on without it to its receipt (`C-EFF-2`).
#[derive(Clone)]
pub struct Actions {
    config: Arc<Config>,
    caller: ActionId,
    fence: Fence,
    arrivals: mpsc::Sender<Arrival>,
}

/// The agent that would answer is gone, or was restored without the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent is gone; whether the call was made stands in its records")]
pub struct AgentGone;

/// A call on its way to the machine.
pub(super) struct Called {
    pub(super) caller: ActionId,
    pub(super) fence: Fence,
    pub(super) name: Arc<str>,
    pub(super) arguments: Arc<str>,
    pub(super) reply: oneshot::Sender<Answered>,
}

impl Actions {
    pub(super) fn new(
        config: Arc<Config>,
        caller: ActionId,
        fence: Fence,
        arrivals: mpsc::Sender<Arrival>,
    ) -> Self {
        Actions { config, caller, fence, arrivals }
    }

    /// What there is to be called, in the registry's order.
    pub fn specs(&self) -> impl Iterator<Item = &ActionSpec> {
        self.config.functions()
    }

    /// Calls an action by its name in the registry, and answers when its end is committed, or that the operator
    /// decides about it. What cannot be called is answered with why.
    ///
    /// # Cancel safety
    ///
    /// A call that was sent is made, also when the future is dropped.
    ///
    /// # Errors
    ///
    /// Fails when the agent ends before the call does.
    pub async fn call(&self, name: &str, arguments: Map<String, Value>) -> Result<Answered, AgentGone> {
        let arguments = Value::Object(arguments).to_string().into();
        let (reply, answer) = oneshot::channel();
        let (caller, fence) = (self.caller, self.fence);
        let called = Called { caller, fence, name: name.into(), arguments, reply };
        self.arrivals.send(Arrival::Called(Box::new(called))).await.map_err(|_| AgentGone)?;
        answer.await.map_err(|_| AgentGone)
    }
}
