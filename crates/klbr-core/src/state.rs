//! The durable state of an agent: the fold of its records, and of nothing else.
//!
//! Owns what is true after the last record. Refuses to decide anything: that is [`crate::agent`].

mod apply;
mod archive;
pub(crate) mod attention;
mod calls;
mod epochs;
pub(crate) mod inbox;
mod summary;
pub(crate) mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::{Class, Conversations, End, FrameContext};
use crate::context::Hygiene;
use crate::context::prefix::Prefix;
use crate::event::{Audience, Header};
use crate::hash::Hash;
use crate::ids::{ActionId, Epoch, EventId, FrameId, Seq, StepId, TurnId};
use crate::ledger::Ledger;
use crate::model::Parameters;
use crate::policy::{Bindings, InForce, NudgeKind};
use crate::record::{Delivered, TurnCause};
use crate::time::Timestamp;

pub use apply::FoldError;
pub use archive::{Archive, Covered};
use inbox::Inbox;
use transcript::Transcript;

/// Everything that survives the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    pub(crate) seq: Seq,
    pub(crate) now: Timestamp,
    pub(crate) last_event: EventId,
    pub(crate) last_frame: FrameId,
    pub(crate) last_turn: TurnId,
    /// What the results so far mean for later ones.
    pub(crate) hygiene: Hygiene,
    pub(crate) epoch: Epoch,
    pub(crate) soul: Option<Arc<str>>,
    /// What names the policy in force, and the slots that it binds; what the host was built with when there is
    /// none.
    pub(crate) manifest: Option<Arc<str>>,
    pub(crate) bound: Option<Arc<Bindings>>,
    /// What was put in force so far, in order.
    pub(crate) epochs: Vec<InForce>,
    /// How far each observer has come.
    pub(crate) observers: BTreeMap<Arc<str>, Seq>,
    /// What is to be said to the agent, by when and by what names it.
    #[serde(with = "schedule")]
    pub(crate) schedule: BTreeMap<(Timestamp, Arc<str>), Arc<str>>,
    pub(crate) inbox: Inbox,
    pub(crate) ledger: Ledger,
    pub(crate) aliases: Conversations,
    /// What was addressed to the agent, and what became of it.
    pub(crate) attention: attention::Items,
    /// Frames with messages of each channel since its instructions were last in front of the model.
    pub(crate) batches: BTreeMap<Arc<str>, u64>,
    pub(crate) transcript: Transcript,
    /// The prefix in force, and what the model knows of the things that may change.
    pub(crate) prefix: Prefix,
    pub(crate) phase: Phase,
    /// Effects whose call was answered before they ended.
    pub(crate) open_effects: BTreeMap<ActionId, Effect>,
    pub(crate) compaction: Compaction,
    /// Summaries made so far.
    pub(crate) summaries: u64,
    /// Requests that broke their lane without a cause.
    pub(crate) breaks: u64,
    /// Turns in a row that ended without a wait and without anything happening since.
    pub(crate) yields: u32,
    /// Waits in a row that timed out without another action.
    pub(crate) idle_waits: u32,
    /// When something last happened to the agent from outside.
    pub(crate) last_happening: Timestamp,
    /// What the next frame says it was interrupted by.
    pub(crate) interrupted_by: Option<Arc<str>>,
    /// Events that a preempted turn gave back and that still wait.
    pub(crate) still_open: BTreeSet<EventId>,
}

/// What the agent is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(crate) enum Phase {
    /// No turn runs, and no wait.
    Resting {
        since: Timestamp,
        /// No idle turn comes before something happens.
        quiet: bool,
        /// A wait has just timed out, and the turn that this asks for has not begun.
        timed_out: bool,
    },
    /// The last turn asked to be woken.
    Waiting(Wait),
    /// A turn runs.
    Turn(Box<Turn>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) action: ActionId,
    pub(crate) call_id: Arc<str>,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) duration: Duration,
    pub(crate) shortened: bool,
    pub(crate) reason: Option<Arc<str>>,
    /// What the action that waits has told before.
    #[serde(default)]
    pub(crate) told: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) cause: TurnCause,
    pub(crate) frame: Option<FrameId>,
    pub(crate) context: FrameContext,
    /// Who is owed a delivery.
    pub(crate) audience: Vec<Audience>,
    /// Who was spoken to in this turn, or may have been.
    pub(crate) addressed: Vec<Audience>,
    pub(crate) model: Arc<str>,
    pub(crate) effort: Option<Arc<str>>,
    pub(crate) epoch: Epoch,
    /// The slots that were bound when it began.
    pub(crate) bound: Option<Arc<Bindings>>,
    /// The events of its frames, so that they can be given back.
    pub(crate) events: Vec<Header>,
    /// Index of its first message in the transcript.
    pub(crate) first_message: usize,
    pub(crate) steps: u32,
    pub(crate) stage: Stage,
    pub(crate) nudged: BTreeSet<NudgeKind>,
    /// Whether any of its replies had text.
    pub(crate) wrote: bool,
    /// Whether any of its replies had calls.
    pub(crate) called: bool,
    pub(crate) failing: Option<Failing>,
    /// What policy has refused last, and how often in a row each.
    #[serde(default)]
    pub(crate) vetoes: Vec<Veto>,
    pub(crate) waits: Option<Wait>,
}

