//! Records: what has happened to an agent, in order, for good.
//!
//! The state of an agent is the fold of its records and of nothing else. A record is kept as JSON with its
//! kind in `kind` and stays readable for ever (`C-REC-5`); fields are only ever added, with a default.

mod moves;
mod result;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::{Class, End, FrameContext, Sent};
use crate::attention::{Decider, Response, Status};
use crate::context::prefix::{Facts, Told};
use crate::context::proof::Difference;
use crate::event::{Audience, Conversation, Header, Priority};
use crate::hash::Hash;
use crate::ids::{ActionId, Epoch, EventId, FrameId, Generation, Seq, StepId, TurnId};
use crate::model::{AssistantMessage, Failure, Finish, Parameters, Usage};
use crate::policy::{Answer, Bindings, Cause, HookFailure, NudgeKind, Slot};
use crate::time::Timestamp;

pub use moves::Move;
pub use result::CallResult;

/// A record in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Its position in the agent's history.
    pub seq: Seq,
    /// When it happened. Never before the record in front of it (`C-TIME`).
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub record: Record,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// An event was admitted. Its body is kept beside the record.
    Admitted {
        /// The event.
        event: Header,
        /// Whether it is not shown before policy has said how urgent it is.
        held: bool,
    },
    /// A conversation was given its alias, for good (`B-DIS-5`).
    Aliased {
        /// The conversation.
        conversation: Conversation,
        /// The alias, such as `d1`.
        alias: Arc<str>,
    },
    /// Policy has said how urgent a held event is, and it waits.
    Reprioritised {
        /// The event.
        event: EventId,
        /// How urgent it is now.
        priority: Priority,
    },
    /// Policy does not keep a held event: it is never shown.
    Declined {
        /// The event.
        event: EventId,
    },
    /// A control command was carried out.
    Consumed {
        /// The command's event.
        event: EventId,
    },
    /// Ambient chatter was counted instead of being shown.
    Folded {
        /// The events.
        events: Vec<EventId>,
    },
    /// A source took back what had not been shown yet (`C-EVT-2`).
    Withdrawn {
        /// The message, what had been made of it since, and the event that took it back.
        events: Vec<EventId>,
    },
    /// Somebody decided about an attention item (`B-ATT-2`).
    Marked {
        /// The event that made the item.
        item: EventId,
        /// What has become of it.
        status: Status,
        /// What was done about it.
        action: Response,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Arc<str>>,
        /// Who decided.
        decider: Decider,
    },

    /// A prefix was made: what every request begins with from here on.
    PrefixMade {
        /// Its number.
        generation: Generation,
        /// Why the one before is no longer in force (`C-PFX-1`).
        cause: BreakCause,
        /// The system prompt.
        system: Arc<str>,
        /// The tool list, a JSON array.
        tools: Arc<str>,
        /// The actions that it tells of as functions of cells, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        functions: Vec<Arc<str>>,
        /// What it says of the things that may change later; empty in histories that did not record it.
        #[serde(default)]
        facts: Box<Facts>,
    },
    /// The soul was replaced: a new epoch (`C-SOUL`).
    SoulChanged {
        /// The epoch from here on.
        epoch: Epoch,
        /// The whole new text.
        text: Arc<str>,
    },
    /// A policy was put in force: a new epoch, for turns that begin from here on.
    Activated {
        /// The epoch.
        epoch: Epoch,
        /// What names the policy; none when no slot has an owner any more.
        manifest: Option<Arc<str>>,
        /// The slots that it binds, with the time that each may take.
        bound: Bindings,
        /// The whole new soul, where it replaces it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soul: Option<Arc<str>>,
        /// Why it came.
        #[serde(default)]
        cause: Cause,
    },
    /// The transcript was emptied.
    Reset,
    /// A summary is to be made at the next boundary.
    CompactionWanted,
    /// A request for a summary is about to be sent.
    CompactionRequested {
        /// Which try this is since the last success, from 1.
        attempt: u32,
        /// How many messages of the transcript it covers.
        covers: usize,
        /// Its last message.
        prompt: Arc<str>,
        /// The model asked.
        model: Arc<str>,
    },
    /// A range of the transcript was swapped for its summary, in one commit.
    Compacted {
        /// Which summary of its agent this is, from 1; 0 in histories that did not count.
        #[serde(default)]
        number: u64,
        /// How many messages it covers.
        covers: usize,
        /// The hash chain over them.
        covered: Hash,
        /// The message that stands in front of the summary.
        prompt: Arc<str>,
        /// The summary with what the harness adds.
        summary: Arc<str>,
        /// The model that wrote it; absent for the deterministic last resort.
        model: Option<Arc<str>>,
        /// What it cost.
        usage: Option<Usage>,
    },
    /// No summary came of it; the transcript is as it was.
    CompactionFailed {
        /// Why.
        why: Arc<str>,
        /// Whether another try is worth making at the next boundary.
        again: bool,
    },

    /// Events were put together to be shown; immutable from here on.
    FrameMade {
        /// The frame.
        frame: FrameId,
        /// Whether it is inserted into a running turn (`C-FRM-2`).
        addition: bool,
        /// The events shown in full.
        events: Vec<EventId>,
        /// What deliveries resolve their defaults against.
        context: FrameContext,
        /// Who is owed a delivery (`C-YLD-5`).
        audience: Vec<Audience>,
        /// The message as rendered.
        text: Arc<str>,
        /// The date that it tells, in histories that recorded nothing else of a note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        date: Option<Arc<str>>,
        /// What its note tells, when it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<Box<Told>>,
    },
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Why.
        cause: TurnCause,
        /// Its opening frame, if it has one.
        frame: Option<FrameId>,
        /// What is in force for it.
        epoch: Epoch,
        /// The model it uses.
        model: Arc<str>,
        /// The effort it uses.
        effort: Option<Arc<str>>,
    },
    /// The harness put in a message of its own.
    Nudged {
        /// Which one.
        nudge: NudgeKind,
        /// What it says, rendered.
        text: Arc<str>,
    },
    /// A sampling is about to be asked for.
    StepRequested {
        /// The step.
        step: StepId,
        /// The prefix it begins with.
        generation: Generation,
        /// How many messages follow the prefix.
        messages: usize,
        /// The hash chain over them.
        chain: Hash,
        /// The model.
        model: Arc<str>,
        /// The parameters.
        parameters: Parameters,
        /// The policy in force.
        epoch: Epoch,
        /// The estimated tokens of the request.
        tokens: u64,
        /// Where it first leaves out reasoning that the request before it in its lane carried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dropped: Option<Difference>,
    },
    /// A request does not extend the one before it in its lane, and no cause was declared (`C-PFX-1`).
    PrefixBroken {
        /// The model, whose lane it is.
        model: Arc<str>,
        /// The prefix in force.
        generation: Generation,
        /// Where it differs.
        at: Difference,
    },
    /// The identical request is about to be sent again.
    StepRetried {
        /// The step.
        step: StepId,
    },
    /// The model answered.
    StepSampled {
        /// The step.
        step: StepId,
        /// What it said, with its calls' ids settled.
        message: AssistantMessage,
        /// Why the reply ended.
        finish: Finish,
        /// What the provider counted.
        usage: Option<Usage>,
    },
    /// The model could not be asked, or its answer never became whole.
    SamplingFailed {
        /// The step.
        step: StepId,
        /// How.
        failure: Failure,
        /// When the identical request is sent again; absent when it is not.
        retry_at: Option<Timestamp>,
    },
    /// A sampling was dropped in the middle (`C-MSG-3`).
    SamplingAborted {
        /// The step.
        step: StepId,
        /// What stands in the transcript for it.
        text: Arc<str>,
    },

    /// A running action called another one: `turn.step.n.m`.
    Called {
        /// The call, which names its caller.
        action: ActionId,
        /// The called action's name, as the caller spells it.
        name: Arc<str>,
        /// Its arguments.
        arguments: Arc<str>,
    },
    /// An action may run: what was decided on is frozen.
    Intended {
        /// The action.
        action: ActionId,
        /// Its name in the registry.
        name: Arc<str>,
        /// Its arguments as they will run.
        arguments: Arc<str>,
        /// What repeating it costs.
        class: Class,
        /// The channel that it would speak through, if it speaks.
        channel: Option<Arc<str>>,
        /// The policy it was decided under.
        epoch: Epoch,
    },
    /// An action waits for the operator's decision; its call is answered at once (`C-EFF-2`).
    Held {
        /// The action.
        action: ActionId,
        /// Its name in the registry.
        name: Arc<str>,
        /// Its arguments as they would run.
        arguments: Arc<str>,
        /// The channel that it would speak through, if it speaks.
        channel: Option<Arc<str>>,
        /// Why.
        reason: Arc<str>,
        /// The call's result.
        result: CallResult,
    },
    /// An attempt is about to be made.
    Attempted {
        /// The action.
        action: ActionId,
        /// Which attempt this is, from 1.
        number: u32,
    },
    /// An action ended, and policy words its result.
    Ended {
        /// The action.
        action: ActionId,
        /// How it ended.
        end: End,
        /// What its executor told.
        observation: Arc<str>,
        /// What was said to whom, when a delivery is confirmed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivered: Option<Delivered>,
    },
    /// An action came to its end, and asks to wait: its call is answered when the wait is over or refused (`C-YLD-3`).
    Yielded {
        /// The action.
        action: ActionId,
        /// What its executor told; the answer begins with it.
        told: Arc<str>,
        /// The arguments of the wait.
        wait: Arc<str>,
    },
    /// An action ended, and its call has this result.
    Settled {
        /// The action.
        action: ActionId,
        /// How it ended.
        end: End,
        /// The call's result.
        result: CallResult,
        /// What was said to whom, when a delivery is confirmed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivered: Option<Delivered>,
    },
    /// An attempt that cannot be killed runs on; its call is answered at once (`C-EFF-2`).
    Detached {
        /// The action.
        action: ActionId,
        /// The call's result.
        result: CallResult,
    },
    /// The receipt of an effect whose call was answered before (`C-REC-3`).
    Receipt {
        /// The action.
        action: ActionId,
        /// How it ended.
        end: End,
        /// What its executor told.
        observation: Arc<str>,
        /// What was said to whom, when a delivery is confirmed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivered: Option<Delivered>,
    },

    /// The turn yields until an event or a moment (`B-WAIT-3`).
    WaitEntered {
        /// The wait's action.
        action: ActionId,
        /// When it ends by itself.
        until: Timestamp,
        /// How long it was to last.
        duration: Duration,
        /// Whether more had been asked for than is allowed.
        shortened: bool,
        /// What for.
        reason: Option<Arc<str>>,
    },
    /// A wait ended; its call has this result.
    WaitEnded {
        /// The wait's action.
        action: ActionId,
        /// How.
        end: WaitEnd,
        /// The call's result.
        result: CallResult,
    },
    /// A turn is over.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// How.
        end: TurnEnd,
        /// Events of its frame that wait again (`C-FRM-3`).
        returned: Vec<EventId>,
    },
    /// The provider refused what was new in the request, for good; one line stands in its place.
    DeadLettered {
        /// The frame whose events no provider ever accepted.
        frame: Option<FrameId>,
        /// How many messages at the transcript's end were replaced.
        messages: usize,
        /// The line.
        placeholder: Arc<str>,
        /// What the provider said.
        failure: Failure,
    },

    /// A bound slot was asked; one record for each time, answered or not.
    Decided {
        /// The slot.
        slot: Slot,
        /// SHA-256 over the question's JSON.
        question: Hash,
        /// What is in force: the owner's answer, or the default in its place.
        answer: Option<Answer>,
        /// Why the owner's answer is not it.
        failure: Option<HookFailure>,
        /// How long it took.
        elapsed: Duration,
    },
    /// An observer has dealt with every record up to one; what it wanted done is recorded in front of this.
    ObserverAdvanced {
        /// Its name.
        observer: Arc<str>,
        /// The record.
        through: Seq,
        /// Why it could not deal with that one, when it was given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gave_up: Option<Arc<str>>,
    },
    /// Something is to be said to the agent at a later moment.
    Scheduled {
        /// When.
        at: Timestamp,
        /// What names it.
        key: Arc<str>,
        /// What is said.
        text: Arc<str>,
    },
    /// The moment came, and what was to be said was admitted.
    ScheduleKept {
        /// When it was due.
        at: Timestamp,
        /// What names it.
        key: Arc<str>,
    },
    /// An answer came to a command that had been superseded, and was dropped.
    LateDropped {
        /// What it would have been.
        what: Arc<str>,
    },
    /// The clock was set back; time holds still until it has caught up (`C-TIME`).
    ClockHeld {
        /// What the clock said.
        observed: Timestamp,
    },
    /// The process began anew on this history.
    Recovered,
}

