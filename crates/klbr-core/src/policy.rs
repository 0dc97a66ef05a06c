//! Policy: every decision that an owner may replace, as a typed question with a typed answer.
//!
//! Owns the slots, their built-in defaults and the check of an answer against the domain's invariants.
//! Refuses to wait: the core asks by a command and goes on by an input.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Bucket, Priority, SourceKind};
use crate::ids::{ActionId, EventId, TurnId};

/// One replaceable decision. A slot has one owner at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Slot {
    /// How urgent an admitted event is, before it is shown. Never asked of Operator or Control.
    #[serde(rename = "event.priority")]
    EventPriority,
    /// Whether a batch of ambient events wakes the agent.
    #[serde(rename = "attention.wake")]
    Wake,
    /// How long ambient events are gathered before that question.
    #[serde(rename = "attention.batch_delay")]
    BatchDelay,
    /// Whether an attention item that was shown long enough stops waiting for a decision.
    #[serde(rename = "attention.age")]
    Age,
    /// When an agent that yielded without a wait is woken.
    #[serde(rename = "turn.idle")]
    Idle,
    /// What a nudge says, or that it is not made.
    #[serde(rename = "turn.nudge")]
    Nudge,
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
    /// Whether the conversation is summarised now.
    #[serde(rename = "compact.when")]
    CompactWhen,
    /// What the request for a summary says.
    #[serde(rename = "compact.prompt")]
    CompactPrompt,
}

impl Slot {
    /// The slot's name, `family.verb`.
    pub fn as_str(self) -> &'static str {
        match self {
            Slot::EventPriority => "event.priority",
            Slot::Wake => "attention.wake",
            Slot::BatchDelay => "attention.batch_delay",
            Slot::Age => "attention.age",
            Slot::Idle => "turn.idle",
            Slot::Nudge => "turn.nudge",
            Slot::Plan => "model.plan",
            Slot::ActionReview => "action.review",
            Slot::DeliveryReview => "delivery.review",
            Slot::DeliveryFormat => "delivery.format",
            Slot::CompactWhen => "compact.when",
            Slot::CompactPrompt => "compact.prompt",
        }
    }

    /// Whether the operation is held, rather than decided by default, when the slot's owner fails.
    pub fn is_required(self) -> bool {
        match self {
            Slot::ActionReview | Slot::DeliveryReview => true,
            Slot::EventPriority
            | Slot::Wake
            | Slot::BatchDelay
            | Slot::Age
            | Slot::Idle
            | Slot::Nudge
            | Slot::Plan
            | Slot::DeliveryFormat
            | Slot::CompactWhen
            | Slot::CompactPrompt => false,
        }
    }
}

/// What a slot is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "slot")]
pub enum Question {
    /// [`Slot::EventPriority`].
    #[serde(rename = "event.priority")]
    EventPriority {
        /// The event.
        event: EventId,
        /// The kind of its source.
        kind: SourceKind,
        /// The source's instance name.
        instance: Arc<str>,
        /// What its adapter said.
        priority: Priority,
    },
    /// [`Slot::Wake`].
    #[serde(rename = "attention.wake")]
    Wake {
        /// How many ambient events wait.
        waiting: usize,
        /// Whether one of them comes from a place whose chatter wakes the agent.
        configured: bool,
    },
    /// [`Slot::BatchDelay`].
    #[serde(rename = "attention.batch_delay")]
    BatchDelay {
        /// How many ambient events wait.
        waiting: usize,
        /// The configured delay in milliseconds.
        configured_ms: u64,
    },
    /// [`Slot::Age`].
    #[serde(rename = "attention.age")]
    Age {
        /// The message's name at its source, such as `msg:123`.
        item: Arc<str>,
        /// The source's instance name.
        instance: Arc<str>,
        /// How it addresses the agent.
        bucket: Bucket,
        /// How long ago it was first shown, in milliseconds.
        shown_ms: u64,
    },
    /// [`Slot::Idle`].
    #[serde(rename = "turn.idle")]
    Idle {
        /// How many turns in a row ended without a wait and without anything happening since.
        yields: u32,
    },
    /// [`Slot::Nudge`].
    #[serde(rename = "turn.nudge")]
    Nudge {
        /// Which one.
        kind: NudgeKind,
        /// What the built-in nudge would say.
        text: Arc<str>,
    },
    /// [`Slot::Plan`].
    #[serde(rename = "model.plan")]
    Plan {
        /// The turn.
        turn: TurnId,
        /// The configured model.
        model: Arc<str>,
        /// The configured effort.
        effort: Option<Arc<str>>,
    },
    /// [`Slot::ActionReview`].
    #[serde(rename = "action.review")]
    ActionReview(Review),
    /// [`Slot::DeliveryReview`].
    #[serde(rename = "delivery.review")]
    DeliveryReview(Review),
    /// [`Slot::DeliveryFormat`].
    #[serde(rename = "delivery.format")]
    DeliveryFormat(Review),
    /// [`Slot::CompactWhen`].
    #[serde(rename = "compact.when")]
    CompactWhen {
        /// The estimated tokens of the next request.
        used: u64,
        /// The tokens at which the built-in policy says yes.
        threshold: u64,
    },
    /// [`Slot::CompactPrompt`].
    #[serde(rename = "compact.prompt")]
    CompactPrompt {
        /// What the built-in request says.
        text: Arc<str>,
    },
}

