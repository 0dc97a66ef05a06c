//! Tools that are Python functions: the Python half describes them, reads their arguments and shapes their answers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{ActionSpec, Class, FailureKind, Outcome, Resource, Role};
use klbr_core::model::ToolDefinition;
use klbr_core::runtime::tool::{AnyTool, CallContext, lost};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;

use crate::bridge::{Answer, EventLoop};

/// What the Python half says of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSpec {
    pub(crate) tool: ToolDefinition,
    pub(crate) class: Class,
    pub(crate) cancellable: bool,
    /// The argument that names what a call touches.
    pub(crate) resource: Option<String>,
    pub(crate) deadline_ms: u64,
}

impl ToolSpec {
    pub(crate) fn action(self, role: Role) -> ActionSpec {
        ActionSpec {
            tool: self.tool,
            role,
            class: self.class,
            cancellable: self.cancellable,
            resource: self.resource.map_or(Resource::None, |name| Resource::Argument(name.into())),
            deadline: Duration::from_millis(self.deadline_ms),
        }
    }
}

/// A tool whose calls are tasks on an event loop.
pub(crate) struct PyTool {
    pub(crate) spec: ActionSpec,
    pub(crate) event_loop: EventLoop,
    /// Takes the arguments as JSON and the action's id, answers with an outcome as JSON.
    pub(crate) function: Arc<Py<PyAny>>,
}

#[async_trait]
impl AnyTool for PyTool {
    fn spec(&self) -> ActionSpec {
        self.spec.clone()
    }

    async fn call(&self, context: CallContext) -> Outcome {
        let arguments = context.attempt.arguments.to_string();
        let action = context.action.to_string();
        let make = move |py: Python<'_>| Ok(PyTuple::new(py, [arguments, action])?.unbind());
        outcome(self.event_loop.call(self.function.clone(), Box::new(make)).await)
    }

    async fn reconcile(&self, _: CallContext) -> Outcome {
        lost()
    }
}

/// Reads the outcome that the Python half has written.
pub(crate) fn outcome(answer: Answer) -> Outcome {
    match answer {
        Ok(json) => serde_json::from_str(&json)
            .unwrap_or_else(|error| Outcome::unknown(format!("The answer could not be read: {error}."))),
        Err(raised) => Outcome::failed(FailureKind::Refused, format!("It failed: {raised}.")),
    }
}
