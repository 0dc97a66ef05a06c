//! What was put in force so far: the history that a way back is chosen from.

use std::sync::Arc;

use super::State;
use crate::policy::{Cause, InForce};
use crate::time::Timestamp;

impl State {
    /// Takes down what is in force from here on.
    pub(super) fn put_in_force(&mut self, at: Timestamp, soul: Option<Arc<str>>, cause: Cause) {
        let bound = self.bound.as_deref().into_iter().flatten();
        let slots = bound.map(|(slot, time)| (*slot, time.as_millis() as u64)).collect();
        let (epoch, manifest) = (self.epoch, self.manifest.clone());
        self.epochs.push(InForce { epoch, at, manifest, slots, soul, cause });
    }
}
