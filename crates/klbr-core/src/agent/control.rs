//! The operator's management commands: consumed at once, in order (`B-EVENT-2`, `C-SOUL`).

use super::Agent;
use super::interrupt::Unanswered;
use crate::action::{FailureKind, Outcome};
use crate::event::{Control, Priority};
use crate::ids::ActionId;
use crate::input::Command;
use crate::policy::Activation;
use crate::record::{Record, WaitEnd};
use crate::state::{EffectStatus, Phase};

impl Agent {
    /// Carries out the oldest command that waits.
    pub(super) fn take_control(&mut self) -> bool {
        let Some(header) = self.state.inbox.waiting(Priority::Control).values().next() else { return false };
        let (event, control) = (header.id, header.control.clone());
        match control {
            Some(Control::Interrupt) => self.end_for("interrupt", Unanswered::AreDropped),
            Some(Control::Stop) => self.end_for("stop", Unanswered::AreDropped),
            Some(Control::Reset) => {
                self.end_for("reset", Unanswered::AreDropped);
                self.record(Record::Reset);
            }
            Some(Control::Compact) => {
                self.end_for("compact", Unanswered::WaitAgain);
                self.want_compaction();
            }
            Some(Control::Soul { text }) => {
                self.end_for("soul update", Unanswered::WaitAgain);
                self.record(Record::SoulChanged { epoch: self.state.epoch.next(), text });
            }
            Some(Control::Resolve { action, allow }) => self.resolve(action, allow),
            Some(Control::Activate(activation)) => self.activate(*activation),
            Some(Control::Mark(mark)) => self.mark_as_operator(&mark),
            // `NewEvent::validate` lets no event of this priority in without a command.
            None => {}
        }
        self.record(Record::Consumed { event });
        true
    }

    /// Ends whatever runs, in the command's name.
    fn end_for(&mut self, by: &str, unanswered: Unanswered) {
        if self.state.compaction.requested.is_some() {
            self.abandon_summary(by);
        }
        match self.state.phase {
            Phase::Turn(_) => self.interrupt_turn(by, unanswered),
            Phase::Waiting(_) => self.end_wait(WaitEnd::Commanded { by: by.into() }),
            Phase::Resting { .. } => self.live.forget_turn(),
        }
    }

    /// Puts a policy in force. A turn that runs keeps the one that it began with.
    fn activate(&mut self, activation: Activation) {
        let in_force = self.state.epoch;
        if let Some(expected) = activation.expected.filter(|expected| *expected != in_force) {
            return self.drop_late(format!("an activation that follows on {expected}, not {in_force}"));
        }
        if activation.now {
            self.end_for("activation", Unanswered::WaitAgain);
        }
        let (epoch, bound) = (in_force.next(), activation.bindings());
        let Activation { manifest, soul, cause, .. } = activation;
        self.record(Record::Activated { epoch, manifest: manifest.clone(), bound, soul, cause });
        self.command(Command::Activate { epoch, manifest });
    }

    /// Decides about an effect that was held for the operator.
    fn resolve(&mut self, action: ActionId, allow: bool) {
        let held = |effect: &&crate::state::Effect| effect.status == EffectStatus::Held;
        if self.state.open_effects.get(&action).filter(held).is_none() {
            return self.drop_late(format!("a decision about {action}, which is not held"));
        }
        if allow {
            self.record(Record::Attempted { action, number: 1 });
            self.dispatch(action);
        } else {
            self.receipt(action, Outcome::failed(FailureKind::Denied, "denied by the operator"));
        }
    }
}
