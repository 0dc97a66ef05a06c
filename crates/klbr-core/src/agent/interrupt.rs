//! Preemption: a turn is closed validly because something has a higher claim (`B-EVENT-2`, `C-EFF-2`).

use super::Agent;
use super::inner::Cut;
use super::live::Purpose;
use crate::action::{Answered, Class, End, FailureKind};
use crate::context::Answer;
use crate::event::{Header, Priority, SourceKind};
use crate::ids::{ActionId, EventId, StepId};
use crate::input::Command;
use crate::model::Message;
use crate::record::{Record, TurnEnd};
use crate::state::{CallState, Phase, Progress, Stage};

/// What is told of an attempt whose process ended before it did.
const CUT_OFF: &str = "The process ended while this was under way. Whether it happened is not known.";

/// What stands for a reply that had no text when it was dropped.
const INTERRUPTED: &str = "(interrupted)";

/// What a turn is preempted by when the operator speaks.
const OPERATOR: &str = "operator";

/// How often a preempted turn gives one event back.
const MAX_RETURNS: u8 = 2;

/// Whether a preempted turn's unanswered events wait again (`C-FRM-3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    WaitAgain,
    AreDropped,
}

impl Agent {
    /// Makes way for the operator's words, whatever the agent is doing.
    pub(super) fn preempt(&mut self) -> bool {
        if self.state.inbox.waiting(Priority::Operator).is_empty() {
            return false;
        }
        if self.state.compaction.requested.is_some() {
            self.abandon_summary("an operator's message came");
            return true;
        }
        if matches!(self.state.phase, Phase::Turn(_)) {
            self.interrupt_turn(OPERATOR, Unanswered::WaitAgain);
            return true;
        }
        // What else the frame would have shown is not asked any more.
        if let Some(cause) = self.live.stop_choosing() {
            self.load(Purpose::Open(cause));
            return true;
        }
        // A frame that is being made without the operator's words is made anew.
        let stale = self.live.loading.take_if(|loading| {
            matches!(loading.purpose, Purpose::Open(_))
                && !loading.selection.events.iter().any(|h| h.source.kind == SourceKind::Operator)
        });
        stale.is_some()
    }

    /// Lets go of everything that can be let go of, so that the process can end. The turn itself goes on
    /// when the agent is restored (`B-ID-3`).
    pub(super) fn handle_shutdown(&mut self) {
        self.live.stopping = true;
        if let Some(sampling) = self.live.sampling.take() {
            self.command(Command::DropSampling { fence: sampling.fence });
        }
        let Some(turn) = self.state.turn() else { return };
        let is_cancellable = |name: &str| self.config.action(name).is_some_and(|spec| spec.cancellable);
        let running: Vec<ActionId> = turn
            .calls()
            .iter()
            .filter(|call| matches!(call.progress, Progress::Attempted { .. }) && is_cancellable(&call.name))
            .map(|call| call.action)
            .collect();
        for action in running {
            self.close_call(action, &Cut::interrupt("the host's shutdown"));
        }
    }

    /// Ends the running turn: its sampling is dropped, its actions are killed or detached, and every call
    /// has its result.
    pub(super) fn interrupt_turn(&mut self, by: &str, unanswered: Unanswered) {
        self.close_transcript(by);
        let returned = match unanswered {
            Unanswered::WaitAgain => self.unanswered(by),
            Unanswered::AreDropped => Vec::new(),
        };
        self.end_turn(TurnEnd::Preempted { by: by.into() }, returned);
    }

    fn close_transcript(&mut self, by: &str) {
        let Some(turn) = self.state.turn() else { return };
        match &turn.stage {
            Stage::Due => {
                // The request was never sent: a transcript that ends with results is valid as it stands.
                let step = StepId { turn: turn.id, number: turn.steps + 1 };
                if matches!(self.state.transcript.messages().last(), Some(Message::User { .. })) {
                    self.abort_sampling(step, INTERRUPTED);
                }
            }
            Stage::Sampling { step, .. } => {
                let step = *step;
                let text = self.live.sampling.take().map(|sampling| {
                    self.step.commands.push(Command::DropSampling { fence: sampling.fence });
                    sampling.text
                });
                self.abort_sampling(step, text.as_deref().unwrap_or_default());
            }
            Stage::Acting { calls, .. } => {
                let open: Vec<ActionId> = calls
                    .iter()
                    .filter(|call| !call.is_answered() && !call.action.is_inner())
                    .map(|call| call.action)
                    .collect();
                for action in open {
                    self.close_call(action, &Cut::interrupt(by));
                }
            }
        }
    }

