//! What clients are told: one update for each record that matters to an observer, and live pieces between.
//!
//! Think, scratch and delivered are told apart here once and for all (`B-SPEECH-2`).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::End;
use crate::attention::{Decider, Response, Status};
use crate::event::{Priority, SourceKind, Via};
use crate::ids::{ActionId, Epoch, EventId, FrameId, Generation, Seq, StepId, TurnId};
use crate::model::{Delta, Usage};
use crate::policy::{Cause, NudgeKind};
use crate::record::{BreakCause, Delivered, Record, Stamped, TurnCause, TurnEnd, WaitEnd};
use crate::time::Timestamp;

/// One thing a client is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Update {
    /// The record that says it, to resume after; absent for a live piece, which a durable update replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Seq>,
    /// When it happened, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub happening: Happening,
}

/// What a client is told of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Happening {
    /// A piece of reasoning, live.
    ThinkDelta {
        /// The piece.
        text: String,
    },
    /// A piece of scratch, live.
    ScratchDelta {
        /// The piece.
        text: String,
    },
    /// The model has begun to ask for an action, live.
    CallDelta {
        /// The action's name.
        name: String,
    },
    /// An event was admitted.
    Admitted {
        /// The event.
        event: EventId,
        /// The kind of its source.
        source: SourceKind,
        /// The source's instance name.
        instance: Arc<str>,
        /// How urgent it is.
        priority: Priority,
        /// What names it at its source.
        external_id: Arc<str>,
        /// By what it came, where its host tells that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Box<Via>>,
    },
    /// Somebody decided about an attention item.
    Marked {
        /// The event that made the item.
        item: EventId,
        /// What has become of it.
        status: Status,
        /// What was done about it.
        action: Response,
        /// Why.
        note: Option<Arc<str>>,
        /// Who decided.
        decider: Decider,
    },
    /// A command of the operator's was carried out.
    Consumed {
        /// Its event.
        event: EventId,
    },
    /// Events were shown to the model.
    Shown {
        /// The frame.
        frame: FrameId,
        /// The events.
        events: Vec<EventId>,
        /// The message as the model reads it.
        text: Arc<str>,
    },
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Why.
        cause: TurnCause,
        /// The model it uses.
        model: Arc<str>,
    },
    /// The harness put in a message of its own.
    Nudged {
        /// Which one.
        nudge: NudgeKind,
        /// What the model reads.
        text: Arc<str>,
    },
    /// The model replied: private thought, private scratch, and the actions it asks for.
    Replied {
        /// The step.
        #[schemars(with = "String")]
        step: StepId,
        /// The reasoning.
        think: Option<Arc<str>>,
        /// The plain text.
        scratch: Arc<str>,
        /// The actions' names in order.
        calls: Vec<Arc<str>>,
        /// What the provider counted.
        #[schemars(with = "Option<serde_json::Value>")]
        usage: Option<Usage>,
    },
    /// A reply was dropped in the middle.
    ReplyDropped {
        /// The step.
        #[schemars(with = "String")]
        step: StepId,
        /// Its text so far.
        scratch: Arc<str>,
    },
    /// The model could not be asked.
    SamplingFailed {
        /// The step.
        #[schemars(with = "String")]
        step: StepId,
        /// What went wrong, for people.
        failure: String,
        /// When it is tried again.
        #[schemars(with = "Option<i64>")]
        retry_at: Option<Timestamp>,
    },
    /// An action is about to run.
    ActionStarted {
        /// The action.
        #[schemars(with = "String")]
        action: ActionId,
        /// Its name.
        name: Arc<str>,
        /// Its arguments, JSON.
        arguments: Arc<str>,
    },
    /// An action waits for the operator.
    Held {
        /// The action.
        #[schemars(with = "String")]
        action: ActionId,
        /// Its name.
        name: Arc<str>,
        /// Its arguments, JSON.
        arguments: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// An action ended; nothing was said to anyone by it.
    ActionEnded {
        /// The action.
        #[schemars(with = "String")]
        action: ActionId,
        /// How; absent while only its call is answered.
        end: Option<End>,
        /// The whole result; what the model reads of it may be shorter.
        result: Arc<str>,
    },
    /// Something was said to someone.
    Delivered {
        /// The action that said it.
        #[schemars(with = "String")]
        action: ActionId,
        /// The channel's instance name; `local` for the operator.
        channel: Arc<str>,
        /// What was said, as the delivery's arguments have it; their `content` if they have one.
        text: String,
    },
    /// The agent waits.
    Waiting {
        /// Until when at most.
        #[schemars(with = "i64")]
        until: Timestamp,
        /// What for.
        reason: Option<Arc<str>>,
    },
    /// A wait ended.
    WaitEnded {
        /// How.
        end: WaitEnd,
    },
    /// A turn ended.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// How.
        end: TurnEnd,
    },
    /// A new prefix is in force.
    PrefixMade {
        /// Its number.
        generation: Generation,
        /// Why.
        cause: BreakCause,
    },
    /// A request did not extend the one before it, and nothing had declared that: a warning.
    PrefixBroken {
        /// The model whose lane it is.
        model: Arc<str>,
        /// The first byte that differs, in the requests as the core writes them.
        offset: u64,
    },
    /// A policy was put in force.
    Activated {
        /// The epoch from here on.
        epoch: Epoch,
        /// What names the policy; none when no slot has an owner any more.
        manifest: Option<Arc<str>>,
        /// Why it came.
        cause: Cause,
    },
    /// The soul was replaced.
    SoulChanged {
        /// The epoch from here on.
        epoch: Epoch,
    },
    /// The transcript was emptied.
    Reset,
    /// A summary is being asked for.
    Compacting,
    /// The front of the transcript was swapped for a summary.
    Compacted {
        /// How many messages it stands for.
        covers: usize,
        /// The summary.
        summary: Arc<str>,
    },
    /// No summary came of it.
    CompactionFailed {
        /// Why.
        why: Arc<str>,
    },
    /// The provider refused a message for good.
    DeadLettered {
        /// What it said.
        failure: String,
    },
    /// The process began anew.
    Recovered,
    /// The clock was set back.
    ClockHeld,
}

