//! The tool port: how an embedder gives an agent something to do.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::actions::Actions;
use super::store::Store;
use crate::action::{ActionSpec, Attempt, Class, FailureKind, Outcome, Resource, Role};
use crate::ids::{ActionId, AgentName};
use crate::model::ToolDefinition;
use crate::time::Timestamp;

/// One action that an agent can take, with typed arguments.
///
/// Its schema is derived once, from `Arguments`, and serves the model, the check of a call and the docs.
///
/// ```
/// use klbr_core::runtime::tool::{CallContext, Tool};
/// use klbr_core::action::{Class, Outcome};
///
/// /// Adds two numbers.
/// struct Add;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Numbers {
///     /// The first.
///     a: f64,
///     /// The second.
///     b: f64,
/// }
///
/// #[async_trait::async_trait]
/// impl Tool for Add {
///     type Arguments = Numbers;
///     const NAME: &'static str = "add";
///     const DESCRIPTION: &'static str = "Adds two numbers.";
///     const CLASS: Class = Class::Pure;
///
///     async fn call(&self, _: CallContext, numbers: Numbers) -> Outcome {
///         Outcome::confirmed((numbers.a + numbers.b).to_string())
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The arguments of a call; their doc comments are what the model reads.
    type Arguments: DeserializeOwned + JsonSchema + Send;

    /// The name that a call uses.
    const NAME: &'static str;

    /// What it does and when to use it, for the model.
    const DESCRIPTION: &'static str;

    /// What repeating it costs (`C-EFF-1`).
    const CLASS: Class;

    /// Whether dropping a running call stops it with everything that it started.
    const CANCELLABLE: bool = true;

    /// What it touches, so that two calls on one thing run in order.
    fn resource(&self) -> Resource {
        Resource::None
    }

    /// How long one call may take.
    fn deadline(&self) -> Duration {
        Duration::from_secs(120)
    }

    /// What a call is answered while the tool cannot be used. The tool stays in the list all the same: what the
    /// model was told of never changes under it.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Runs one call.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the call is cancelled or its deadline is over. A tool that declares itself
    /// cancellable then leaves nothing running behind.
    async fn call(&self, context: CallContext, arguments: Self::Arguments) -> Outcome;

    /// Finds out how an attempt ended that an earlier process made, where that can be found out.
    async fn reconcile(&self, context: CallContext, arguments: Self::Arguments) -> Outcome {
        let (_, _) = (context, arguments);
        lost()
    }
}

/// What an attempt comes to whose process ended, where nothing can be found out (`C-EFF-1`).
pub fn lost() -> Outcome {
    Outcome::unknown(
        "The process ended while this was under way. Whether it happened is not known: find out before \
         doing it again.",
    )
}

/// What a call knows about itself.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// The agent that asks.
    pub agent: AgentName,
    /// The action's id; the same for every attempt of it.
    pub action: ActionId,
    /// The attempt.
    pub attempt: Attempt,
    /// When the attempt began.
    pub at: Timestamp,
    /// The store that the agent lives in.
    pub store: Arc<dyn Store>,
    /// The other actions, as this attempt may call them.
    pub actions: Actions,
}

impl CallContext {
    pub(crate) fn new(
        agent: AgentName,
        attempt: Attempt,
        at: Timestamp,
        store: Arc<dyn Store>,
        actions: Actions,
    ) -> Self {
        CallContext { agent, action: attempt.action, attempt, at, store, actions }
    }
}

/// An action whose name and schema are known only at run time: a [`Tool`] whose argument type is no longer named,
/// or one that another language declares.
#[async_trait]
pub trait AnyTool: Send + Sync + 'static {
    /// The action as the registry has it. Asked once, before the agent starts.
    fn spec(&self) -> ActionSpec;

    /// Runs one call. Its arguments are an object, not yet checked against the schema.
    ///
    /// # Cancel safety
    ///
    /// As [`Tool::call`].
    async fn call(&self, context: CallContext) -> Outcome;

    /// Finds out how an attempt ended that an earlier process made.
    async fn reconcile(&self, context: CallContext) -> Outcome;
}

#[async_trait]
impl<T: Tool> AnyTool for T {
    fn spec(&self) -> ActionSpec {
        ActionSpec {
            tool: ToolDefinition {
                name: T::NAME.to_owned(),
                description: T::DESCRIPTION.to_owned(),
                parameters: schemars::schema_for!(T::Arguments).to_value(),
            },
            role: Role::Ordinary,
            class: T::CLASS,
            cancellable: T::CANCELLABLE,
            resource: Tool::resource(self),
            deadline: Tool::deadline(self),
        }
    }

    async fn call(&self, context: CallContext) -> Outcome {
        if let Some(text) = Tool::unavailable(self) {
            return Outcome::failed(FailureKind::NotRun, text);
        }
        match arguments(&context.attempt) {
            Ok(arguments) => Tool::call(self, context, arguments).await,
            Err(refusal) => refusal,
        }
    }

    async fn reconcile(&self, context: CallContext) -> Outcome {
        match arguments(&context.attempt) {
            Ok(arguments) => Tool::reconcile(self, context, arguments).await,
            Err(refusal) => refusal,
        }
    }
}

/// Reads an attempt's arguments, or refuses it with what is wrong and with what is expected.
pub fn arguments<A: DeserializeOwned>(attempt: &Attempt) -> Result<A, Outcome> {
    serde_json::from_str(&attempt.arguments).map_err(|error| {
        Outcome::failed(
            FailureKind::Invalid,
            format!("Not run: the arguments of {} are invalid: {error}.", attempt.name),
        )
    })
}