/// An action that is judged, frozen: what is decided on is what runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Its name in the registry.
    pub name: Arc<str>,
    /// Its arguments as a JSON object.
    pub arguments: Arc<str>,
    /// SHA-256 over name and arguments, in hex.
    pub hash: Arc<str>,
}

impl Question {
    /// The slot that answers it.
    pub fn slot(&self) -> Slot {
        match self {
            Question::EventPriority { .. } => Slot::EventPriority,
            Question::Wake { .. } => Slot::Wake,
            Question::BatchDelay { .. } => Slot::BatchDelay,
            Question::Age { .. } => Slot::Age,
            Question::Idle { .. } => Slot::Idle,
            Question::Nudge { .. } => Slot::Nudge,
            Question::Plan { .. } => Slot::Plan,
            Question::ActionReview(_) => Slot::ActionReview,
            Question::DeliveryReview(_) => Slot::DeliveryReview,
            Question::DeliveryFormat(_) => Slot::DeliveryFormat,
            Question::CompactWhen { .. } => Slot::CompactWhen,
            Question::CompactPrompt { .. } => Slot::CompactPrompt,
        }
    }

    /// What klbr decides when nobody else does.
    pub fn default_answer(&self) -> Answer {
        match self {
            Question::EventPriority { priority, .. } => Answer::Priority(*priority),
            Question::Wake { waiting, configured } => Answer::Yes(*waiting > 0 && *configured),
            Question::Age { .. } => Answer::Yes(true),
            Question::BatchDelay { configured_ms, .. } => Answer::Delay { millis: *configured_ms },
            Question::Idle { yields } => Answer::Delay { millis: idle_delay(*yields).as_millis() as u64 },
            Question::Nudge { text, .. } => Answer::Text(Some(text.clone())),
            Question::Plan { model, effort, .. } => {
                Answer::Plan { model: model.clone(), effort: effort.clone() }
            }
            Question::ActionReview(_) | Question::DeliveryReview(_) => Answer::Verdict(Verdict::Allow),
            Question::DeliveryFormat(review) => Answer::Text(Some(review.arguments.clone())),
            Question::CompactWhen { used, threshold } => Answer::Yes(used >= threshold),
            Question::CompactPrompt { text } => Answer::Text(Some(text.clone())),
        }
    }

    /// Checks that an answer is one this question can have, and that it breaks no invariant.
    ///
    /// # Errors
    ///
    /// Fails with the reason; the answer is then a failure of the hook that gave it.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        match (self, answer) {
            (Question::EventPriority { .. }, Answer::Priority(priority)) if priority.preempts() => {
                Err(format!("an event from outside cannot become {priority:?}"))
            }
            (Question::Idle { .. } | Question::BatchDelay { .. }, Answer::Delay { millis })
                if *millis > 86_400_000 =>
            {
                Err(format!("a delay of {millis} ms is longer than a day"))
            }
            (Question::Plan { .. }, Answer::Plan { model, .. }) if model.is_empty() => {
                Err("a plan names a model".to_owned())
            }
            (Question::CompactPrompt { .. }, Answer::Text(None)) => {
                Err("a summary needs a request that asks for it".to_owned())
            }
            (Question::DeliveryFormat(_), Answer::Text(Some(text)))
                if !serde_json::from_str::<serde_json::Value>(text).is_ok_and(|v| v.is_object()) =>
            {
                Err("a delivery's arguments are a JSON object".to_owned())
            }
            (Question::EventPriority { .. }, Answer::Priority(_))
            | (Question::Wake { .. } | Question::Age { .. } | Question::CompactWhen { .. }, Answer::Yes(_))
            | (Question::Idle { .. } | Question::BatchDelay { .. }, Answer::Delay { .. })
            | (
                Question::Nudge { .. } | Question::DeliveryFormat(_) | Question::CompactPrompt { .. },
                Answer::Text(_),
            )
            | (Question::Plan { .. }, Answer::Plan { .. })
            | (Question::ActionReview(_) | Question::DeliveryReview(_), Answer::Verdict(_)) => Ok(()),
            (_, answer) => Err(format!("{} cannot be answered with {answer:?}", self.slot().as_str())),
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
    /// Its answer breaks an invariant.
    #[error("the answer is invalid: {reason}")]
    Invalid {
        /// Which.
        reason: Arc<str>,
    },
}

