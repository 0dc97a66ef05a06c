//! Policy: every decision that an owner may replace, as a typed question with a typed answer.
//!
//! Owns the slots, their built-in defaults and the check of an answer against the domain's invariants.
//! Refuses to wait: the core asks by a command and goes on by an input.

mod nudge;
mod observer;
mod question;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Priority;
use crate::ids::{Epoch, EventId};
use crate::time::Timestamp;

pub(crate) use nudge::nudge_text;
pub use nudge::{NudgeKind, idle_delay};
pub use observer::{Heard, HostCommand, Observed};
pub use question::{Candidate, Question, Review};

/// One replaceable decision. A slot has one owner at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Slot {
    /// How urgent an admitted event is, before it is shown. Never asked of Operator or Control.
    #[serde(rename = "event.priority")]
    EventPriority,
    /// Whether an admitted event is kept at all. Never asked of Operator or Control.
    #[serde(rename = "event.accept")]
    EventAccept,
    /// Whether a batch of ambient events wakes the agent.
    #[serde(rename = "attention.wake")]
    Wake,
    /// How long ambient events are gathered before that question.
    #[serde(rename = "attention.batch_delay")]
    BatchDelay,
    /// Whether an attention item that was shown long enough stops waiting for a decision.
    #[serde(rename = "attention.age")]
    Age,
    /// How a frame reads.
    #[serde(rename = "frame.render")]
    FrameRender,
    /// When an agent that yielded without a wait is woken.
    #[serde(rename = "turn.idle")]
    Idle,
    /// What a nudge says, or that it is not made.
    #[serde(rename = "turn.nudge")]
    Nudge,
    /// How many steps a turn that has reached its limit may have.
    #[serde(rename = "turn.limits")]
    Limits,
    /// What a new prefix says.
    #[serde(rename = "context.blocks")]
    ContextBlocks,
    /// Which of the events that the next frame could show it shows; the rest waits.
    #[serde(rename = "context.select")]
    ContextSelect,
    /// Which model and effort a turn uses.
    #[serde(rename = "model.plan")]
    Plan,
    /// Whether an action that speaks to nobody may run. Required when bound.
    #[serde(rename = "action.review")]
    ActionReview,
    /// Whether a delivery may be made. Required when bound.
    #[serde(rename = "delivery.review")]
    DeliveryReview,
    /// How a delivery is worded: its arguments, rewritten.
    #[serde(rename = "delivery.format")]
    DeliveryFormat,
    /// Where a delivery of a turn goes that names no destination.
    #[serde(rename = "delivery.target")]
    DeliveryTarget,
    /// How an action's result is worded when it is inserted. The whole text is kept beside it.
    #[serde(rename = "result.shape")]
    ResultShape,
    /// Whether the conversation is summarised now.
    #[serde(rename = "compact.when")]
    CompactWhen,
    /// What the request for a summary says.
    #[serde(rename = "compact.prompt")]
    CompactPrompt,
    /// How many of the newest turns stay word for word behind a summary.
    #[serde(rename = "compact.keep")]
    CompactKeep,
}

impl Slot {
    /// The slot's name, `family.verb`.
    pub fn as_str(self) -> &'static str {
        match self {
            Slot::EventPriority => "event.priority",
            Slot::EventAccept => "event.accept",
            Slot::Wake => "attention.wake",
            Slot::BatchDelay => "attention.batch_delay",
            Slot::Age => "attention.age",
            Slot::FrameRender => "frame.render",
            Slot::Idle => "turn.idle",
            Slot::Nudge => "turn.nudge",
            Slot::Limits => "turn.limits",
            Slot::ContextBlocks => "context.blocks",
            Slot::ContextSelect => "context.select",
            Slot::Plan => "model.plan",
            Slot::ActionReview => "action.review",
            Slot::DeliveryReview => "delivery.review",
            Slot::DeliveryFormat => "delivery.format",
            Slot::DeliveryTarget => "delivery.target",
            Slot::ResultShape => "result.shape",
            Slot::CompactWhen => "compact.when",
            Slot::CompactPrompt => "compact.prompt",
            Slot::CompactKeep => "compact.keep",
        }
    }

    /// Whether it is asked for a turn, which keeps the epoch that it began with.
    pub(crate) fn is_of_a_turn(self) -> bool {
        match self {
            Slot::EventPriority
            | Slot::EventAccept
            | Slot::Wake
            | Slot::BatchDelay
            | Slot::Age
            | Slot::Idle => false,
            Slot::FrameRender
            | Slot::ContextBlocks
            | Slot::ContextSelect
            | Slot::Nudge
            | Slot::Limits
            | Slot::Plan
            | Slot::ActionReview
            | Slot::DeliveryReview
            | Slot::DeliveryFormat
            | Slot::DeliveryTarget
            | Slot::ResultShape
            | Slot::CompactWhen
            | Slot::CompactPrompt
            | Slot::CompactKeep => true,
        }
    }

    /// Whether its question carries a text that the answer words anew: what a family of rewrites may own together.
    pub fn is_rewrite(self) -> bool {
        match self {
            Slot::FrameRender | Slot::ContextBlocks | Slot::DeliveryFormat | Slot::ResultShape => true,
            Slot::EventPriority
            | Slot::EventAccept
            | Slot::Wake
            | Slot::BatchDelay
            | Slot::Age
            | Slot::Idle
            | Slot::Nudge
            | Slot::Limits
            | Slot::Plan
            | Slot::ContextSelect
            | Slot::ActionReview
            | Slot::DeliveryReview
            | Slot::DeliveryTarget
            | Slot::CompactWhen
            | Slot::CompactPrompt
            | Slot::CompactKeep => false,
        }
    }

    /// Whether the operation is held, rather than decided by default, when the slot's owner fails.
    pub fn is_required(self) -> bool {
        match self {
            Slot::ActionReview | Slot::DeliveryReview => true,
            Slot::EventPriority
            | Slot::EventAccept
            | Slot::Wake
            | Slot::BatchDelay
            | Slot::Age
            | Slot::FrameRender
            | Slot::ContextBlocks
            | Slot::ContextSelect
            | Slot::Idle
            | Slot::Nudge
            | Slot::Limits
            | Slot::Plan
            | Slot::DeliveryFormat
            | Slot::DeliveryTarget
            | Slot::ResultShape
            | Slot::CompactWhen
            | Slot::CompactPrompt
            | Slot::CompactKeep => false,
        }
    }
}

