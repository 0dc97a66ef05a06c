//! The operator's own channel: what is delivered there is the committed receipt itself.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::channel::Channel;
use super::tool::arguments;
use crate::action::{ActionSpec, Class, Delivery, FailureKind, Outcome, Resource, Role};
use crate::model::ToolDefinition;

/// The instance name of the operator's channel.
pub const LOCAL: &str = "local";

/// The longest message, in characters.
const MAX_CHARACTERS: usize = 100_000;

/// Speaks to the operator.
///
/// The operator's clients read deliveries from the agent's committed updates, so that one is never shown
/// without its receipt nor shown twice, and is still there for a client that was not attached.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalChannel;

#[derive(Deserialize, JsonSchema)]
struct LocalSend {
    /// What to say to your operator.
    content: String,
}

#[async_trait]
impl Channel for LocalChannel {
    fn instance(&self) -> &str {
        LOCAL
    }

    fn delivery_action(&self) -> ActionSpec {
        ActionSpec {
            tool: ToolDefinition {
                name: "local_send".to_owned(),
                description: "Says something to your operator. This is the only way to speak to them."
                    .to_owned(),
                parameters: schemars::schema_for!(LocalSend).to_value(),
            },
            role: Role::Delivery { channel: LOCAL.into() },
            // Nobody sees it before its receipt is committed, so that a repeat repeats nothing.
            class: Class::Idempotent,
            cancellable: false,
            resource: Resource::Named(LOCAL.into()),
            deadline: Duration::from_secs(10),
        }
    }

    async fn deliver(&self, delivery: Delivery) -> Outcome {
        let LocalSend { content } = match arguments(delivery.attempt()) {
            Ok(arguments) => arguments,
            Err(refusal) => return refusal,
        };
        if content.trim().is_empty() {
            return Outcome::failed(FailureKind::Invalid, "Not sent: the content is empty.");
        }
        match content.chars().count() {
            length if length > MAX_CHARACTERS => Outcome::failed(
                FailureKind::Invalid,
                format!(
                    "Not sent: {length} characters are more than the {MAX_CHARACTERS} that one message takes."
                ),
            ),
            _ => Outcome::confirmed("Sent."),
        }
    }

    async fn reconcile(&self, delivery: Delivery) -> Outcome {
        self.deliver(delivery).await
    }
}
