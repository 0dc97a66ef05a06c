//! What goes on at the moment: pieces that stream, actions that run, a wait, a retry, effects that are held.

use std::collections::BTreeMap;
use std::sync::Arc;

use klbr_core::ids::ActionId;
use klbr_core::time::{Human, Timestamp};
use klbr_core::update::Happening;

use super::entry::{Entry, Kind};
use crate::text::clean_line;

/// What goes on at the moment.
#[derive(Debug, Default)]
pub(super) struct Live {
    at: Timestamp,
    think: String,
    scratch: String,
    call: Option<String>,
    turn: bool,
    asked: bool,
    running: BTreeMap<ActionId, Running>,
    ended: Option<Running>,
    held: BTreeMap<ActionId, Running>,
    wait: Option<(Timestamp, Option<Arc<str>>)>,
    retry_at: Option<Timestamp>,
    compacting: bool,
}

/// An action that has begun, or is held.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) name: Arc<str>,
    pub(super) arguments: Arc<str>,
    since: Timestamp,
}

/// One thing that goes on, in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// What it is.
    pub(crate) kind: Kind,
    /// The line; nothing in it works on a terminal.
    pub(crate) text: String,
}

impl Live {
    pub(super) fn in_turn(&self) -> bool {
        self.turn
    }

    pub(super) fn held(&self) -> Option<ActionId> {
        self.held.keys().next().copied()
    }

    /// The action that the last happening ended.
    pub(super) fn take_ended(&mut self) -> Option<Running> {
        self.ended.take()
    }

    pub(super) fn streaming(&self) -> Vec<Entry> {
        let pieces = [(Kind::Think, &self.think), (Kind::Scratch, &self.scratch)];
        let filled = pieces.into_iter().filter(|(_, text)| !text.trim().is_empty());
        filled.map(|(kind, text)| Entry::new(self.at, kind, text)).collect()
    }

    pub(super) fn states(&self, now: Timestamp) -> Vec<State> {
        let mut states = Vec::new();
        let mut add = |kind, text: String| states.push(State { kind, text: clean_line(&text) });
        for running in self.running.values() {
            let elapsed = Human(now.since(running.since));
            add(Kind::Action, format!("{} for {elapsed}", running.name));
        }
        if let Some(at) = self.retry_at {
            add(Kind::Failure, format!("the model is asked again in {}", Human(at.since(now))));
        } else if let Some(name) = &self.call {
            add(Kind::Action, format!("asks for {name} …"));
        } else if self.turn && self.asked {
            let doing = if self.scratch.is_empty() { "thinks" } else { "writes scratch" };
            add(Kind::Think, format!("the model {doing} …"));
        }
        if let Some((until, reason)) = &self.wait {
            let reason = reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
            add(Kind::Wait, format!("{} left{reason}", Human(until.since(now))));
        }
        if self.compacting {
            add(Kind::Note, "a summary is being made …".to_owned());
        }
        for (action, held) in &self.held {
            add(Kind::Held, format!("{action} {} {}", held.name, held.arguments));
        }
        states
    }

    fn clear_pieces(&mut self) {
        self.think.clear();
        self.scratch.clear();
        self.call = None;
    }

    pub(super) fn apply(&mut self, at: Timestamp, happening: &Happening) {
        self.at = at;
        match happening {
            Happening::ThinkDelta { text } => self.piece(|live| live.think.push_str(text)),
            Happening::ScratchDelta { text } => self.piece(|live| live.scratch.push_str(text)),
            Happening::CallDelta { name } => self.piece(|live| live.call = Some(name.clone())),
            // What opens a turn is shown just before it begins.
            Happening::Shown { .. } => self.turn = true,
            Happening::TurnStarted { .. } => {
                self.clear_pieces();
                (self.turn, self.asked, self.wait) = (true, true, None);
            }
            Happening::Replied { .. } | Happening::ReplyDropped { .. } => {
                self.clear_pieces();
                (self.asked, self.retry_at) = (false, None);
            }
            Happening::SamplingFailed { retry_at, .. } => {
                self.clear_pieces();
                self.retry_at = *retry_at;
            }
            Happening::ActionStarted { action, name, arguments } => {
                self.held.remove(action);
                let running = Running { name: name.clone(), arguments: arguments.clone(), since: at };
                self.running.insert(*action, running);
            }
            Happening::Held { action, name, arguments, .. } => {
                let held = Running { name: name.clone(), arguments: arguments.clone(), since: at };
                self.held.insert(*action, held);
                self.asked_again();
            }
            Happening::ActionEnded { action, end, .. } => {
                let held = if end.is_some() { self.held.remove(action) } else { None };
                self.ended = self.running.remove(action).or(held);
                self.asked_again();
            }
            Happening::Delivered { action, .. } => {
                self.running.remove(action);
                self.held.remove(action);
                self.asked_again();
            }
            Happening::Waiting { until, reason } => {
                (self.wait, self.asked) = (Some((*until, reason.clone())), false);
            }
            Happening::WaitEnded { .. } => self.wait = None,
            Happening::TurnEnded { .. } => {
                self.clear_pieces();
                self.running.clear();
                (self.turn, self.asked, self.retry_at) = (false, false, None);
            }
            Happening::Recovered => {
                self.clear_pieces();
                self.retry_at = None;
            }
            Happening::Compacting => self.compacting = true,
            Happening::Compacted { .. } | Happening::CompactionFailed { .. } | Happening::Reset => {
                self.compacting = false;
            }
            Happening::Nudged { .. } => self.asked_again(),
            Happening::Admitted { .. }
            | Happening::Consumed { .. }
            | Happening::Marked { .. }
            | Happening::Activated { .. }
            | Happening::PrefixMade { .. }
            | Happening::PrefixBroken { .. }
            | Happening::SoulChanged { .. }
            | Happening::DeadLettered { .. }
            | Happening::ClockHeld => {}
        }
    }

    fn piece(&mut self, add: impl FnOnce(&mut Self)) {
        (self.turn, self.asked, self.retry_at) = (true, true, None);
        add(self);
    }

    /// When nothing runs any more, the model's next reply is what is waited for.
    fn asked_again(&mut self) {
        self.asked = self.turn && self.running.is_empty();
    }
}
