//! Calls that a running action makes: each is an action `turn.step.n.m` of its own (`C-ID-1`), and ends with its caller.
//!
//! Owns who may call what, what a caller is told, and the account of a caller that did not end well. What happens to a
//! call in between is what happens to any (`calls`).

use std::fmt::Write as _;
use std::sync::Arc;

use super::Agent;
use crate::action::{ActionSpec, Answered, Class, End, FailureKind, Role};
use crate::config::toolset::{function_name, is_function};
use crate::context::Answer;
use crate::ids::{ActionId, Fence};
use crate::input::Command;
use crate::policy::NudgeKind;
use crate::record::{CallResult, Record};
use crate::state::{CallState, EffectStatus, Progress};

/// Effects that an account names one by one.
const MAX_NAMED: usize = 50;

/// Why calls are let go of that have not come to their end.
pub(super) struct Cut {
    /// Behind `Not run: `.
    why: String,
    /// Behind `Begun before `.
    event: String,
}

impl Cut {
    /// Something with a higher claim came.
    pub(super) fn interrupt(by: &str) -> Self {
        let (why, event) = (format!("interrupted by {by}"), format!("the interrupt by {by}"));
        Cut { why, event }
    }

    /// The action that made them came to its end.
    pub(super) fn caller_ended() -> Self {
        let why = "what had called it came to its end".to_owned();
        Cut { why, event: "the end of what had called it".to_owned() }
    }

    /// The action that made them is gone with the process that it ran in.
    pub(super) fn lost() -> Self {
        let why = "the process ended, and with it what had called it".to_owned();
        Cut { why, event: "the process ended".to_owned() }
    }

    /// What policy refuses is asked for again and again.
    fn vetoed(name: &str, times: u32) -> Self {
        let why = format!("{name} was refused {times} times in a row with the same arguments");
        Cut { event: why.clone(), why }
    }

    pub(super) fn why(&self) -> &str {
        &self.why
    }

    pub(super) fn not_asked(&self) -> String {
        format!("Asking after it was {}.", self.why)
    }

    pub(super) fn not_run(&self) -> String {
        format!("Not run: {}.", self.why)
    }

    pub(super) fn cancelled(&self) -> String {
        format!("Cancelled while it ran: {}.", self.why)
    }

    pub(super) fn detached(&self, action: ActionId) -> String {
        format!("Begun before {}; the receipt of {action} follows.", self.event)
    }
}

impl Agent {
    /// Takes in a call of a running action, or refuses it at once.
    pub(super) fn handle_called(
        &mut self,
        ticket: u64,
        fence: Fence,
        caller: ActionId,
        name: Arc<str>,
        arguments: Arc<str>,
    ) {
        match self.next_call_of(fence, caller) {
            Ok(action) => {
                self.live.callers.insert(action, ticket);
                self.record(Record::Called { action, name, arguments });
            }
            Err(why) => {
                let answered = Box::new(Answered::refused(why));
                self.command(Command::Answer { ticket, answered });
            }
        }
    }

    /// The action that the next call of a caller is.
    fn next_call_of(&self, fence: Fence, caller: ActionId) -> Result<ActionId, String> {
        let is_asked_after = self.live.reconciling.contains(&caller);
        if self.live.stopping || self.live.actions.get(&caller) != Some(&fence) || is_asked_after {
            return Err("Not run: what calls it is over.".to_owned());
        }
        if caller.is_inner() {
            return Err("Not run: what is called from a cell calls nothing itself.".to_owned());
        }
        let (Some(turn), Some(call)) = (self.state.turn(), self.call(caller)) else {
            return Err(format!(
                "Not run: the turn of {caller} is over, and what was released since calls nothing. Call it from \
                 a new cell."
            ));
        };
        if !matches!(call.progress, Progress::Attempted { .. }) {
            return Err("Not run: what calls it is over.".to_owned());
        }
        let made = turn.calls_of(caller).count() as u32;
        match made < self.config.limits.inner_calls {
            true => Ok(caller.call(made + 1)),
            false => Err(format!("Not run: {made} calls are as many as one action may make.")),
        }
    }

    /// The action that a call means.
    pub(super) fn callable(&self, call: &CallState) -> Result<&ActionSpec, String> {
        let spec = self.config.action(&call.name);
        if call.action.is_inner() {
            return match spec {
                Some(spec) if is_function(spec) => Ok(spec),
                Some(ActionSpec { role: Role::Cell, .. }) => {
                    Err(format!("Not run: a cell runs no other cell; {} is called from none.", call.name))
                }
                Some(_) => Err("Not waiting: wait() does that in a cell, and ends it.".to_owned()),
                None => Err(unknown(&call.name, self.config.functions())),
            };
        }
        match spec {
            Some(spec) if self.config.is_tool(spec) => Ok(spec),
            Some(spec) if is_function(spec) => {
                let cell = self.config.actions.iter().find(|spec| spec.role == Role::Cell);
                Err(format!(
                    "Not run: {} is no tool. Call {} with `await {}(…)`.",
                    call.name,
                    cell.map_or("a cell", ActionSpec::name),
                    function_name(&call.name)
                ))
            }
            Some(_) | None => Err(unknown(&call.name, self.config.tools())),
        }
    }

