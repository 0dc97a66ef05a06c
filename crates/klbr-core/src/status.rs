//! How an agent is doing, as plain data for people and APIs.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::Conversations;
use crate::agent::Agent;
use crate::attention::{self, Decision, Item, Response, Shown};
use crate::event::{Bucket, Header, Priority, SourceKind};
use crate::ids::{ActionId, AgentName, Epoch, EventId, Generation, Seq, StepId, TurnId};
use crate::ledger::Ledger;
use crate::policy::{Cause, InForce};
use crate::state::{EffectStatus, Phase, Progress, Stage};
use crate::time::Timestamp;

/// How an agent is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The agent.
    #[schemars(with = "String")]
    pub agent: AgentName,
    /// The newest record.
    pub seq: Seq,
    /// The policy in force.
    pub epoch: Epoch,
    /// The model configured.
    pub model: Arc<str>,
    /// What it is doing.
    pub activity: Activity,
    /// Whether a summary is being asked for.
    pub compacting: bool,
    /// The prefix in force.
    pub generation: Generation,
    /// Requests that did not extend the one before them though no cause was declared; anything but 0 is a fault.
    pub breaks: u64,
    /// Messages of the transcript.
    pub messages: usize,
    /// Estimated tokens of the next request.
    pub tokens: u64,
    /// The model's context in tokens.
    pub context_tokens: u64,
    /// Effects whose end is still to come.
    pub open_effects: Vec<OpenEffect>,
    /// Where every event is.
    pub ledger: Ledger,
}

/// What an agent is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    /// Nothing runs.
    Resting {
        /// When it last yielded, in UTC milliseconds.
        #[schemars(with = "i64")]
        since: Timestamp,
    },
    /// It waits.
    Waiting {
        /// Until when at most, in UTC milliseconds.
        #[schemars(with = "i64")]
        until: Timestamp,
        /// What for.
        reason: Option<Arc<str>>,
    },
    /// The model is being asked.
    Sampling {
        /// The step.
        #[schemars(with = "String")]
        step: StepId,
        /// How often this request has failed.
        failures: u32,
        /// When it is sent again, while it is not out.
        #[schemars(with = "Option<i64>")]
        retry_at: Option<Timestamp>,
    },
    /// Actions run.
    Acting {
        /// The turn.
        turn: TurnId,
        /// The actions without a result, with their names.
        #[schemars(with = "Vec<(String, String)>")]
        running: Vec<(ActionId, Arc<str>)>,
    },
    /// A turn is between two steps.
    Turning {
        /// The turn.
        turn: TurnId,
    },
}

/// An effect whose call was answered before its end was known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenEffect {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Its name.
    pub name: Arc<str>,
    /// Its arguments, JSON.
    pub arguments: Arc<str>,
    /// Whether the operator has to decide about it; otherwise it is under way.
    pub held: bool,
}

/// One waiting event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// The event.
    pub event: EventId,
    /// The kind of its source.
    pub source: SourceKind,
    /// The source's instance name.
    pub instance: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// The alias of its conversation.
    pub conversation: Option<Arc<str>>,
    /// When it was admitted, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// The size of its text in bytes.
    pub bytes: u32,
}

/// One attention item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attended {
    /// The event that made it.
    pub event: EventId,
    /// The event that says what the message says now: a later one, once it was edited.
    pub newest: EventId,
    /// The message's name at its source, such as `msg:123`.
    pub item: Arc<str>,
    /// The source's instance name.
    pub instance: Arc<str>,
    /// The alias of its conversation.
    pub conversation: Option<Arc<str>>,
    /// How it addresses the agent.
    pub bucket: Bucket,
    /// What has become of it.
    pub status: attention::Status,
    /// What was done about it.
    pub action: Response,
    /// Why.
    pub note: Option<Arc<str>>,
    /// When it was admitted, in UTC milliseconds.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// When it was first shown, once it was.
    pub shown: Option<Shown>,
    /// Who decided, once someone has.
    pub decided: Option<Decision>,
}