    /// Puts one assistant message in the place of a reply that never became whole (`C-MSG-3`).
    pub(super) fn abort_sampling(&mut self, step: StepId, text: &str) {
        let text = if text.trim().is_empty() { INTERRUPTED } else { text };
        self.record(Record::SamplingAborted { step, text: text.into() });
    }

    /// Ends a call that has not come to its end, and before it those that it has made itself.
    pub(super) fn close_call(&mut self, action: ActionId, cut: &Cut) {
        let Some(CallState { name, progress, .. }) = self.call(action).cloned() else { return };
        let cancellable = self.config.action(&name).is_some_and(|spec| spec.cancellable);
        match progress {
            Progress::Attempted { class, .. } if cancellable || self.is_idle(action, class) => {
                let fence = self.live.actions.remove(&action);
                if let Some(fence) = fence {
                    self.command(Command::Cancel { fence, action });
                }
                self.cut_off_calls_of(action, cut);
                let is_ours = fence.is_some() && !self.live.reconciling.remove(&action);
                let (end, text) = match class {
                    // What an earlier process began is not there to be killed, and was only asked after.
                    Class::Idempotent | Class::Reversible | Class::Irreversible if !is_ours => {
                        (End::Unknown, format!("{CUT_OFF} {}", cut.not_asked()))
                    }
                    Class::Pure => (End::failed(FailureKind::Cancelled), cut.cancelled()),
                    Class::Idempotent | Class::Reversible | Class::Irreversible => {
                        let text = format!("{} What it had done until then is not known.", cut.cancelled());
                        (End::failed(FailureKind::Cancelled), text)
                    }
                };
                let text = self.with_account(action, text);
                self.settle(action, end, text, None);
            }
            Progress::Attempted { .. } => {
                self.cut_off_calls_of(action, cut);
                let text = self.with_account(action, cut.detached(action));
                let result = self.result_of(action, &Answer::text(text));
                let told = result.full.clone();
                self.record(Record::Detached { action, result });
                self.tell_caller(Answered::of(action, None, told));
            }
            Progress::Proposed | Progress::Intended { .. } => {
                self.settle(action, End::failed(FailureKind::Cancelled), cut.not_run(), None);
            }
            Progress::Yields { .. } => self.refuse_wait(action, FailureKind::Cancelled, cut.why()),
            Progress::Ended { .. } => self.shape(action, None),
            Progress::Answered { .. } | Progress::Entered => {}
        }
    }

    /// Whether an attempt of an earlier process changed nothing, and is made no more.
    fn is_idle(&self, action: ActionId, class: Class) -> bool {
        class == Class::Pure && !self.live.actions.contains_key(&action)
    }

    fn with_account(&self, action: ActionId, text: String) -> String {
        match self.account(action, false) {
            Some(account) => format!("{text}\n\n{account}"),
            None => text,
        }
    }

    /// The turn's events that nobody has been answered for, at most twice each. What the operator said is
    /// still in view when the operator says more, and only then does not wait again.
    fn unanswered(&self, by: &str) -> Vec<EventId> {
        let Some(turn) = self.state.turn() else { return Vec::new() };
        let is_open = |header: &Header| !turn.addressed.iter().any(|one| one.reaches(&header.audience()));
        turn.events
            .iter()
            .filter(|header| match header.source.kind {
                SourceKind::Channel | SourceKind::Timer | SourceKind::Job | SourceKind::Team => true,
                SourceKind::Operator => by != OPERATOR,
                SourceKind::System => false,
            })
            .filter(|header| header.returned < MAX_RETURNS && is_open(header))
            .map(|header| header.id)
            .collect()
    }
}