/// A message that the harness itself makes, marked as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NudgeKind {
    /// The turn was addressed, has text and said nothing to that audience (`C-YLD-5`).
    Delivery,
    /// A turn that nobody asked for ended in text with neither wait nor mark.
    Silence,
    /// Nothing has happened for a while.
    Idle,
    /// A limit was reached; one more reply is taken (`C-YLD-6`).
    WrapUp,
    /// The conversation was summarised in the middle of a turn that no frame opened.
    Continue,
}

/// How long after the `yields`-th turn in a row without a wait an idle turn comes (`C-YLD-4`).
pub fn idle_delay(yields: u32) -> Duration {
    match yields {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs(30u64 << (n - 2).min(10)).min(Duration::from_secs(600)),
    }
}

/// What the built-in nudges say.
pub(crate) fn nudge_text(kind: NudgeKind, detail: &str) -> String {
    match kind {
        NudgeKind::Delivery => format!(
            "You wrote text, but text is your scratchpad and reached nobody. If you have an answer, \
             call {detail} now; if you have none, wait."
        ),
        NudgeKind::Silence => {
            "Your text reached nobody, and the turn is still open. Send something on purpose, mark what you \
             decided, or wait."
                .to_owned()
        }
        NudgeKind::Idle => format!(
            "Nothing has happened for {detail}. Carry on with something of your own, or wait for what comes."
        ),
        NudgeKind::WrapUp => format!(
            "{detail} Other actions will not be run in this turn any more: say what is done and what is not, \
             where it matters to someone, then wait."
        ),
        NudgeKind::Continue => {
            "The conversation up to here was summarised. Carry on where you were.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_turns_come_at_growing_distances() {
        let seconds: Vec<u64> = (1..9).map(|n| idle_delay(n).as_secs()).collect();
        assert_eq!(seconds, [0, 30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(idle_delay(u32::MAX).as_secs(), 600);
    }

    #[test]
    fn every_default_passes_its_own_check_and_no_hook_may_preempt() {
        let review = Review {
            action: "1.1.1".parse().unwrap(),
            name: "send".into(),
            arguments: "{}".into(),
            hash: "".into(),
        };
        let questions = [
            Question::EventPriority {
                event: EventId(1),
                kind: SourceKind::Channel,
                instance: "d".into(),
                priority: Priority::Ambient,
            },
            Question::Wake { waiting: 1, configured: true },
            Question::Age {
                item: "msg:1".into(),
                instance: "d".into(),
                bucket: Bucket::Dm,
                shown_ms: 600_000,
            },
            Question::BatchDelay { waiting: 1, configured_ms: 8000 },
            Question::Idle { yields: 3 },
            Question::Nudge { kind: NudgeKind::Idle, text: "x".into() },
            Question::Plan { turn: TurnId(1), model: "m".into(), effort: None },
            Question::ActionReview(review.clone()),
            Question::DeliveryReview(review.clone()),
            Question::DeliveryFormat(review),
            Question::CompactWhen { used: 1, threshold: 2 },
            Question::CompactPrompt { text: "x".into() },
        ];
        for question in &questions {
            assert_eq!(question.check(&question.default_answer()), Ok(()), "{question:?}");
            let name = serde_json::to_value(question).unwrap()["slot"].clone();
            assert_eq!(name, question.slot().as_str());
        }
        assert!(questions[0].check(&Answer::Priority(Priority::Operator)).is_err());
        assert!(questions[1].check(&Answer::Delay { millis: 1 }).is_err());
    }
}
