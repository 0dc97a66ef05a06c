//! Questions: what a slot is asked, what klbr answers when nobody else does, and which answers are sound.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, NudgeKind, Slot, Verdict, idle_delay};
use crate::block::{Block, Name, parse};
use crate::event::{Bucket, Priority, SourceKind};
use crate::hash::Hash;
use crate::ids::{ActionId, EventId, TurnId};

/// The most steps that a turn may have, whatever policy says.
const MAX_STEPS: u32 = 10_000;

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
    /// [`Slot::EventAccept`].
    #[serde(rename = "event.accept")]
    EventAccept {
        /// The event.
        event: EventId,
        /// The kind of its source.
        kind: SourceKind,
        /// The source's instance name.
        instance: Arc<str>,
        /// The happening's name at its source.
        external_id: Arc<str>,
        /// The channel's own id of the place where it was said.
        conversation: Option<Arc<str>>,
        /// What its adapter said.
        priority: Priority,
        /// The size of its text in bytes.
        bytes: u32,
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
    /// [`Slot::FrameRender`].
    #[serde(rename = "frame.render")]
    FrameRender {
        /// The frame's blocks, as the built-in rendering has them.
        text: Arc<str>,
    },
    /// [`Slot::ContextBlocks`].
    #[serde(rename = "context.blocks")]
    ContextBlocks {
        /// The system prompt: the soul, how to live here, and what is pinned.
        text: Arc<str>,
    },
    /// [`Slot::ContextSelect`].
    #[serde(rename = "context.select")]
    ContextSelect {
        /// What the built-in choice takes, in the order in which it is shown.
        events: Vec<Candidate>,
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
    /// [`Slot::Limits`].
    #[serde(rename = "turn.limits")]
    Limits {
        /// The turn.
        turn: TurnId,
        /// The steps that it has had.
        steps: u32,
        /// The limit that it has reached.
        limit: u32,
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
    /// [`Slot::DeliveryTarget`].
    #[serde(rename = "delivery.target")]
    DeliveryTarget {
        /// The aliases of the conversations that the frame shows.
        conversations: Vec<Arc<str>>,
        /// The built-in target: the only one of them, if there is but one.
        target: Option<Arc<str>>,
    },
    /// [`Slot::ResultShape`].
    #[serde(rename = "result.shape")]
    ResultShape {
        /// The action.
        #[schemars(with = "String")]
        action: ActionId,
        /// Its name in the registry.
        name: Arc<str>,
        /// What its executor told.
        text: Arc<str>,
    },
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
    /// [`Slot::CompactKeep`].
    #[serde(rename = "compact.keep")]
    CompactKeep {
        /// The messages that a summary could stand for.
        messages: u32,
        /// The newest turns among them that could stay.
        turns: u32,
    },
}

/// An event that the next frame could show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The event. What amends it is shown with it.
    pub event: EventId,
    /// The kind of its source.
    pub kind: SourceKind,
    /// The source's instance name.
    pub instance: Arc<str>,
    /// The alias of its conversation.
    pub conversation: Option<Arc<str>>,
    /// How urgent it is.
    pub priority: Priority,
    /// How long it has waited, in milliseconds.
    pub waited_ms: u64,
    /// The size of its text in bytes.
    pub bytes: u32,
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

impl Review {
    /// Freezes an action as it would run.
    pub fn new(action: ActionId, name: Arc<str>, arguments: Arc<str>) -> Self {
        let hash = Hash::of(format!("{name}\0{arguments}").as_bytes()).to_string().into();
        Review { action, name, arguments, hash }
    }
}

impl Question {
    /// The text that a rewrite words anew; none where the slot is no rewrite ([`Slot::is_rewrite`]).
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Question::FrameRender { text }
            | Question::ContextBlocks { text }
            | Question::ResultShape { text, .. } => Some(text),
            Question::DeliveryFormat(review) => Some(&review.arguments),
            Question::EventPriority { .. }
            | Question::EventAccept { .. }
            | Question::Wake { .. }
            | Question::BatchDelay { .. }
            | Question::Age { .. }
            | Question::Idle { .. }
            | Question::Nudge { .. }
            | Question::Limits { .. }
            | Question::Plan { .. }
            | Question::ContextSelect { .. }
            | Question::ActionReview(_)
            | Question::DeliveryReview(_)
            | Question::DeliveryTarget { .. }
            | Question::CompactWhen { .. }
            | Question::CompactPrompt { .. }
            | Question::CompactKeep { .. } => None,
        }
    }

    /// The same question about another text; the same one where the slot is no rewrite.
    #[must_use]
    pub fn about(&self, text: Arc<str>) -> Self {
        match self {
            Question::FrameRender { .. } => Question::FrameRender { text },
            Question::ContextBlocks { .. } => Question::ContextBlocks { text },
            Question::ResultShape { action, name, .. } => {
                Question::ResultShape { action: *action, name: name.clone(), text }
            }
            Question::DeliveryFormat(review) => {
                Question::DeliveryFormat(Review::new(review.action, review.name.clone(), text))
            }
            other => other.clone(),
        }
    }

    /// The slot that answers it.
    pub fn slot(&self) -> Slot {
        match self {
            Question::EventPriority { .. } => Slot::EventPriority,
            Question::EventAccept { .. } => Slot::EventAccept,
            Question::Wake { .. } => Slot::Wake,
            Question::BatchDelay { .. } => Slot::BatchDelay,
            Question::Age { .. } => Slot::Age,
            Question::FrameRender { .. } => Slot::FrameRender,
            Question::ContextBlocks { .. } => Slot::ContextBlocks,
            Question::ContextSelect { .. } => Slot::ContextSelect,
            Question::Idle { .. } => Slot::Idle,
            Question::Nudge { .. } => Slot::Nudge,
            Question::Limits { .. } => Slot::Limits,
            Question::Plan { .. } => Slot::Plan,
            Question::ActionReview(_) => Slot::ActionReview,
            Question::DeliveryReview(_) => Slot::DeliveryReview,
            Question::DeliveryFormat(_) => Slot::DeliveryFormat,
            Question::DeliveryTarget { .. } => Slot::DeliveryTarget,
            Question::ResultShape { .. } => Slot::ResultShape,
            Question::CompactWhen { .. } => Slot::CompactWhen,
            Question::CompactPrompt { .. } => Slot::CompactPrompt,
            Question::CompactKeep { .. } => Slot::CompactKeep,
        }
    }

    /// What klbr decides when nobody else does.
    pub fn default_answer(&self) -> Answer {
        match self {
            Question::EventPriority { priority, .. } => Answer::Priority(*priority),
            Question::Wake { waiting, configured } => Answer::Yes(*waiting > 0 && *configured),
            Question::Age { .. } | Question::EventAccept { .. } => Answer::Yes(true),
            Question::Limits { limit, .. } => Answer::Count(*limit),
            Question::FrameRender { text }
            | Question::ContextBlocks { text }
            | Question::ResultShape { text, .. } => Answer::Text(Some(text.clone())),
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
            Question::CompactKeep { .. } => Answer::Count(0),
            Question::ContextSelect { events } => {
                Answer::Events(events.iter().map(|candidate| candidate.event).collect())
            }
            Question::DeliveryTarget { target, .. } => Answer::Text(target.clone()),
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
            (Question::FrameRender { text }, Answer::Text(worded)) => check_frame(text, worded.as_deref()),
            (Question::ContextBlocks { .. }, Answer::Text(text))
                if text.as_ref().is_none_or(|text| text.trim().is_empty()) =>
            {
                Err("a prefix says something".to_owned())
            }
            (Question::CompactPrompt { .. }, Answer::Text(None)) => {
                Err("a summary needs a request that asks for it".to_owned())
            }
            (Question::Limits { .. }, Answer::Count(steps)) if *steps > MAX_STEPS => {
                Err(format!("{steps} steps are more than the {MAX_STEPS} that a turn may have"))
            }
            (Question::ContextSelect { events }, Answer::Events(chosen)) => check_choice(events, chosen),
            (Question::DeliveryTarget { conversations, .. }, Answer::Text(Some(alias)))
                if !conversations.contains(alias) =>
            {
                Err(format!("{alias} is none of the frame's conversations: {}", conversations.join(", ")))
            }
            (Question::CompactKeep { turns, .. }, Answer::Count(keep)) if keep > turns => {
                Err(format!("{keep} turns are more than the {turns} that could stay"))
            }
            (Question::DeliveryFormat(_), Answer::Text(Some(text)))
                if !serde_json::from_str::<serde_json::Value>(text).is_ok_and(|v| v.is_object()) =>
            {
                Err("a delivery's arguments are a JSON object".to_owned())
            }
            (Question::EventPriority { .. }, Answer::Priority(_))
            | (
                Question::EventAccept { .. }
                | Question::Wake { .. }
                | Question::Age { .. }
                | Question::CompactWhen { .. },
                Answer::Yes(_),
            )
            | (Question::Limits { .. } | Question::CompactKeep { .. }, Answer::Count(_))
            | (Question::Idle { .. } | Question::BatchDelay { .. }, Answer::Delay { .. })
            | (
                Question::Nudge { .. }
                | Question::DeliveryFormat(_)
                | Question::DeliveryTarget { .. }
                | Question::ContextBlocks { .. }
                | Question::ResultShape { .. }
                | Question::CompactPrompt { .. },
                Answer::Text(_),
            )
            | (Question::Plan { .. }, Answer::Plan { .. })
            | (Question::ActionReview(_) | Question::DeliveryReview(_), Answer::Verdict(_)) => Ok(()),
            (_, answer) => Err(format!("{} cannot be answered with {answer:?}", self.slot().as_str())),
        }
    }
}

