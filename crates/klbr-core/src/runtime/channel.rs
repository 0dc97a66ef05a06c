//! The channel port: how an agent speaks somewhere. Hearing is admission, and needs no port.

use async_trait::async_trait;

use crate::action::{ActionSpec, Delivery, Outcome};

pub use crate::config::ChannelSettings;

/// A place where an agent can speak.
///
/// A [`Delivery`] can only be built by the core, from a call of the channel's own delivery action: whatever
/// else the model writes cannot reach a channel (`B-SPEECH-1`).
#[async_trait]
pub trait Channel: Send + Sync + 'static {
    /// The channel's instance name, as the sources of its events have it.
    fn instance(&self) -> &str;

    /// What the core is told of it. Asked once, before the agent starts.
    fn settings(&self) -> ChannelSettings {
        ChannelSettings::default()
    }

    /// The action that speaks. Its role names this channel.
    fn delivery_action(&self) -> ActionSpec;

    /// The action that decides about what people said here, if the agent is to have one
    /// ([`mark_tool`](crate::attention::mark_tool)). The core runs it.
    fn mark_action(&self) -> Option<ActionSpec> {
        None
    }

    /// Says something, and answers with a receipt.
    ///
    /// Runs to its end also when the turn is preempted, unless the action is declared cancellable; bounded
    /// by the action's deadline.
    async fn deliver(&self, delivery: Delivery) -> Outcome;

    /// Finds out whether something that an earlier process began to say was said (`C-EFF-5`).
    async fn reconcile(&self, delivery: Delivery) -> Outcome {
        let _ = delivery;
        Outcome::unknown("The process ended while this was being sent. Whether it was sent is not known.")
    }
}
