//! Slots that Python owns: the core's policy port over one worker. Owns the check of answers and the records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::policy::{Answer, Bindings, HookFailure, Question, Slot};
use klbr_core::runtime::policy::Policy;
use tokio::time::Instant;

use crate::invocation::{Open, Outcome, Recorder};
use crate::protocol::HookErrorKind;
use crate::worker::{Call, CallError, Kind, OnDeath, Worker};

/// Who owns a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotBinding {
    /// `module:function`.
    pub run: Arc<str>,
    /// How long it may take.
    pub deadline: Duration,
    /// Whether a question is asked again when the worker dies under it.
    pub on_death: OnDeath,
}

/// The slots of one epoch, answered by its worker.
pub struct HookPolicy {
    worker: Arc<Worker>,
    slots: BTreeMap<Slot, (SlotBinding, Arc<str>)>,
    recorder: Arc<dyn Recorder>,
}

impl HookPolicy {
    /// Binds slots to a worker that has their hooks.
    pub fn new(worker: Arc<Worker>, slots: BTreeMap<Slot, SlotBinding>, recorder: Arc<dyn Recorder>) -> Self {
        let slots =
            slots.into_iter().map(|(slot, binding)| (slot, (binding, slot.as_str().into()))).collect();
        HookPolicy { worker, slots, recorder }
    }

    /// The worker behind it.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Who owns which slot.
    pub fn bindings(&self) -> impl Iterator<Item = (Slot, &SlotBinding)> {
        self.slots.iter().map(|(slot, (binding, _))| (*slot, binding))
    }

    /// As [`Policy::decide`], with a deadline of the whole operation besides the slot's own.
    ///
    /// # Errors
    ///
    /// Fails as the hook failed.
    pub async fn decide_by(&self, question: Question, operation: Instant) -> Result<Answer, HookFailure> {
        let unavailable = |reason: Arc<str>| HookFailure::Unavailable { reason };
        let Some((binding, name)) = self.slots.get(&question.slot()) else {
            return Err(unavailable("nobody owns the slot".into()));
        };
        let started = Instant::now();
        let deadline = operation.min(started + binding.deadline);
        let body = serde_json::to_value(&question).expect("a question has only string keys");
        let open = Open::new(
            &self.recorder,
            (&binding.run, Kind::Slot, name),
            self.worker.epoch(),
            &body,
            deadline - started,
        );
        let call = Call { run: binding.run.clone(), body, deadline, on_death: binding.on_death };
        match self.worker.call(call).await {
            Ok(value) => match checked(&question, &value) {
                Ok(answer) => {
                    open.close(Outcome::Answered, Some(value));
                    Ok(answer)
                }
                Err(reason) => {
                    let reason: Arc<str> = format!("{}: {reason}", binding.run).into();
                    open.close(Outcome::Invalid { reason: reason.clone() }, Some(value));
                    Err(HookFailure::Invalid { reason })
                }
            },
            Err(error) => {
                open.close(Outcome::from(&error), None);
                Err(match error {
                    CallError::Deadline => HookFailure::Deadline,
                    CallError::Unavailable(reason) => unavailable(reason),
                    CallError::Failed(error) => {
                        let reason = format!("{}: {error}", binding.run).into();
                        match error.kind {
                            HookErrorKind::WrongAnswer => HookFailure::Invalid { reason },
                            HookErrorKind::Raised | HookErrorKind::Cancelled => unavailable(reason),
                        }
                    }
                })
            }
        }
    }
}

/// No deadline of an operation is further away.
pub(crate) const FAR: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer, if it is one that this question can have.
fn checked(question: &Question, value: &serde_json::Value) -> Result<Answer, String> {
    let answer: Answer = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    question.check(&answer)?;
    Ok(answer)
}

#[async_trait]
impl Policy for HookPolicy {
    fn slots(&self) -> Bindings {
        self.slots.iter().map(|(slot, (binding, _))| (*slot, binding.deadline)).collect()
    }

    /// Answers under the epoch of its own worker, whichever is asked for.
    async fn decide(&self, _: klbr_core::ids::Epoch, question: Question) -> Result<Answer, HookFailure> {
        self.decide_by(question, Instant::now() + FAR).await
    }
}
