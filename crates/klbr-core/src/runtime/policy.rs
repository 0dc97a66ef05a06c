//! The policy port: who answers the slots that have an owner.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::policy::{Answer, HookFailure, Question, Slot};

/// The owner of some slots.
#[async_trait]
pub trait Policy: Send + Sync + 'static {
    /// The slots it owns, and how long it may take for each.
    fn slots(&self) -> BTreeMap<Slot, Duration>;

    /// Answers a question of a slot that it owns.
    ///
    /// The deadline is the runtime's: the future is dropped when it is over. Nothing waits for it but the one
    /// operation it decides about.
    async fn decide(&self, question: Question) -> Result<Answer, HookFailure>;
}