impl Update {
    /// A live piece of a reply.
    pub fn live(at: Timestamp, delta: Delta) -> Self {
        let happening = match delta {
            Delta::Think(text) => Happening::ThinkDelta { text },
            Delta::Scratch(text) => Happening::ScratchDelta { text },
            Delta::CallStarted { name } => Happening::CallDelta { name },
        };
        Update { id: None, at, happening }
    }

    /// What a record tells a client, if anything.
    pub fn from_record(stamped: &Stamped) -> Option<Self> {
        let happening = happening(&stamped.record)?;
        Some(Update { id: Some(stamped.seq), at: stamped.at, happening })
    }
}

fn happening(record: &Record) -> Option<Happening> {
    Some(match record {
        Record::Admitted { event, .. } => Happening::Admitted {
            event: event.id,
            source: event.source.kind,
            instance: event.source.instance.clone(),
            priority: event.priority,
            external_id: event.external_id.clone(),
            via: event.via.clone(),
        },
        Record::Consumed { event } => Happening::Consumed { event: *event },
        Record::Marked { item, status, action, note, decider } => Happening::Marked {
            item: *item,
            status: *status,
            action: *action,
            note: note.clone(),
            decider: decider.clone(),
        },
        Record::FrameMade { frame, events, text, .. } => {
            Happening::Shown { frame: *frame, events: events.clone(), text: text.clone() }
        }
        Record::TurnStarted { turn, cause, model, .. } => {
            Happening::TurnStarted { turn: *turn, cause: *cause, model: model.clone() }
        }
        Record::Nudged { nudge, text } => Happening::Nudged { nudge: *nudge, text: text.clone() },
        Record::StepSampled { step, message, usage, .. } => Happening::Replied {
            step: *step,
            think: message.reasoning.clone(),
            scratch: message.text.clone(),
            calls: message.calls.iter().map(|call| call.name.clone()).collect(),
            usage: *usage,
        },
        Record::SamplingAborted { step, text } => {
            Happening::ReplyDropped { step: *step, scratch: text.clone() }
        }
        Record::SamplingFailed { step, failure, retry_at } => {
            Happening::SamplingFailed { step: *step, failure: failure.to_string(), retry_at: *retry_at }
        }
        Record::Intended { action, name, arguments, .. } => {
            Happening::ActionStarted { action: *action, name: name.clone(), arguments: arguments.clone() }
        }
        Record::Held { action, name, arguments, reason, .. } => Happening::Held {
            action: *action,
            name: name.clone(),
            arguments: arguments.clone(),
            reason: reason.clone(),
        },
        Record::Settled { action, delivered: Some(said), .. }
        | Record::Receipt { action, delivered: Some(said), .. } => delivered(*action, said),
        Record::Settled { action, end, result, delivered: None } => {
            Happening::ActionEnded { action: *action, end: Some(end.clone()), result: result.full.clone() }
        }
        Record::Detached { action, result } => {
            Happening::ActionEnded { action: *action, end: None, result: result.full.clone() }
        }
        Record::Receipt { action, end, observation, delivered: None } => {
            Happening::ActionEnded { action: *action, end: Some(end.clone()), result: observation.clone() }
        }
        Record::WaitEntered { until, reason, .. } => {
            Happening::Waiting { until: *until, reason: reason.clone() }
        }
        Record::WaitEnded { end, .. } => Happening::WaitEnded { end: end.clone() },
        Record::TurnEnded { turn, end, .. } => Happening::TurnEnded { turn: *turn, end: end.clone() },
        Record::PrefixMade { generation, cause, .. } => {
            Happening::PrefixMade { generation: *generation, cause: *cause }
        }
        Record::PrefixBroken { model, at, .. } => {
            Happening::PrefixBroken { model: model.clone(), offset: at.offset }
        }
        Record::SoulChanged { epoch, .. } => Happening::SoulChanged { epoch: *epoch },
        Record::Activated { epoch, manifest, cause, .. } => {
            Happening::Activated { epoch: *epoch, manifest: manifest.clone(), cause: cause.clone() }
        }
        Record::Reset => Happening::Reset,
        Record::CompactionRequested { .. } => Happening::Compacting,
        Record::Compacted { covers, summary, .. } => {
            Happening::Compacted { covers: *covers, summary: summary.clone() }
        }
        Record::CompactionFailed { why, .. } => Happening::CompactionFailed { why: why.clone() },
        Record::DeadLettered { failure, .. } => Happening::DeadLettered { failure: failure.to_string() },
        Record::Recovered => Happening::Recovered,
        Record::ClockHeld { .. } => Happening::ClockHeld,
        Record::Aliased { .. }
        | Record::Reprioritised { .. }
        | Record::Folded { .. }
        | Record::Withdrawn { .. }
        | Record::Declined { .. }
        | Record::Called { .. }
        | Record::Ended { .. }
        | Record::Yielded { .. }
        | Record::CompactionWanted
        | Record::StepRequested { .. }
        | Record::StepRetried { .. }
        | Record::Attempted { .. }
        | Record::Decided { .. }
        | Record::ObserverAdvanced { .. }
        | Record::Scheduled { .. }
        | Record::ScheduleKept { .. }
        | Record::LateDropped { .. } => return None,
    })
}

fn delivered(action: ActionId, said: &Delivered) -> Happening {
    let content = serde_json::from_str::<serde_json::Value>(&said.arguments)
        .ok()
        .and_then(|arguments| arguments.get("content")?.as_str().map(str::to_owned));
    let text = content.unwrap_or_else(|| said.arguments.to_string());
    Happening::Delivered { action, channel: said.channel.clone(), text }
}
