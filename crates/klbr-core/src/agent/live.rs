//! What only this process knows of an agent: which commands are out, and what they are for.
//!
//! All of it can be lost: the machine makes it again from the durable state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::Lately;
use super::frame::Selection;
use crate::context::prefix::Facts;
use crate::event::Body;
use crate::ids::{ActionId, EventId, Fence, Generation};
use crate::model::Request;
use crate::policy::{NudgeKind, Question};
use crate::record::TurnCause;
use crate::time::Timestamp;

/// The volatile side of an agent.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) now: Timestamp,
    pub(super) clock_held: bool,
    /// The process is about to end: nothing begins any more.
    pub(super) stopping: bool,
    pub(super) last_fence: Fence,
    pub(super) loading: Option<Loading>,
    pub(super) sampling: Option<Sampling>,
    /// The fences of attempts and reconciliations under way.
    pub(super) actions: BTreeMap<ActionId, Fence>,
    /// Those of them that an earlier process attempted, and that are only asked after.
    pub(super) reconciling: BTreeSet<ActionId>,
    /// The tickets of those who called an action and wait for its answer.
    pub(super) callers: BTreeMap<ActionId, u64>,
    pub(super) deciding: BTreeMap<Fence, Pending>,
    /// Judged actions of the step that is being answered, with what they may run with.
    pub(super) judged: BTreeMap<ActionId, Judged>,
    /// What was decided lately.
    pub(super) lately: Lately,
    pub(super) batch: Batch,
    /// Items that policy does not let age.
    pub(super) ageless: BTreeSet<EventId>,
    pub(super) idle_at: Option<Timestamp>,
    /// Nudges that policy does not want in this turn.
    pub(super) declined: BTreeSet<NudgeKind>,
    pub(super) plan: Option<Plan>,
    /// The events that policy has chosen for the next frame.
    pub(super) chosen: Option<BTreeSet<EventId>>,
    /// How many turns policy lets stay behind the summary that is asked for next.
    pub(super) keep: Option<u32>,
    /// The steps that policy lets the turn have, and at which of its steps it was asked.
    pub(super) step_limit: Option<u32>,
    pub(super) limit_asked: Option<u32>,
    /// Waits in a row that were refused or shorter than a second.
    pub(super) short_waits: u32,
    pub(super) compaction: CompactionAsked,
    pub(super) compaction_retry: Option<Timestamp>,
    /// This process has other actions than the prefix in force offers.
    pub(super) tools_changed: bool,
    /// The last request of each model, as far as the next has to extend it, and the prefix it was sent under.
    pub(super) lanes: BTreeMap<Arc<str>, (Generation, Request)>,
}

/// Something that is loaded from the store.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) fence: Fence,
    pub(super) selection: Selection,
    pub(super) purpose: Purpose,
    /// What is made of it, once everything is there.
    pub(super) draft: Option<Box<Draft>>,
}

/// A prefix and a frame that are being made.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) bodies: Vec<Body>,
    pub(super) facts: Facts,
    /// The system prompt and the frame, as policy has worded them.
    pub(super) system: Option<Arc<str>>,
    pub(super) frame: Option<Arc<str>>,
    /// Where deliveries go that name no destination, as policy has said.
    pub(super) target: Option<Option<Arc<str>>>,
    /// Whether the prefix that was due has been made.
    pub(super) has_prefix: bool,
}

/// What of a draft policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    System,
    Frame,
    Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A turn opens with what is loaded.
    Open(TurnCause),
    /// The events join a running turn.
    Add,
    /// Only a prefix is to be made.
    Prefix,
}

/// A sampling under way.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) fence: Fence,
    pub(super) text: String,
    /// Whether a summary was asked for.
    pub(super) summary: bool,
}

/// A question that a slot's owner has.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) question: Question,
    pub(super) then: Then,
    pub(super) asked: Timestamp,
    pub(super) deadline: Timestamp,
}

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Accept(EventId),
    Prioritise(EventId),
    Age(EventId),
    DelayBatch,
    Wake,
    ScheduleIdle,
    Nudge(NudgeKind),
    Open(TurnCause),
    Select(TurnCause),
    Limit,
    Word(Fence, Part),
    Format(ActionId),
    Review(ActionId),
    Shape(ActionId),
    Compact,
    Keep,
    AskForSummary,
}

/// How far policy has come with one call.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The arguments as they will run.
    pub(super) arguments: Arc<str>,
    pub(super) formatted: bool,
}

/// What a turn will use.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) model: Arc<str>,
    pub(super) effort: Option<Arc<str>>,
}

/// Where the gathering of ambient events stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Batch {
    /// Not looked at since something came.
    #[default]
    New,
    /// Policy says how long to gather.
    AskingDelay,
    /// Gathered until then.
    Until(Timestamp),
    /// Policy says whether to wake.
    AskingWake,
    /// Policy said no; they wait for the next event.
    LeftAlone,
    /// Policy said yes.
    Wakes,
}

/// Whether policy was asked about a summary at this boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CompactionAsked {
    #[default]
    No,
    /// Asked, with the transcript at this many messages.
    At(usize),
}

impl Live {
    pub(super) fn batch_due(&self) -> Option<Timestamp> {
        match self.batch {
            Batch::Until(due) => Some(due),
            Batch::New | Batch::AskingDelay | Batch::AskingWake | Batch::LeftAlone | Batch::Wakes => None,
        }
    }

    pub(super) fn decision_deadline(&self) -> Option<Timestamp> {
        self.deciding.values().map(|pending| pending.deadline).min()
    }

    /// Whether an answer for this is still to come.
    pub(super) fn is_asking(&self, then: Then) -> bool {
        self.deciding.values().any(|pending| pending.then == then)
    }

    /// Lets go of the question which events a frame shows; answers with what the frame is for, if it was asked.
    pub(super) fn stop_choosing(&mut self) -> Option<TurnCause> {
        let cause = |pending: &Pending| match pending.then {
            Then::Select(cause) => Some(cause),
            _ => None,
        };
        let (fence, cause) = self.deciding.iter().find_map(|(fence, one)| Some((*fence, cause(one)?)))?;
        self.deciding.remove(&fence);
        Some(cause)
    }

    /// Forgets what was asked for a turn that is over; answers that still come are late.
    pub(super) fn forget_turn(&mut self) {
        self.deciding.retain(|_, pending| match pending.then {
            Then::Accept(_)
            | Then::Prioritise(_)
            | Then::Age(_)
            | Then::DelayBatch
            | Then::Wake
            | Then::ScheduleIdle => true,
            Then::Nudge(_)
            | Then::Open(_)
            | Then::Select(_)
            | Then::Limit
            | Then::Word(..)
            | Then::Format(_)
            | Then::Review(_)
            | Then::Shape(_)
            | Then::Compact
            | Then::Keep
            | Then::AskForSummary => false,
        });
        self.judged.clear();
        self.declined.clear();
        self.plan = None;
        self.chosen = None;
        self.keep = None;
        self.step_limit = None;
        self.limit_asked = None;
        self.loading = None;
        self.compaction = CompactionAsked::No;
    }
}
