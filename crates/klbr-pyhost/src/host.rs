//! What Python may ask of the host while it runs: the port behind reads of hooks and actions of cells.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::protocol::Offer;

/// Answers what a hook or a cell asks.
#[async_trait]
pub trait HostCalls: Send + Sync + 'static {
    /// What it offers. Asked once for each process.
    fn offers(&self) -> Vec<Offer>;

    /// Answers one call. Dropped when the caller is gone, so that an implementation that must not stop in the middle
    /// hands its work on.
    ///
    /// # Errors
    ///
    /// Fails with what the Python side raises as `HostError`.
    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError>;
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// `module:function` of the hook, or `cell`.
    pub who: Arc<str>,
    /// What the caller was told to say it belongs to, such as the action of a cell.
    pub owner: Arc<str>,
    /// The number of the call among its caller's, from 1: `action.n` of a cell.
    pub number: u64,
}

/// A call that the host refused or could not make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostCallError {
    /// One word for programs.
    pub code: &'static str,
    /// What to read.
    pub message: String,
}

/// A host that offers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

#[async_trait]
impl HostCalls for NoHost {
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    async fn call(&self, _: Caller, name: &str, _: Value) -> Result<Value, HostCallError> {
        Err(HostCallError { code: "unknown", message: format!("the host offers no {name}") })
    }
}
