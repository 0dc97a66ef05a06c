//! The fold: what one record does to the state.
//!
//! Total over every history that the core itself has written. A record that does not fit the state it meets
//! (a damaged history) is an error, never a panic.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    CallState, Compaction, CompactionRequest, Effect, EffectStatus, Phase, Progress, Stage, State, Turn, Wait,
};
use crate::action::{End, FailureKind};
use crate::attention::Decision;
use crate::context::prefix::{Facts, Topic};
use crate::event::{Audience, Header, SourceKind};
use crate::ids::EventId;
use crate::ledger::Fate;
use crate::model::{Failure, Message};
use crate::policy::{Cause, NudgeKind};
use crate::record::{BreakCause, Delivered, Move, Record, Stamped, TurnCause, TurnEnd, WaitEnd};

/// A record that cannot have followed the ones before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} ({kind}) does not follow from the ones before it: {why}")]
pub struct FoldError {
    seq: crate::ids::Seq,
    kind: &'static str,
    why: &'static str,
}

impl State {
    /// Takes one record in.
    pub(crate) fn apply(&mut self, stamped: &Stamped) -> Result<(), FoldError> {
        let error = |why| FoldError { seq: stamped.seq, kind: stamped.record.kind(), why };
        if stamped.seq != self.seq.next() {
            return Err(error("its number is not the next one"));
        }
        self.seq = stamped.seq;
        self.now = self.now.max(stamped.at);
        self.count(&stamped.record);
        self.fold(stamped).map_err(error)
    }

    /// Keeps the ledger: each term from its own records.
    fn count(&mut self, record: &Record) {
        if let Record::Admitted { .. } = record {
            self.ledger.admitted += 1;
        }
        for step in record.moves() {
            match step {
                Move::One(event, fate) => {
                    if let Some(before) = self.fate(event) {
                        *self.ledger.term(before) -= 1;
                    }
                    *self.ledger.term(fate) += 1;
                }
                Move::Framed(fate) => {
                    let framed = std::mem::take(self.ledger.term(Fate::Framed));
                    *self.ledger.term(fate) += framed;
                }
            }
        }
    }

    /// The fate that an event has before the record at hand; none for one that is new.
    fn fate(&self, event: EventId) -> Option<Fate> {
        if self.inbox.is_held(event) {
            return Some(Fate::Held);
        }
        if self.inbox.contains(event) {
            return Some(Fate::Waiting);
        }
        // A turn's returned events were counted as shown by the first move of the same record.
        self.turn().filter(|turn| turn.events.iter().any(|h| h.id == event)).map(|_| Fate::Shown)
    }