/// The same call being denied or held over and over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Veto {
    pub(crate) name: Arc<str>,
    /// Of the name and the arguments as they were called.
    pub(crate) call: Hash,
    pub(crate) times: u32,
}

/// The same action failing over and over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failing {
    pub(crate) name: Arc<str>,
    pub(crate) arguments: Arc<str>,
    pub(crate) times: u32,
}

/// Where a turn is between two of its samplings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The next request is to be made.
    Due,
    /// A request is out, or is to be repeated.
    Sampling {
        step: StepId,
        parameters: Parameters,
        failures: u32,
        refusals: u32,
        retry_at: Option<Timestamp>,
    },
    /// A reply came; its calls are being answered.
    Acting { step: StepId, calls: Vec<CallState>, cut: bool },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallState {
    pub(crate) action: ActionId,
    pub(crate) call_id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) arguments: Arc<str>,
    /// The channel that it speaks through, once it is intended.
    pub(crate) channel: Option<Arc<str>>,
    pub(crate) progress: Progress,
}

/// How far one call has come (`C-EFF-1`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "progress", rename_all = "snake_case")]
pub(crate) enum Progress {
    Proposed,
    Intended {
        at: Timestamp,
        class: Class,
    },
    Attempted {
        first: Timestamp,
        number: u32,
        class: Class,
    },
    /// It came to its end, and asks to wait.
    Yields {
        told: Arc<str>,
        wait: Arc<str>,
    },
    /// It ended, and policy words its result.
    Ended {
        end: End,
        observation: Arc<str>,
        delivered: Option<Box<Delivered>>,
    },
    /// It has its result; an effect whose end is still to come is among the open ones.
    Answered {
        result: Arc<str>,
        end: Option<End>,
    },
    /// The turn yields by it; its result comes when the wait ends.
    Entered,
}

impl CallState {
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.progress, Progress::Answered { .. })
    }

    /// Whether it has come to its end and asks to wait.
    pub(crate) fn yields(&self) -> bool {
        matches!(self.progress, Progress::Yields { .. })
    }

    /// What the same call asked again has in common with it.
    pub(crate) fn hash(&self) -> Hash {
        Hash::of(format!("{}\0{}", self.name, self.arguments).as_bytes())
    }
}

/// An effect whose call was answered before its end was known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) name: Arc<str>,
    pub(crate) arguments: Arc<str>,
    pub(crate) context: FrameContext,
    pub(crate) status: EffectStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(crate) enum EffectStatus {
    /// The operator decides.
    Held,
    /// An attempt was made whose end is still to come.
    Attempted { first: Timestamp, number: u32 },
}

/// Where summarising stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Compaction {
    /// It was asked for, or the budget asks for it.
    pub(crate) wanted: bool,
    /// Tries since the last success.
    pub(crate) attempts: u32,
    /// A request for a summary is out.
    pub(crate) requested: Option<CompactionRequest>,
    /// The provider refused the last request for its length.
    #[serde(default)]
    pub(crate) overflowed: bool,
    /// Not tried again before the transcript has this many bytes.
    pub(crate) not_before_bytes: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CompactionRequest {
    pub(crate) covers: usize,
    pub(crate) prompt: Arc<str>,
    pub(crate) model: Arc<str>,
}

impl Turn {
    /// Who is owed a delivery and has had none.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &Audience> {
        self.audience.iter().filter(|owed| !self.addressed.iter().any(|one| one.reaches(owed)))
    }
}

impl State {
    pub(crate) fn new() -> Self {
        State {
            seq: Seq(0),
            now: Timestamp(0),
            last_event: EventId(0),
            last_frame: FrameId(0),
            last_turn: TurnId(0),
            hygiene: Hygiene::new(),
            epoch: Epoch(1),
            soul: None,
            manifest: None,
            bound: None,
            epochs: Vec::new(),
            observers: BTreeMap::new(),
            schedule: BTreeMap::new(),
            inbox: Inbox::default(),
            ledger: Ledger::default(),
            aliases: Conversations::default(),
            attention: attention::Items::default(),
            batches: BTreeMap::new(),
            transcript: Transcript::default(),
            prefix: Prefix::new(),
            phase: Phase::Resting { since: Timestamp(0), quiet: true, timed_out: false },
            open_effects: BTreeMap::new(),
            compaction: Compaction::default(),
            summaries: 0,
            breaks: 0,
            yields: 0,
            idle_waits: 0,
            last_happening: Timestamp(0),
            interrupted_by: None,
            still_open: BTreeSet::new(),
        }
    }

    pub(crate) fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Turn(turn) => Some(turn),
            Phase::Resting { .. } | Phase::Waiting(_) => None,
        }
    }
}

/// A map whose keys are no text, as a list of its entries.
mod schedule {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::time::Timestamp;

    type Schedule = BTreeMap<(Timestamp, Arc<str>), Arc<str>>;

    pub(super) fn serialize<S: Serializer>(schedule: &Schedule, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(schedule)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Schedule, D::Error> {
        Vec::deserialize(deserializer).map(|entries: Vec<_>| entries.into_iter().collect())
    }
}
