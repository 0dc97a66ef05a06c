//! The calls of the reply that is being answered, those that they make themselves, and what policy refuses of them.

use std::sync::Arc;

use super::{CallState, Failing, Progress, Stage, State, Turn, Veto};
use crate::action::{End, FailureKind};
use crate::context::Trace;
use crate::ids::ActionId;
use crate::model::Message;
use crate::record::CallResult;

/// Refused calls that are remembered: more than a loop goes through.
const MAX_VETOES: usize = 64;

impl State {
    pub(super) fn call_mut(&mut self, action: ActionId) -> Result<&mut CallState, &'static str> {
        match &mut self.turn_mut()?.stage {
            Stage::Acting { calls, .. } => {
                calls.iter_mut().find(|call| call.action == action).ok_or("no such call")
            }
            Stage::Due | Stage::Sampling { .. } => Err("no calls are being answered"),
        }
    }

    /// Gives a call its result, and puts the step's results into the transcript once all are there.
    pub(super) fn answer(
        &mut self,
        action: ActionId,
        result: &CallResult,
        end: Option<End>,
    ) -> Result<(), &'static str> {
        self.hygiene.apply(&result.entry());
        if let Trace::Remembered { memory, pinned } = &result.trace {
            self.prefix.remembered(*memory, pinned.as_deref());
        }
        let ran = !matches!(&end, Some(End::Failed { why: FailureKind::NotRun | FailureKind::Invalid }));
        if ran {
            self.idle_waits = 0;
        }
        let call = self.call_mut(action)?;
        if action.is_inner() {
            // Whoever made it has been told; what it said stands in the record.
            call.arguments = "".into();
            call.progress = Progress::Answered { result: "".into(), end };
            return Ok(());
        }
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        let failed = matches!(end, Some(End::Failed { .. }));
        call.progress = Progress::Answered { result: result.inserted(), end };
        let turn = self.turn_mut()?;
        turn.failing = match (failed, turn.failing.take()) {
            (false, _) => None,
            (true, Some(f)) if f.name == name && f.arguments == arguments => {
                Some(Failing { times: f.times + 1, ..f })
            }
            (true, _) => Some(Failing { name, arguments, times: 1 }),
        };
        self.flush()
    }

    /// Inserts the results of a step, in the order of its calls, when every call but the wait's has one.
    pub(super) fn flush(&mut self) -> Result<(), &'static str> {
        let turn = self.turn_mut()?;
        let Stage::Acting { calls, .. } = &turn.stage else { return Ok(()) };
        let is_settled = |call: &CallState| call.is_answered() || matches!(call.progress, Progress::Entered);
        if calls.is_empty() || !calls.iter().all(is_settled) {
            return Ok(());
        }
        let results: Vec<(Arc<str>, Arc<str>)> = calls
            .iter()
            .filter(|call| !call.action.is_inner())
            .filter_map(|call| match &call.progress {
                Progress::Answered { result, .. } => Some((call.call_id.clone(), result.clone())),
                Progress::Proposed
                | Progress::Intended { .. }
                | Progress::Attempted { .. }
                | Progress::Ended { .. }
                | Progress::Yields { .. }
                | Progress::Entered => None,
            })
            .collect();
        turn.stage = Stage::Due;
        for (call_id, text) in results {
            self.transcript.push(Message::Tool { call_id, text });
        }
        Ok(())
    }
}

impl Turn {
    /// The calls of the reply that is being answered, each followed by those that it makes.
    pub(crate) fn calls(&self) -> &[CallState] {
        match &self.stage {
            Stage::Acting { calls, .. } => calls,
            Stage::Due | Stage::Sampling { .. } => &[],
        }
    }

    /// The calls that a running action has made, in order.
    pub(crate) fn calls_of(&self, caller: ActionId) -> impl Iterator<Item = &CallState> {
        self.calls().iter().filter(move |call| call.action.is_inner() && call.action.outer() == caller)
    }

    pub(crate) fn call(&self, action: ActionId) -> Option<&CallState> {
        self.calls().iter().find(|call| call.action == action)
    }

    /// How often in a row policy has refused this very call.
    pub(crate) fn vetoed(&self, call: &CallState) -> u32 {
        let hash = call.hash();
        self.vetoes.iter().find(|veto| veto.call == hash).map_or(0, |veto| veto.times)
    }

    /// Policy has refused a call once more.
    pub(super) fn veto(&mut self, action: ActionId) {
        let Some(call) = self.call(action) else { return };
        let (name, hash, before) = (call.name.clone(), call.hash(), self.vetoed(call));
        self.vetoes.retain(|veto| veto.call != hash);
        if self.vetoes.len() >= MAX_VETOES {
            self.vetoes.remove(0);
        }
        self.vetoes.push(Veto { name, call: hash, times: before + 1 });
    }

    /// Policy has allowed a call: what it refused of the same is no row any more.
    pub(super) fn forgive(&mut self, action: ActionId) {
        let Some(hash) = self.call(action).map(CallState::hash) else { return };
        self.vetoes.retain(|veto| veto.call != hash);
    }
}