impl Attended {
    /// Whether `name` names it: `msg:<id>` or the bare id (`B-ATT-5`).
    pub fn is_named(&self, name: &str) -> bool {
        attention::names(&self.item, name)
    }
}

impl Agent {
    /// What was addressed to the agent: undecided items first, each kind newest first, at most `limit`.
    pub fn attention(&self, limit: usize) -> Vec<Attended> {
        let state = self.state();
        let attended = |item: &Item| Attended {
            event: item.event,
            newest: item.newest,
            item: item.key.external_id.clone(),
            instance: item.key.instance.clone(),
            conversation: item.conversation.as_ref().and_then(|one| state.aliases.alias(one)).cloned(),
            bucket: item.bucket,
            status: item.status,
            action: item.action,
            note: item.note.clone(),
            at: item.at,
            shown: item.shown,
            decided: item.decided.clone(),
        };
        let items = &state.attention;
        items.pending().rev().chain(items.decided().rev()).take(limit).map(attended).collect()
    }

    /// How far each observer has come.
    pub fn observers(&self) -> &BTreeMap<Arc<str>, Seq> {
        &self.state().observers
    }

    /// Everything that was put in force, the oldest first; the last is in force.
    pub fn epochs(&self) -> Vec<InForce> {
        let slots = self.config().bound.iter().map(|(slot, time)| (*slot, time.as_millis() as u64)).collect();
        let first = InForce {
            epoch: Epoch(1),
            at: Timestamp(0),
            manifest: None,
            slots,
            soul: Some(self.config().soul.clone()),
            cause: Cause::First,
        };
        std::iter::once(first).chain(self.state().epochs.iter().cloned()).collect()
    }

    /// The conversations that have an alias.
    pub fn conversations(&self) -> &Conversations {
        &self.state().aliases
    }

    /// How the agent is doing.
    pub fn status(&self) -> Status {
        let state = self.state();
        let open_effects = state.open_effects.iter().map(|(action, effect)| OpenEffect {
            action: *action,
            name: effect.name.clone(),
            arguments: effect.arguments.clone(),
            held: effect.status == EffectStatus::Held,
        });
        Status {
            agent: self.config().agent.clone(),
            seq: state.seq,
            epoch: state.epoch,
            model: self.config().model.clone(),
            activity: activity(&state.phase),
            compacting: state.compaction.requested.is_some(),
            generation: state.prefix.generation(),
            breaks: state.breaks,
            messages: state.transcript.messages().len(),
            tokens: state.transcript.tokens(0),
            context_tokens: self.config().context_tokens,
            open_effects: open_effects.collect(),
            ledger: state.ledger,
        }
    }

    /// The events that wait, most urgent first, at most `limit`.
    pub fn waiting(&self, limit: usize) -> Vec<Waiting> {
        let state = self.state();
        let waiting = |header: &Header| Waiting {
            event: header.id,
            source: header.source.kind,
            instance: header.source.instance.clone(),
            priority: header.priority,
            conversation: header.conversation.as_ref().and_then(|c| state.aliases.alias(c)).cloned(),
            at: header.at,
            bytes: header.bytes,
        };
        state.inbox.iter().take(limit).map(waiting).collect()
    }

    /// The soul in force.
    pub fn soul(&self) -> Arc<str> {
        self.state().soul.as_ref().unwrap_or(&self.config().soul).clone()
    }
}

fn activity(phase: &Phase) -> Activity {
    match phase {
        Phase::Resting { since, .. } => Activity::Resting { since: *since },
        Phase::Waiting(wait) => Activity::Waiting { until: wait.until, reason: wait.reason.clone() },
        Phase::Turn(turn) => match &turn.stage {
            Stage::Due => Activity::Turning { turn: turn.id },
            Stage::Sampling { step, failures, retry_at, .. } => {
                Activity::Sampling { step: *step, failures: *failures, retry_at: *retry_at }
            }
            Stage::Acting { calls, .. } => {
                let running = calls
                    .iter()
                    .filter(|call| matches!(call.progress, Progress::Attempted { .. }))
                    .map(|call| (call.action, call.name.clone()));
                Activity::Acting { turn: turn.id, running: running.collect() }
            }
        },
    }
}
