//! The record that each invocation of a hook leaves: exactly one, whatever became of it.

use std::sync::Arc;
use std::time::Duration;

use klbr_core::hash::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::worker::{CallError, Kind};

/// One invocation of a hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// `module:function`.
    pub run: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// The slot, transform or record that it is bound to.
    pub name: Arc<str>,
    /// The epoch that it was asked in.
    pub epoch: u64,
    /// SHA-256 over the question's JSON.
    pub question: Hash,
    /// The answer's JSON, where there is one.
    pub answer: Option<Value>,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
    /// How long it had.
    pub deadline: Duration,
}

/// What became of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Its answer is valid.
    Answered,
    /// Its answer breaks an invariant.
    Invalid {
        /// Which, with file and line.
        reason: Arc<str>,
    },
    /// It raised.
    Raised {
        /// What, with file and line.
        reason: Arc<str>,
    },
    /// It did not answer in time.
    Deadline,
    /// It could not be asked, or its worker died under it.
    Unavailable {
        /// Why.
        reason: Arc<str>,
    },
    /// Nobody waits for the answer any more.
    Abandoned,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Answered => f.write_str("answered"),
            Outcome::Invalid { reason } => write!(f, "its answer is invalid: {reason}"),
            Outcome::Raised { reason } => write!(f, "it raised: {reason}"),
            Outcome::Deadline => f.write_str("no answer by the deadline"),
            Outcome::Unavailable { reason } => f.write_str(reason),
            Outcome::Abandoned => f.write_str("nobody waits for the answer any more"),
        }
    }
}

impl From<&CallError> for Outcome {
    fn from(error: &CallError) -> Self {
        use crate::protocol::HookErrorKind;
        match error {
            CallError::Deadline => Outcome::Deadline,
            CallError::Unavailable(reason) => Outcome::Unavailable { reason: reason.clone() },
            CallError::Failed(error) => {
                let reason = error.to_string().into();
                match error.kind {
                    HookErrorKind::WrongAnswer => Outcome::Invalid { reason },
                    HookErrorKind::Raised | HookErrorKind::Cancelled => Outcome::Raised { reason },
                }
            }
        }
    }
}

/// Takes the records. Called where the invocation ends: quick, and without waiting.
pub trait Recorder: Send + Sync + 'static {
    /// An invocation is over.
    fn record(&self, invocation: Invocation);
}

impl<F: Fn(Invocation) + Send + Sync + 'static> Recorder for F {
    fn record(&self, invocation: Invocation) {
        self(invocation);
    }
}

/// How far apart two timers of one deadline may be.
const TIMERS: Duration = Duration::from_millis(20);

/// An invocation under way. Dropping it records it as abandoned.
pub(crate) struct Open {
    invocation: Option<Invocation>,
    since: tokio::time::Instant,
    recorder: Arc<dyn Recorder>,
}

impl Open {
    pub(crate) fn new(
        recorder: &Arc<dyn Recorder>,
        (run, kind, name): (&Arc<str>, Kind, &Arc<str>),
        epoch: u64,
        body: &Value,
        deadline: Duration,
    ) -> Self {
        let bytes = serde_json::to_vec(body).expect("a JSON value has a JSON text");
        let invocation = Invocation {
            run: Arc::clone(run),
            kind,
            name: Arc::clone(name),
            epoch,
            question: Hash::of(&bytes),
            answer: None,
            outcome: Outcome::Abandoned,
            elapsed: Duration::ZERO,
            deadline,
        };
        let since = tokio::time::Instant::now();
        Open { invocation: Some(invocation), since, recorder: Arc::clone(recorder) }
    }

    pub(crate) fn close(mut self, outcome: Outcome, answer: Option<Value>) {
        self.finish(outcome, answer);
    }

    fn finish(&mut self, outcome: Outcome, answer: Option<Value>) {
        if let Some(mut invocation) = self.invocation.take() {
            invocation.outcome = outcome;
            invocation.answer = answer;
            invocation.elapsed = self.since.elapsed();
            self.recorder.record(invocation);
        }
    }
}

impl Drop for Open {
    /// Whoever asked waits no longer: because the time is over, by a timer that began a little earlier, or for another
    /// reason.
    fn drop(&mut self) {
        let Some(invocation) = &self.invocation else { return };
        let is_late = self.since.elapsed() + TIMERS >= invocation.deadline;
        self.finish(if is_late { Outcome::Deadline } else { Outcome::Abandoned }, None);
    }
}