/// What was said to whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivered {
    /// The channel's instance name; `local` for the operator.
    pub channel: Arc<str>,
    /// The delivery's arguments, as they ran.
    pub arguments: Arc<str>,
    /// What its channel told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Box<Sent>>,
}

impl Delivered {
    /// Who was spoken to.
    pub fn audience(&self) -> Audience {
        let conversation = self.sent.as_ref().map(|sent| sent.conversation.id.clone());
        Audience { channel: self.channel.clone(), conversation }
    }
}

/// Why a prefix is made: the closed list of `C-PFX-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakCause {
    /// The first of its agent.
    First,
    /// A range was summarised.
    Compaction,
    /// The operator emptied the transcript.
    Reset,
    /// Soul or activation changed.
    Instructions,
    /// The model changed.
    Model,
    /// The effort changes what the template renders.
    Effort,
    /// The registry changed.
    Tools,
    /// A message that no provider accepted was replaced.
    Refused,
}

/// Why a turn began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnCause {
    /// Events are shown.
    Events,
    /// A wait timed out.
    WaitTimedOut,
    /// Nothing has happened for a while.
    Idle,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model had nothing more to do.
    Yielded,
    /// The model waits.
    Waits,
    /// The turn was addressed and nothing was delivered to that audience (`B-SPEECH-3`).
    NothingDelivered,
    /// Something with a higher claim came.
    Preempted {
        /// What.
        by: Arc<str>,
    },
    /// A limit was reached, and the wrap-up was used.
    LimitReached,
    /// The provider refused it for good.
    Refused,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum WaitEnd {
    /// Nothing came.
    TimedOut,
    /// An event from this source came.
    Woken {
        /// The source's kind and name.
        by: Arc<str>,
    },
    /// A command ended it.
    Commanded {
        /// The command.
        by: Arc<str>,
    },
}
