//! The policy port: who answers the slots that have an owner.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ids::Epoch;
use crate::policy::{Answer, Bindings, HookFailure, Question};

/// The owner of some slots.
#[async_trait]
pub trait Policy: Send + Sync + 'static {
    /// The slots it owns before any activation, and how long it may take for each.
    fn slots(&self) -> Bindings;

    /// Hears what is in force from now on: after each activation, and once when the agent begins anew.
    ///
    /// What an earlier epoch has under way is still asked under that epoch. Must not block.
    fn activated(&self, epoch: Epoch, manifest: Option<Arc<str>>) {
        let (_, _) = (epoch, manifest);
    }

    /// Answers a question of a slot that it owns, under the policy of an epoch.
    ///
    /// The deadline is the runtime's: the future is dropped when it is over. Nothing waits for it but the one
    /// operation it decides about.
    async fn decide(&self, epoch: Epoch, question: Question) -> Result<Answer, HookFailure>;
}
