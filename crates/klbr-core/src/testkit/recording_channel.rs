//! A channel that keeps what is said.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::action::{ActionSpec, Class, Delivery, Outcome, Resource, Role};
use crate::model::ToolDefinition;
use crate::runtime::channel::Channel;

/// A channel that keeps every delivery's arguments, in order. Clones share what they keep.
#[derive(Clone, Debug)]
pub struct RecordingChannel {
    instance: Arc<str>,
    said: Arc<Mutex<Vec<Arc<str>>>>,
}

impl RecordingChannel {
    /// A channel of this instance name; its action is `<instance>_send`.
    pub fn new(instance: &str) -> Self {
        RecordingChannel { instance: instance.into(), said: Arc::default() }
    }

    /// What was said so far: the arguments of each delivery.
    pub fn said(&self) -> Vec<Arc<str>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Channel for RecordingChannel {
    fn instance(&self) -> &str {
        &self.instance
    }

    fn delivery_action(&self) -> ActionSpec {
        ActionSpec {
            tool: ToolDefinition {
                name: format!("{}_send", self.instance),
                description: "Says something there.".to_owned(),
                parameters: serde_json::json!({
                    "type": "object",
                    "properties": { "content": { "type": "string" } },
                    "required": ["content"],
                }),
            },
            role: Role::Delivery { channel: self.instance.clone() },
            class: Class::Irreversible,
            cancellable: false,
            resource: Resource::None,
            deadline: Duration::from_secs(10),
        }
    }

    async fn deliver(&self, delivery: Delivery) -> Outcome {
        let arguments = delivery.attempt().arguments.clone();
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(arguments);
        Outcome::confirmed("Sent.")
    }
}