    /// Whether a turn that wraps up runs no such action any more (`C-YLD-6`).
    pub(super) fn is_past_the_limit(&self, role: &Role) -> bool {
        let wrapping_up = self.state.turn().is_some_and(|turn| turn.nudged.contains(&NudgeKind::WrapUp));
        wrapping_up
            && match role {
                Role::Ordinary | Role::Mark { .. } => true,
                // Where cells are the only place to speak from, they stay.
                Role::Cell => !self.config.speaks_in_cells(),
                Role::Delivery { .. } | Role::Wait => false,
            }
    }

    /// Refuses what policy has refused again and again, and ends the cell that goes on asking for it.
    pub(super) fn end_loop(&mut self, call: &CallState) {
        let Some(times) = self.state.turn().map(|turn| turn.vetoed(call)) else { return };
        let cut = Cut::vetoed(&call.name, times);
        let text = format!("{} It is not asked for again in this turn.", cut.not_run());
        self.settle(call.action, End::failed(FailureKind::NotRun), text, None);
        if call.action.is_inner() {
            self.close_call(call.action.outer(), &cut);
        }
    }

    /// Tells the caller of an action what came of it, if it was called by one that may still be there.
    pub(super) fn tell_caller(&mut self, answered: Answered) {
        let ticket = answered.action.and_then(|action| self.live.callers.remove(&action));
        if let Some(ticket) = ticket {
            self.command(Command::Answer { ticket, answered: Box::new(answered) });
        }
    }

    /// Shapes an answer as it is inserted, or as the caller of an action is told it.
    pub(super) fn result_of(&self, action: ActionId, answer: &Answer) -> CallResult {
        let result = self.result(answer);
        if action.is_inner() { CallResult::unseen(result) } else { result }
    }

    /// Lets go of what an action has called and what has not come to its end.
    pub(super) fn cut_off_calls_of(&mut self, caller: ActionId, cut: &Cut) {
        let Some(turn) = self.state.turn().filter(|_| !caller.is_inner()) else { return };
        let open: Vec<ActionId> =
            turn.calls_of(caller).filter(|call| !call.is_answered()).map(|call| call.action).collect();
        for action in open {
            self.close_call(action, cut);
        }
    }

    /// What an action did by calls of its own, as the records have it. Of one that ended well only what it cannot
    /// have known itself.
    pub(super) fn account(&self, caller: ActionId, ended_well: bool) -> Option<String> {
        let calls: Vec<&CallState> = self.state.turn()?.calls_of(caller).collect();
        if calls.is_empty() {
            return None;
        }
        let is_effect = |name: &str| self.config.action(name).is_some_and(|spec| spec.class != Class::Pure);
        let effects = calls.into_iter().filter(|call| is_effect(&call.name));
        let told: Vec<(&CallState, &'static str)> = effects
            .map(|call| (call, self.state_of(call)))
            .filter(|(_, (_, settled))| !(ended_well && *settled))
            .map(|(call, (state, _))| (call, state))
            .collect();
        match (told.is_empty(), ended_well) {
            (true, true) => return None,
            (true, false) => return Some("No action that it called has changed anything.".to_owned()),
            (false, _) => {}
        }
        let mut text = "What it did by calling actions, as recorded:".to_owned();
        for (call, state) in told.iter().take(MAX_NAMED) {
            let state = state.replace('_', " ");
            // Writing to a String never fails.
            let _ = write!(text, "\n- {} {}: {state}", call.action, call.name);
        }
        if let Some(more) = told.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            let confirmed = told[MAX_NAMED..].iter().filter(|(_, state)| *state == "confirmed").count();
            let _ = write!(text, "\n- and {more} more, {confirmed} of them confirmed");
        }
        Some(text)
    }

    /// What became of a call, and whether its caller was told that for good.
    fn state_of(&self, call: &CallState) -> (&'static str, bool) {
        let Progress::Answered { end, .. } = &call.progress else { return ("not run", false) };
        let open = self.state.open_effects.get(&call.action).map(|effect| effect.status);
        match (end, open) {
            (_, Some(EffectStatus::Held)) => ("held for review", false),
            (_, Some(EffectStatus::Attempted { .. })) | (None, None) => {
                ("under way, the receipt follows", false)
            }
            (Some(End::Confirmed), None) => ("confirmed", true),
            (Some(End::Unknown), None) => ("unknown whether it happened", false),
            (Some(End::Failed { why }), None) => (why.as_str(), *why != FailureKind::Cancelled),
        }
    }

    /// Whether the caller of an action runs no more, and will not come back.
    pub(super) fn is_orphan(&self, action: ActionId) -> bool {
        action.is_inner() && !self.live.actions.contains_key(&action.outer())
    }
}

fn unknown<'a>(name: &str, actions: impl Iterator<Item = &'a ActionSpec>) -> String {
    let names: Vec<&str> = actions.map(ActionSpec::name).collect();
    format!("There is no action {name:?}. There are: {}.", names.join(", "))
}