/// What a slot answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", content = "value", rename_all = "snake_case")]
pub enum Answer {
    /// A priority.
    Priority(Priority),
    /// Yes or no.
    Yes(bool),
    /// A number.
    Count(u32),
    /// Some of the events that the question names.
    Events(Vec<EventId>),
    /// A delay.
    Delay {
        /// In milliseconds.
        millis: u64,
    },
    /// A text, or that there is to be none.
    Text(Option<Arc<str>>),
    /// A model and an effort.
    Plan {
        /// The model's name at its provider.
        model: Arc<str>,
        /// The effort level.
        effort: Option<Arc<str>>,
    },
    /// A judgement.
    Verdict(Verdict),
}

/// The slots that have an owner, with the time that each may take.
pub type Bindings = BTreeMap<Slot, Duration>;

/// What an owner puts in force together: a new epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activation {
    /// What names the policy to whoever answers its questions: the hash of its manifest. With none, no slot
    /// has an owner.
    #[serde(default)]
    pub manifest: Option<Arc<str>>,
    /// The slots that it binds, with the milliseconds that each may take.
    #[serde(default)]
    pub slots: BTreeMap<Slot, u64>,
    /// The soul from here on; the same as before when it is left out.
    #[serde(default)]
    pub soul: Option<Arc<str>>,
    /// Whether it ends the running turn instead of waiting for the next.
    #[serde(default)]
    pub now: bool,
    /// The epoch that it follows on; it is dropped when another one is in force by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Epoch>,
    /// Why it comes.
    #[serde(default)]
    pub cause: Cause,
}

/// Why an epoch came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// The agent began with it.
    First,
    /// Somebody put it in force.
    #[default]
    Activated,
    /// The operator replaced the soul alone.
    Soul,
    /// Somebody went back to what was in force in an earlier epoch.
    RolledBack {
        /// Which.
        to: Epoch,
    },
    /// The policy of an epoch kept failing, and an earlier one came back by itself.
    Failed {
        /// The epoch that failed.
        epoch: Epoch,
        /// The epoch that came back.
        to: Epoch,
        /// How it failed last.
        reason: Arc<str>,
    },
}

/// What was put in force together, and is in force until the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// Its number.
    pub epoch: Epoch,
    /// Since when, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// What names the policy.
    pub manifest: Option<Arc<str>>,
    /// The slots that have an owner, with the milliseconds that each may take.
    pub slots: BTreeMap<Slot, u64>,
    /// The whole soul, where this epoch replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soul: Option<Arc<str>>,
    /// Why it came.
    pub cause: Cause,
}

impl Activation {
    /// The slots with the time that each may take.
    pub fn bindings(&self) -> Bindings {
        self.slots.iter().map(|(&slot, &millis)| (slot, Duration::from_millis(millis))).collect()
    }
}

/// A question that was decided, and what was in force: its owner's answer, or the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The question.
    pub question: Question,
    /// The answer.
    pub answer: Answer,
}

/// A judgement over one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It must not run.
    Deny {
        /// Why, for the model and the operator.
        reason: Arc<str>,
    },
    /// The operator decides.
    Hold {
        /// Why, for the model and the operator.
        reason: Arc<str>,
    },
}

/// Why a slot's owner gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "failure", rename_all = "snake_case")]
pub enum HookFailure {
    /// It did not answer by its deadline.
    #[error("no answer by the deadline")]
    Deadline,
    /// It cannot be asked at all.
    #[error("the hook is unavailable: {reason}")]
    Unavailable {
        /// Why.
        reason: Arc<str>,
    },
    /// It failed, and asks for the operation to be held for that. Only a delivery can be.
    #[error("held: {reason}")]
    Held {
        /// Why.
        reason: Arc<str>,
    },
    /// Its answer breaks an invariant.
    #[error("the answer is invalid: {reason}")]
    Invalid {
        /// Which.
        reason: Arc<str>,
    },
}
