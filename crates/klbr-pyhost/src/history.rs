//! The ways back through what was in force before, and when one is taken without being asked. Pure: no Python, no clock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::ids::Epoch;
use klbr_core::policy::{Activation, Cause, InForce};

/// There is no way back to there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWayBack {
    /// It was never recorded.
    #[error("there is no {0}")]
    Unknown(Epoch),
    /// Nothing else was ever in force.
    #[error("nothing else was in force before")]
    Nothing,
}

/// Everything that was put in force, the oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History<'a>(pub(crate) &'a [InForce]);

impl<'a> History<'a> {
    /// What is in force.
    pub(crate) fn current(self) -> &'a InForce {
        self.0.last().expect("an agent begins with something in force")
    }

    /// The activation whose policy holds in an epoch: replacing the soul keeps the policy.
    pub(crate) fn governing(self, epoch: Epoch) -> Option<&'a InForce> {
        let replaces_policy = |one: &&InForce| one.cause != Cause::Soul && one.epoch <= epoch;
        self.0.iter().rev().find(replaces_policy)
    }

    /// The soul that was in force in an epoch.
    fn soul(self, epoch: Epoch) -> Option<Arc<str>> {
        self.0.iter().rev().filter(|one| one.epoch <= epoch).find_map(|one| one.soul.clone())
    }

    /// What an operator goes back to who names no epoch: the newest that is something else, and that never failed.
    pub(crate) fn before(self) -> Result<Epoch, NoWayBack> {
        let current = self.current();
        let what = |one: &InForce| (one.manifest.clone(), self.soul(one.epoch));
        let sought = |one: &&InForce| what(one) != what(current) && !self.gave_up(one.epoch);
        self.0.iter().rev().find(sought).map(|one| one.epoch).ok_or(NoWayBack::Nothing)
    }

    /// The newest epoch of another policy than the one in force, and that never failed.
    fn before_failure(self) -> Option<Epoch> {
        let failed = self.current();
        let sought = |one: &&InForce| one.manifest != failed.manifest && !self.gave_up(one.epoch);
        self.0.iter().rev().find(sought).map(|one| one.epoch)
    }

    fn gave_up(self, epoch: Epoch) -> bool {
        let governing = self.governing(epoch).map(|one| one.epoch);
        self.0.iter().any(|one| matches!(one.cause, Cause::Failed { epoch, .. } if Some(epoch) == governing))
    }

    /// The activation that brings back what was in force in an epoch, its soul too.
    pub(crate) fn back_to(self, to: Epoch) -> Result<Activation, NoWayBack> {
        let earlier = self.0.iter().find(|one| one.epoch == to).ok_or(NoWayBack::Unknown(to))?;
        let soul = self.soul(to).filter(|soul| self.soul(self.current().epoch).as_ref() != Some(soul));
        Ok(Activation {
            manifest: earlier.manifest.clone(),
            slots: earlier.slots.clone(),
            soul,
            now: false,
            expected: None,
            cause: Cause::RolledBack { to },
        })
    }

    /// The activation that follows on a policy that has failed; none when it is not the one in force any more, or when
    /// there is no other.
    pub(crate) fn back_from(self, failed: Epoch, reason: Arc<str>) -> Option<Activation> {
        let current = self.current().epoch;
        if self.governing(current)?.epoch != failed {
            return None;
        }
        let to = self.before_failure()?;
        let cause = Cause::Failed { epoch: failed, to, reason };
        Some(Activation { cause, expected: Some(current), ..self.back_to(to).ok()? })
    }
}

/// When a policy has failed for good: so many deaths of its worker within so long.
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
    use klbr_core::time::Timestamp;

    use super::*;

    fn epoch(number: u64, manifest: Option<&str>, soul: Option<&str>, cause: Cause) -> InForce {
        InForce {
            epoch: Epoch(number),
            at: Timestamp(0),
            manifest: manifest.map(Into::into),
            slots: Default::default(),
            soul: soul.map(Into::into),
            cause,
        }
    }

    fn failed(epoch: u64, to: u64) -> Cause {
        Cause::Failed { epoch: Epoch(epoch), to: Epoch(to), reason: "it died".into() }
    }

    #[test]
    fn the_way_back_brings_the_soul_of_that_epoch_and_no_soul_that_is_there_anyway() {
        let list = [
            epoch(1, None, Some("built in"), Cause::First),
            epoch(2, Some("a"), None, Cause::Activated),
            epoch(3, Some("a"), Some("edited"), Cause::Soul),
            epoch(4, Some("b"), Some("of b"), Cause::Activated),
        ];
        let back = |to| History(&list).back_to(Epoch(to)).unwrap();
        assert_eq!((back(2).manifest.as_deref(), back(2).soul.as_deref()), (Some("a"), Some("built in")));
        assert_eq!((back(3).manifest.as_deref(), back(3).soul.as_deref()), (Some("a"), Some("edited")));
        assert_eq!((back(4).soul, back(4).cause), (None, Cause::RolledBack { to: Epoch(4) }));
        assert_eq!(History(&list).back_to(Epoch(9)), Err(NoWayBack::Unknown(Epoch(9))));
        assert_eq!(History(&list).governing(Epoch(3)).unwrap().epoch, Epoch(2));
        assert_eq!(History(&list).before(), Ok(Epoch(3)));
        assert_eq!(History(&list[..1]).before(), Err(NoWayBack::Nothing));
    }

    #[test]
    fn what_failed_is_never_the_way_back() {
        let mut list = vec![
            epoch(1, None, Some("s"), Cause::First),
            epoch(2, Some("good"), None, Cause::Activated),
            epoch(3, Some("bad"), None, Cause::Activated),
            epoch(4, Some("bad"), Some("edited meanwhile"), Cause::Soul),
        ];
        let back = History(&list).back_from(Epoch(3), "it died".into()).unwrap();
        assert_eq!((back.manifest.as_deref(), back.expected), (Some("good"), Some(Epoch(4))));
        assert_eq!(back.soul.as_deref(), Some("s"));
        list.push(epoch(5, Some("good"), None, failed(3, 2)));
        assert_eq!(History(&list).back_from(Epoch(3), "late".into()), None);
        list.push(epoch(6, Some("worse"), None, Cause::Activated));
        let back = History(&list).back_from(Epoch(6), "it died".into()).unwrap();
        assert_eq!(back.cause, Cause::Failed { epoch: Epoch(6), to: Epoch(5), reason: "it died".into() });
        assert_eq!(History(&list).before(), Ok(Epoch(5)));
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