    fn fold(&mut self, stamped: &Stamped) -> Result<(), &'static str> {
        let at = stamped.at;
        match &stamped.record {
            Record::Admitted { event, held } => {
                self.last_event = self.last_event.max(event.id);
                if event.source.kind != SourceKind::System {
                    self.last_happening = at;
                }
                self.attention.admit(event);
                if *held { self.inbox.hold(event.clone()) } else { self.inbox.insert(event.clone()) }
            }
            Record::Aliased { conversation, alias } => {
                self.aliases.add(conversation.clone(), alias.clone());
            }
            Record::Reprioritised { event, priority } => {
                let mut header = self.inbox.remove(*event).ok_or("the event does not wait")?;
                header.priority = *priority;
                self.inbox.insert(header);
            }
            Record::Declined { event } => {
                self.inbox.remove(*event).ok_or("the event is not held")?;
                self.attention.forget(*event);
            }
            Record::Consumed { event } => {
                self.inbox.remove(*event).ok_or("the event does not wait")?;
            }
            Record::Marked { item, status, action, note, decider } => {
                let decision = Decision { by: decider.clone(), at };
                self.attention.mark(*item, *status, *action, note.as_ref(), decision)?;
            }
            Record::Folded { events } | Record::Withdrawn { events } => {
                for event in events {
                    self.inbox.remove(*event).ok_or("the event does not wait")?;
                }
            }
            Record::PrefixMade { cause, system, tools, functions, facts, .. } => {
                self.prefix.renew(*cause);
                self.prefix.made(facts);
                self.transcript.system = system.clone();
                self.transcript.tools = tools.clone();
                self.transcript.functions.clone_from(functions);
            }
            Record::SoulChanged { epoch, text } => {
                self.epoch = *epoch;
                self.soul = Some(text.clone());
                self.prefix.renew(BreakCause::Instructions);
                self.put_in_force(at, Some(text.clone()), Cause::Soul);
            }
            Record::Activated { epoch, manifest, bound, soul, cause } => {
                self.epoch = *epoch;
                self.manifest.clone_from(manifest);
                self.bound = Some(Arc::new(bound.clone()));
                let soul = soul.as_ref().filter(|&soul| self.soul.as_ref() != Some(soul));
                if let Some(soul) = soul {
                    self.soul = Some(soul.clone());
                    self.prefix.renew(BreakCause::Instructions);
                }
                self.put_in_force(at, soul.cloned(), cause.clone());
            }
            Record::Reset => {
                self.transcript.replace(Vec::new(), 0);
                self.hygiene.take_back(|_| true);
                self.prefix.renew(BreakCause::Reset);
                self.compaction = Compaction::default();
                self.interrupted_by = None;
                self.idle_waits = 0;
                self.still_open.clear();
                self.batches.clear();
            }
            Record::CompactionWanted => self.compaction.wanted = true,
            Record::CompactionRequested { attempt, covers, prompt, model } => {
                self.compaction.attempts = *attempt;
                self.compaction.requested =
                    Some(CompactionRequest { covers: *covers, prompt: prompt.clone(), model: model.clone() });
            }
            Record::Compacted { number, covers, prompt, summary, .. } => {
                self.summaries = (*number).max(self.summaries + 1);
                self.swap_for_summary(*covers, prompt, summary)?;
            }
            Record::CompactionFailed { again, .. } => {
                self.compaction.requested = None;
                self.compaction.wanted = *again;
                if !again {
                    self.compaction.not_before_bytes = self.transcript.bytes() / 8 * 9;
                    self.compaction.attempts = 0;
                }
            }
            Record::FrameMade { frame, addition, events, context, audience, text, date, told } => {
                self.last_frame = *frame;
                if let Some(date) = date {
                    let facts = Facts { date: date.to_string(), ..Facts::default() };
                    self.prefix.heard(Topic::Date, &facts);
                }
                if let Some(told) = told {
                    told.topics.iter().for_each(|topic| self.prefix.heard(*topic, &told.facts));
                }
                let mut headers = Vec::new();
                for event in events {
                    headers.push(self.inbox.remove(*event).ok_or("the event does not wait")?);
                }
                self.interrupted_by = None;
                self.attention.show(events, *frame, at);
                if *addition {
                    let turn = self.turn_mut()?;
                    turn.events.extend(headers);
                } else {
                    let id = self.last_turn.next();
                    self.yields = 0;
                    for channel in channels(&headers) {
                        *self.batches.entry(channel).or_default() += 1;
                    }
                    self.phase = Phase::Turn(Box::new(Turn {
                        frame: Some(*frame),
                        context: context.clone(),
                        audience: audience.clone(),
                        events: headers,
                        ..Turn::new(id, TurnCause::Events, self.transcript.messages().len())
                    }));
                }
                self.transcript.push(Message::User { text: text.clone(), starts_turn: !addition });
            }
            Record::TurnStarted { turn: id, cause, frame, epoch, model, effort } => {
                self.last_turn = *id;
                if frame.is_none() {
                    let first = self.transcript.messages().len();
                    self.phase = Phase::Turn(Box::new(Turn::new(*id, *cause, first)));
                }
                self.transcript.model = Some(model.clone());
                self.transcript.effort.clone_from(effort);
                let bound = self.bound.clone();
                let turn = self.turn_mut()?;
                turn.epoch = *epoch;
                turn.bound = bound;
                turn.model = model.clone();
                turn.effort.clone_from(effort);
            }
            Record::Nudged { nudge, text } => {
                let turn = self.turn_mut()?;
                turn.nudged.insert(*nudge);
                turn.stage = Stage::Due;
                let starts_turn = *nudge == NudgeKind::Idle;
                self.transcript.push(Message::User { text: text.clone(), starts_turn });
            }
            Record::StepRequested { step, parameters, .. } => {
                let turn = self.turn_mut()?;
                turn.steps = step.number;
                turn.stage = Stage::Sampling {
                    step: *step,
                    parameters: parameters.clone(),
                    failures: 0,
                    refusals: 0,
                    retry_at: None,
                };
            }
            Record::PrefixBroken { .. } => self.breaks += 1,
            Record::StepRetried { .. } => {
                if let Stage::Sampling { retry_at, .. } = &mut self.turn_mut()?.stage {
                    *retry_at = None;
                }
            }
            Record::StepSampled { step, message, finish, usage } => {
                if let Some(usage) = usage {
                    self.transcript.calibrate(*usage);
                }
                self.compaction.overflowed = false;
                let turn = self.turn_mut()?;
                turn.wrote |= !message.text.trim().is_empty();
                turn.called |= !message.calls.is_empty();
                let call = |(n, call): (usize, &crate::model::Call)| CallState {
                    action: step.action(n as u32 + 1),
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                    channel: None,
                    progress: Progress::Proposed,
                };
                turn.stage = Stage::Acting {
                    step: *step,
                    calls: message.calls.iter().enumerate().map(call).collect(),
                    cut: *finish == crate::model::Finish::Length,
                };
                self.transcript.push(Message::Assistant(message.clone()));
                self.transcript.accept();
            }
            Record::SamplingFailed { failure, retry_at: next, .. } => {
                if let Failure::ContextOverflow { limit, .. } = failure {
                    self.compaction.overflowed = true;
                    self.transcript.learn_limit(*limit);
                }
                let turn = self.turn_mut()?;
                match &mut turn.stage {
                    Stage::Sampling { failures, refusals, retry_at, .. } => {
                        *failures += 1;
                        *refusals += u32::from(!failure.is_transient());
                        *retry_at = *next;
                    }
                    Stage::Due | Stage::Acting { .. } => return Err("no sampling is out"),
                }
                if next.is_none() {
                    turn.stage = Stage::Due;
                }
            }
            Record::SamplingAborted { text, .. } => {
                self.transcript.push(Message::Assistant(crate::model::AssistantMessage {
                    text: text.clone(),
                    ..Default::default()
                }));
            }
            Record::Called { action, name, arguments } => {
                let Stage::Acting { calls, .. } = &mut self.turn_mut()?.stage else {
                    return Err("no calls are being answered");
                };
                let call = CallState {
                    action: *action,
                    call_id: "".into(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    channel: None,
                    progress: Progress::Proposed,
                };
                // Behind its caller and what that has called before.
                let at = calls.partition_point(|before| before.action < *action);
                calls.insert(at, call);
            }
            Record::Intended { action, arguments, class, channel, .. } => {
                self.turn_mut()?.forgive(*action);
                let call = self.call_mut(*action)?;
                call.channel.clone_from(channel);
                call.arguments = arguments.clone();
                call.progress = Progress::Intended { at, class: *class };
            }
            Record::Held { action, name, arguments, channel, result, .. } => {
                self.turn_mut()?.addressed.extend(channel.clone().map(Audience::of_channel));
                let effect = Effect {
                    name: name.clone(),
                    arguments: arguments.clone(),
                    context: self.turn_mut()?.context.clone(),
                    status: EffectStatus::Held,
                };
                self.open_effects.insert(*action, effect);
                self.turn_mut()?.veto(*action);
                self.answer(*action, result, None)?;
            }
            Record::Attempted { action, number } => {
                if let Some(effect) = self.open_effects.get_mut(action) {
                    let first = match effect.status {
                        EffectStatus::Attempted { first, .. } => first,
                        EffectStatus::Held => at,
                    };
                    effect.status = EffectStatus::Attempted { first, number: *number };
                    return Ok(());
                }
                let call = self.call_mut(*action)?;
                call.progress = match call.progress {
                    Progress::Attempted { first, class, .. } => {
                        Progress::Attempted { first, number: *number, class }
                    }
                    Progress::Intended { class, .. } => {
                        Progress::Attempted { first: at, number: *number, class }
                    }
                    Progress::Proposed
                    | Progress::Ended { .. }
                    | Progress::Yields { .. }
                    | Progress::Answered { .. }
                    | Progress::Entered => {
                        return Err("the action was not intended");
                    }
                };
            }
            Record::Ended { action, end, observation, delivered } => {
                let (observation, delivered) = (observation.clone(), delivered.clone().map(Box::new));
                self.call_mut(*action)?.progress =
                    Progress::Ended { end: end.clone(), observation, delivered };
            }
            Record::Yielded { action, told, wait } => {
                let (told, wait) = (told.clone(), wait.clone());
                self.call_mut(*action)?.progress = Progress::Yields { told, wait };
            }
            Record::Settled { action, end, result, delivered } => {
                if *end == End::failed(FailureKind::Denied) {
                    self.turn_mut()?.veto(*action);
                }
                let addressed = match end {
                    End::Confirmed => delivered.as_ref().map(Delivered::audience),
                    // It may have been said: asking for it again could say it twice.
                    End::Unknown => self.call_mut(*action)?.channel.clone().map(Audience::of_channel),
                    End::Failed { .. } => None,
                };
                let turn = self.turn_mut()?;
                turn.addressed.extend(addressed);
                if let Some(sent) = delivered.as_ref().and_then(|said| said.sent.as_ref()) {
                    turn.context.anchors.retain(|anchor| anchor.conversation != sent.conversation);
                }
                self.answer(*action, result, Some(end.clone()))?;
            }
            Record::Detached { action, result } => {
                let context = self.turn_mut()?.context.clone();
                let call = self.call_mut(*action)?;
                let Progress::Attempted { first, number, .. } = call.progress else {
                    return Err("the action was not attempted");
                };
                let effect = Effect {
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                    context,
                    status: EffectStatus::Attempted { first, number },
                };
                self.open_effects.insert(*action, effect);
                self.answer(*action, result, None)?;
            }
            Record::Receipt { action, end, .. } => {
                self.open_effects.remove(action).ok_or("the effect is not open")?;
                if action.is_inner()
                    && let Ok(CallState { progress: Progress::Answered { end: known, .. }, .. }) =
                        self.call_mut(*action)
                {
                    // Its caller may still have to account for it.
                    *known = Some(end.clone());
                }
            }
            Record::WaitEntered { action, until, duration, shortened, reason } => {
                let call = self.call_mut(*action)?;
                let told = match std::mem::replace(&mut call.progress, Progress::Entered) {
                    Progress::Yields { told, .. } => Some(told),
                    Progress::Proposed
                    | Progress::Intended { .. }
                    | Progress::Attempted { .. }
                    | Progress::Ended { .. }
                    | Progress::Answered { .. }
                    | Progress::Entered => None,
                };
                let wait = Wait {
                    action: *action,
                    call_id: call.call_id.clone(),
                    since: at,
                    until: *until,
                    duration: *duration,
                    shortened: *shortened,
                    reason: reason.clone(),
                    told,
                };
                self.turn_mut()?.waits = Some(wait);
                self.flush()?;
            }
            Record::WaitEnded { action: _, end, result } => {
                let Phase::Waiting(wait) = &self.phase else { return Err("nothing waits") };
                let call_id = wait.call_id.clone();
                self.hygiene.apply(&result.entry());
                self.idle_waits = if *end == WaitEnd::TimedOut { self.idle_waits + 1 } else { 0 };
                self.transcript.push(Message::Tool { call_id, text: result.inserted() });
                let quiet = matches!(end, WaitEnd::Commanded { by } if &**by == "stop");
                if matches!(end, WaitEnd::Commanded { .. }) {
                    self.yields = self.yields.max(2);
                }
                let timed_out = *end == WaitEnd::TimedOut;
                self.phase = Phase::Resting { since: at, quiet, timed_out };
            }
            Record::TurnEnded { end, returned, .. } => {
                let rest = Phase::Resting { since: at, quiet: true, timed_out: false };
                let Phase::Turn(turn) = std::mem::replace(&mut self.phase, rest) else {
                    return Err("no turn runs");
                };
                for mut header in turn.events {
                    if returned.contains(&header.id) {
                        header.returned += 1;
                        self.still_open.insert(header.id);
                        self.inbox.insert(header);
                    }
                }
                self.yields += 1;
                if let TurnEnd::Preempted { by } = end {
                    self.interrupted_by = Some(by.clone());
                    self.yields = self.yields.max(2);
                }
                self.phase = match turn.waits {
                    Some(wait) => {
                        self.yields = 0;
                        Phase::Waiting(wait)
                    }
                    None => {
                        let quiet = matches!(end, TurnEnd::Preempted { by } if &**by == "stop");
                        Phase::Resting { since: at, quiet, timed_out: false }
                    }
                };
            }
            Record::DeadLettered { messages, placeholder, .. } => {
                let mut kept = self.transcript.messages().to_vec();
                let mut results = 0;
                for message in kept.iter_mut().rev().take(*messages) {
                    results += u64::from(matches!(message, Message::Tool { .. }));
                    match message {
                        Message::User { text, .. } | Message::Tool { text, .. } => {
                            *text = placeholder.clone()
                        }
                        Message::Assistant(_) => {}
                    }
                }
                let accepted = kept.len();
                self.transcript.replace(kept, accepted);
                // A step's results are inserted together: those at the end are the newest there are.
                let last = self.hygiene.last().map_or(0, |id| id.number());
                self.hygiene.take_back(|id| id.number() + results > last);
                self.prefix.renew(BreakCause::Refused);
                self.turn_mut()?.events.clear();
            }
            Record::ObserverAdvanced { observer, through, .. } => {
                self.observers.insert(observer.clone(), *through);
            }
            Record::Scheduled { at, key, text } => {
                self.schedule.insert((*at, key.clone()), text.clone());
            }
            Record::ScheduleKept { at, key } => {
                self.schedule.remove(&(*at, key.clone())).ok_or("it was not scheduled")?;
            }
            Record::Decided { .. }
            | Record::LateDropped { .. }
            | Record::ClockHeld { .. }
            | Record::Recovered => {}
        }
        Ok(())
    }

    pub(super) fn turn_mut(&mut self) -> Result<&mut Turn, &'static str> {
        match &mut self.phase {
            Phase::Turn(turn) => Ok(turn),
            Phase::Resting { .. } | Phase::Waiting(_) => Err("no turn runs"),
        }
    }
}

/// The channels whose messages these events are, each once.
fn channels(events: &[Header]) -> BTreeSet<Arc<str>> {
    let is_channel = |header: &&Header| header.source.kind == SourceKind::Channel;
    events.iter().filter(is_channel).map(|header| header.source.instance.clone()).collect()
}

impl Turn {
    fn new(id: crate::ids::TurnId, cause: TurnCause, first_message: usize) -> Self {
        Turn {
            id,
            cause,
            frame: None,
            context: Default::default(),
            audience: Vec::new(),
            addressed: Vec::new(),
            model: "".into(),
            effort: None,
            epoch: Default::default(),
            bound: None,
            events: Vec::new(),
            first_message,
            steps: 0,
            stage: Stage::Due,
            nudged: BTreeSet::new(),
            wrote: false,
            called: false,
            failing: None,
            vetoes: Vec::new(),
            waits: None,
        }
    }
}
