//! Epochs: the numbered history of what was in force. Pure: no Python, no clock, no disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;

/// One activation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number; they only go up.
    pub number: u64,
    /// What it puts in force.
    pub manifest: Arc<Manifest>,
    /// Why it came.
    pub cause: Cause,
}

/// Why an epoch came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// Somebody activated a manifest.
    Activated,
    /// Somebody went back to an earlier epoch.
    RolledBack {
        /// Which.
        to: u64,
    },
    /// The worker of an epoch kept failing, and the epoch before it came back by itself.
    Failed {
        /// The epoch that failed.
        epoch: u64,
        /// The epoch that came back.
        to: u64,
        /// How its worker failed last.
        reason: Arc<str>,
    },
}

/// Why there is no new epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochError {
    /// Another one came first.
    #[error("epoch {current} is in force, not {expected}: look at what it changed, then try again")]
    Superseded {
        /// What the caller took to be in force.
        expected: u64,
        /// What is.
        current: u64,
    },
    /// It was never recorded.
    #[error("there is no epoch {0}")]
    Unknown(u64),
}

/// All epochs of an agent. The first is 0: the built-in defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epochs {
    list: Vec<Epoch>,
}

impl Default for Epochs {
    fn default() -> Self {
        Epochs { list: vec![Epoch { number: 0, manifest: Arc::default(), cause: Cause::Activated }] }
    }
}

impl Epochs {
    /// The history that the records tell. Those after the first, in their order.
    pub fn restore(recorded: impl IntoIterator<Item = Epoch>) -> Self {
        let mut epochs = Epochs::default();
        epochs.list.extend(recorded);
        epochs
    }

    /// The one in force.
    pub fn current(&self) -> &Epoch {
        self.list.last().expect("epoch 0 is always there")
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> &[Epoch] {
        &self.list
    }

    /// The epoch that a manifest would begin.
    ///
    /// # Errors
    ///
    /// Fails when `expected` is not in force any more.
    pub fn next(&self, expected: u64, manifest: Manifest) -> Result<Epoch, EpochError> {
        let current = self.current().number;
        if current != expected {
            return Err(EpochError::Superseded { expected, current });
        }
        Ok(Epoch { number: current + 1, manifest: Arc::new(manifest), cause: Cause::Activated })
    }

    /// The epoch in which an earlier one comes back.
    ///
    /// # Errors
    ///
    /// Fails when there was none of that number.
    pub fn back_to(&self, to: u64) -> Result<Epoch, EpochError> {
        let earlier = self.list.iter().find(|epoch| epoch.number == to).ok_or(EpochError::Unknown(to))?;
        let manifest = Arc::clone(&earlier.manifest);
        Ok(Epoch { number: self.current().number + 1, manifest, cause: Cause::RolledBack { to } })
    }

    /// The epoch in which the last other manifest comes back, because the current one fails; `None` when there is none.
    pub fn back_from_failure(&self, reason: Arc<str>) -> Option<Epoch> {
        let failed = self.current();
        // What failed before it is no way back either.
        let gave_up: Vec<u64> = self
            .list
            .iter()
            .filter_map(|epoch| match epoch.cause {
                Cause::Failed { epoch, .. } => Some(epoch),
                Cause::Activated | Cause::RolledBack { .. } => None,
            })
            .collect();
        let earlier = self
            .list
            .iter()
            .rev()
            .find(|epoch| epoch.manifest != failed.manifest && !gave_up.contains(&epoch.number))?;
        let cause = Cause::Failed { epoch: failed.number, to: earlier.number, reason };
        Some(Epoch { number: failed.number + 1, manifest: Arc::clone(&earlier.manifest), cause })
    }

    /// Takes an epoch that was recorded.
    pub fn push(&mut self, epoch: Epoch) {
        debug_assert_eq!(epoch.number, self.current().number + 1);
        self.list.push(epoch);
    }
}

/// When a candidate has failed for good: so many deaths of its worker within so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probation {
    /// How many deaths.
    pub deaths: usize,
    /// Within how long.
    pub within: Duration,
}

impl Default for Probation {
    fn default() -> Self {
        Probation { deaths: 3, within: Duration::from_secs(60) }
    }
}

/// The deaths of one epoch's worker.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    at: VecDeque<Duration>,
}

impl Deaths {
    /// Notes one, at a time since any fixed instant; answers whether the epoch has failed.
    pub(crate) fn note(&mut self, now: Duration, probation: Probation) -> bool {
        self.at.push_back(now);
        while self.at.front().is_some_and(|first| now.saturating_sub(*first) > probation.within) {
            self.at.pop_front();
        }
        self.at.len() >= probation.deaths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(soul: &str) -> Manifest {
        Manifest { soul: Some(soul.into()), ..Manifest::default() }
    }

    #[test]
    fn numbers_go_up_also_on_the_way_back() {
        let mut epochs = Epochs::default();
        for soul in ["a", "b"] {
            let next = epochs.next(epochs.current().number, manifest(soul)).unwrap();
            epochs.push(next);
        }
        let back = epochs.back_to(1).unwrap();
        assert_eq!((back.number, back.manifest.soul.as_deref()), (3, Some("a")));
        epochs.push(back);
        assert_eq!(epochs.next(2, manifest("c")), Err(EpochError::Superseded { expected: 2, current: 3 }));
        assert_eq!(epochs.back_to(9), Err(EpochError::Unknown(9)));
    }

    #[test]
    fn what_failed_is_never_the_way_back() {
        let mut epochs = Epochs::default();
        for soul in ["good", "bad", "worse"] {
            epochs.push(epochs.next(epochs.current().number, manifest(soul)).unwrap());
            if soul != "good" {
                epochs.push(epochs.back_from_failure("it died".into()).unwrap());
                assert_eq!(epochs.current().manifest.soul.as_deref(), Some("good"));
            }
        }
        assert_eq!(epochs.current().number, 5);
    }

    #[test]
    fn deaths_count_only_within_their_time() {
        let probation = Probation { deaths: 3, within: Duration::from_secs(10) };
        let mut deaths = Deaths::default();
        let verdicts: Vec<bool> =
            [0, 5, 11, 14].map(|at| deaths.note(Duration::from_secs(at), probation)).to_vec();
        assert_eq!(verdicts, [false, false, false, true]);
    }
}