/// A frame shows some of what it could, each once: a turn that shows nothing would come again and again.
fn check_choice(events: &[Candidate], chosen: &[EventId]) -> Result<(), String> {
    let mut known: Vec<EventId> = events.iter().map(|candidate| candidate.event).collect();
    for event in chosen {
        match known.iter().position(|one| one == event) {
            Some(at) => drop(known.swap_remove(at)),
            None => return Err(format!("{event} is not among what could be shown, or is there twice")),
        }
    }
    if chosen.is_empty() { Err("a frame shows something".to_owned()) } else { Ok(()) }
}

/// A frame's wording stays blocks of the harness's, and its operator says what the operator said (`B-SPEECH-5`).
fn check_frame(built_in: &str, worded: Option<&str>) -> Result<(), String> {
    let Some(worded) = worded else { return Err("a frame shows something".to_owned()) };
    let blocks = parse(worded).map_err(|error| format!("the frame is not made of blocks: {error}"))?;
    let operator = |blocks: &[Block]| -> Vec<String> {
        blocks.iter().filter(|block| block.name() == Name::Operator).map(ToString::to_string).collect()
    };
    let before = parse(built_in).map_err(|error| error.to_string())?;
    match operator(&before) == operator(&blocks) {
        true if blocks.is_empty() => Err("a frame shows something".to_owned()),
        true => Ok(()),
        false => Err("the operator's words are not policy's to change".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Question::EventAccept {
                event: EventId(1),
                kind: SourceKind::Channel,
                instance: "d".into(),
                external_id: "msg:1".into(),
                conversation: None,
                priority: Priority::Ambient,
                bytes: 3,
            },
            Question::FrameRender { text: "<nudge>\nx\n</nudge>".into() },
            Question::ContextBlocks { text: "x".into() },
            Question::ContextSelect { events: vec![candidate(1), candidate(2)] },
            Question::DeliveryTarget { conversations: vec!["d1".into()], target: Some("d1".into()) },
            Question::CompactKeep { messages: 9, turns: 2 },
            Question::Limits { turn: TurnId(1), steps: 50, limit: 50 },
            Question::ResultShape { action: review.action, name: "look".into(), text: "x".into() },
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

    fn candidate(event: u64) -> Candidate {
        Candidate {
            event: EventId(event),
            kind: SourceKind::Channel,
            instance: "d".into(),
            conversation: Some("d1".into()),
            priority: Priority::Ambient,
            waited_ms: 1,
            bytes: 3,
        }
    }

    #[test]
    fn what_is_chosen_is_among_what_there_is() {
        let select = Question::ContextSelect { events: vec![candidate(1), candidate(2)] };
        let choose =
            |events: &[u64]| select.check(&Answer::Events(events.iter().copied().map(EventId).collect()));
        assert_eq!(choose(&[2]), Ok(()));
        assert!(choose(&[]).is_err() && choose(&[1, 1]).is_err() && choose(&[3]).is_err());
        let target = Question::DeliveryTarget { conversations: vec!["d1".into(), "d2".into()], target: None };
        assert_eq!(target.check(&Answer::Text(Some("d2".into()))), Ok(()));
        assert_eq!(target.check(&Answer::Text(None)), Ok(()));
        assert!(target.check(&Answer::Text(Some("d3".into()))).is_err());
        let keep = Question::CompactKeep { messages: 9, turns: 2 };
        assert!(keep.check(&Answer::Count(2)).is_ok() && keep.check(&Answer::Count(3)).is_err());
    }
}
