//! Yielding: how a turn ends, with or without a wait, and what is said before it may (`C-YLD-*`).

use std::sync::Arc;

use super::Agent;
use super::live::Then;
use super::render;
use super::wait::WaitRequest;
use crate::action::{End, FailureKind};
use crate::config::toolset::function_name;
use crate::event::{Audience, Conversation};
use crate::ids::{ActionId, EventId};
use crate::policy::{NudgeKind, Question, nudge_text};
use crate::record::{Record, TurnCause, TurnEnd};
use crate::state::{CallState, Progress, Turn};

impl Agent {
    /// Every other call is answered: enters the wait, or says why not (`C-YLD-2`).
    pub(super) fn consider_waits(&mut self) -> bool {
        let Some(turn) = self.state.turn() else { return false };
        let asked = |call: &CallState| match &call.progress {
            Progress::Proposed => Some((call.action, call.arguments.clone())),
            Progress::Yields { wait, .. } => Some((call.action, wait.clone())),
            Progress::Intended { .. }
            | Progress::Attempted { .. }
            | Progress::Ended { .. }
            | Progress::Answered { .. }
            | Progress::Entered => None,
        };
        let mut waits = turn.calls().iter().filter_map(asked);
        let Some((action, arguments)) = waits.next() else { return false };
        let seconds: Vec<ActionId> = waits.map(|(second, _)| second).collect();
        let failed = |call: &&CallState| match &call.progress {
            Progress::Answered { end, .. } => !matches!(end, Some(End::Confirmed)),
            Progress::Proposed
            | Progress::Intended { .. }
            | Progress::Attempted { .. }
            | Progress::Yields { .. }
            | Progress::Ended { .. }
            | Progress::Entered => false,
        };
        // A second wait that was refused is no reason against the first; what a cell called, it has dealt with.
        let is_beside = |call: &&CallState| !call.action.is_inner() && !self.is_wait(&call.name);
        let failed = turn.calls().iter().filter(is_beside).find(failed).map(|call| call.name.clone());
        for second in seconds {
            let why = "a turn waits once, and another wait stands before this one";
            self.refuse_wait(second, FailureKind::Invalid, why);
        }
        if let Some(failed) = failed {
            let why = format!("{failed} beside it did not succeed; see its result");
            self.refuse_wait(action, FailureKind::NotRun, &why);
            return true;
        }
        match self.admit_wait(&arguments) {
            Ok(request) => self.yield_turn(Some((action, request))),
            Err(why) => {
                self.live.short_waits += 1;
                self.refuse_wait(action, FailureKind::Invalid, &why);
                true
            }
        }
    }

    pub(super) fn refuse_wait(&mut self, action: ActionId, why: FailureKind, text: &str) {
        let mut answer = format!("Not waiting: {text}.");
        if let Some(Progress::Yields { told, .. }) = self.call(action).map(|call| &call.progress) {
            answer = format!("{told}\n\n{answer}");
        }
        self.settle(action, End::failed(why), answer, None);
    }

    /// Ends the turn, unless something has to be said to the model first.
    pub(super) fn yield_turn(&mut self, wait: Option<(ActionId, WaitRequest)>) -> bool {
        let Some(turn) = self.state.turn() else { return false };
        if let Some((kind, text)) = self.nudge_before_yield(turn, wait.is_some()) {
            if self.live.is_asking(Then::Nudge(kind)) {
                return false;
            }
            self.ask(Question::Nudge { kind, text: text.into() }, Then::Nudge(kind));
            return true;
        }
        let owed = turn.owed().next().is_some();
        let end = if turn.nudged.contains(&NudgeKind::WrapUp) {
            TurnEnd::LimitReached
        } else if owed {
            TurnEnd::NothingDelivered
        } else if wait.is_some() {
            TurnEnd::Waits
        } else {
            TurnEnd::Yielded
        };
        if let Some((action, request)) = wait {
            let is_short = request.duration.as_secs() == 0;
            self.live.short_waits = if is_short { self.live.short_waits + 1 } else { 0 };
            self.record(Record::WaitEntered {
                action,
                until: self.now() + request.duration,
                duration: request.duration,
                shortened: request.shortened,
                reason: request.reason,
            });
        }
        self.end_turn(end, Vec::new());
        true
    }

    /// The nudge that a turn gets before it may end, once (`C-YLD-5`).
    fn nudge_before_yield(&self, turn: &Turn, waits: bool) -> Option<(NudgeKind, String)> {
        let asked = |kind| turn.nudged.contains(&kind) || self.live.declined.contains(&kind);
        if !turn.wrote || asked(NudgeKind::WrapUp) {
            return None;
        }
        let owed: Vec<String> = turn.owed().filter_map(|audience| self.call_for(audience)).collect();
        if !owed.is_empty() && !asked(NudgeKind::Delivery) {
            return Some((NudgeKind::Delivery, nudge_text(NudgeKind::Delivery, &owed.join(" or "))));
        }
        let ambient = turn.cause == TurnCause::Events && turn.audience.is_empty();
        (ambient && !turn.called && !waits && !asked(NudgeKind::Silence))
            .then(|| (NudgeKind::Silence, nudge_text(NudgeKind::Silence, "")))
    }

    /// How the model speaks to someone, as a nudge tells it.
    fn call_for(&self, audience: &Audience) -> Option<String> {
        let action = self.config.delivery_action(&audience.channel)?;
        let action = match self.config.speaks_in_cells() {
            true => format!("`await {}(…)`", function_name(action)),
            false => action.to_owned(),
        };
        let conversation = audience.conversation.clone().and_then(|id| {
            let conversation = Conversation { instance: audience.channel.clone(), id };
            self.state.aliases.alias(&conversation).cloned()
        });
        Some(match conversation {
            Some(alias) => format!("{action} to {alias}"),
            None => action,
        })
    }

    /// Puts a nudge in, or goes on without it when policy wants none.
    pub(super) fn nudge(&mut self, kind: NudgeKind, text: Option<Arc<str>>) {
        let Some(turn) = self.state.turn() else { return };
        let Some(text) = text else {
            self.live.declined.insert(kind);
            if kind == NudgeKind::Idle {
                self.end_turn(TurnEnd::Yielded, Vec::new());
            }
            return;
        };
        let is_open = |call: &&CallState| call.yields() || matches!(call.progress, Progress::Proposed);
        let waits: Vec<ActionId> = turn.calls().iter().filter(is_open).map(|call| call.action).collect();
        for action in waits {
            self.refuse_wait(action, FailureKind::NotRun, "something is to be done first");
        }
        self.record(Record::Nudged { nudge: kind, text: render::nudge(&text) });
    }

    /// Ends the running turn for good.
    pub(super) fn end_turn(&mut self, end: TurnEnd, returned: Vec<EventId>) {
        let Some(turn) = self.state.turn() else { return };
        let turn = turn.id;
        self.record(Record::TurnEnded { turn, end, returned });
        self.live.forget_turn();
    }
}
