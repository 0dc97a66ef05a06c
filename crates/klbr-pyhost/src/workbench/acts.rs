//! The actions that one cell calls, in their order, with what became of each.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::{Caller, HostCallError, HostCalls};
use crate::protocol::Offer;

/// One action that a cell called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// Its number in the cell, from 1.
    pub number: u64,
    /// Its name.
    pub name: Arc<str>,
    /// What became of it, as far as the cell's end knows.
    pub state: ActState,
}

/// What became of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActState {
    /// The cell ended before it did: its receipt tells.
    Open,
    /// It was answered.
    Done,
    /// It was refused, or failed.
    Failed,
}

/// The host as cells see it, remembering what they asked.
pub(super) struct Acts {
    host: Arc<dyn HostCalls>,
    list: Mutex<Vec<Acted>>,
}

impl Acts {
    pub(super) fn new(host: Arc<dyn HostCalls>) -> Self {
        Acts { host, list: Mutex::default() }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Acted>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) {
        self.list().clear();
    }

    pub(super) fn finish(&self) -> Vec<Acted> {
        std::mem::take(&mut *self.list())
    }

    fn set(&self, number: u64, state: ActState) {
        if let Some(act) = self.list().iter_mut().find(|act| act.number == number) {
            act.state = state;
        }
    }
}

#[async_trait]
impl HostCalls for Acts {
    fn offers(&self) -> Vec<Offer> {
        self.host.offers()
    }

    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError> {
        let number = caller.number;
        self.list().push(Acted { number, name: name.into(), state: ActState::Open });
        let result = self.host.call(caller, name, arguments).await;
        let is_done = |value: &Value| value.get("code").is_none_or(|code| code == "confirmed");
        self.set(number, if result.as_ref().is_ok_and(is_done) { ActState::Done } else { ActState::Failed });
        result
    }
}
