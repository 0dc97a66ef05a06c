//! Observers: what hears of committed records, and what it may have the host do.

use std::sync::Arc;

use crate::attention::Mark;
use crate::event::{EventError, Priority, SourceKind};
use crate::ids::Seq;
use crate::record::Record;
use crate::time::Timestamp;

/// The kinds of record that observers hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heard {
    /// An event was admitted.
    EventAdmitted,
    /// Somebody decided about an attention item.
    AttentionMarked,
    /// A turn began.
    TurnStarted,
    /// A turn is over.
    TurnEnded,
    /// An action ended: its call was answered with that, or its receipt came later.
    EffectSettled,
    /// A policy or a soul was put in force.
    ActivationChanged,
    /// The front of the transcript was swapped for a summary.
    Compacted,
}

impl Heard {
    /// Every kind.
    pub const ALL: [Heard; 7] = [
        Heard::EventAdmitted,
        Heard::AttentionMarked,
        Heard::TurnStarted,
        Heard::TurnEnded,
        Heard::EffectSettled,
        Heard::ActivationChanged,
        Heard::Compacted,
    ];

    /// Its name, as an observer is bound to it.
    pub fn as_str(self) -> &'static str {
        match self {
            Heard::EventAdmitted => "event.admitted",
            Heard::AttentionMarked => "attention.marked",
            Heard::TurnStarted => "turn.started",
            Heard::TurnEnded => "turn.ended",
            Heard::EffectSettled => "effect.settled",
            Heard::ActivationChanged => "activation.changed",
            Heard::Compacted => "compacted",
        }
    }

    /// Whether a record is of this kind.
    pub fn hears(self, record: &Record) -> bool {
        match self {
            Heard::EventAdmitted => matches!(record, Record::Admitted { .. }),
            Heard::AttentionMarked => matches!(record, Record::Marked { .. }),
            Heard::TurnStarted => matches!(record, Record::TurnStarted { .. }),
            Heard::TurnEnded => matches!(record, Record::TurnEnded { .. }),
            Heard::EffectSettled => matches!(record, Record::Settled { .. } | Record::Receipt { .. }),
            Heard::ActivationChanged => {
                matches!(record, Record::Activated { .. } | Record::SoulChanged { .. })
            }
            Heard::Compacted => matches!(record, Record::Compacted { .. }),
        }
    }
}

/// What an observer may have the host do. None of it delivers anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCommand {
    /// Admits an event, as a job of the observer's name, of a priority that never preempts.
    Admit {
        /// What is said.
        text: Arc<str>,
        /// Whether it wakes the agent.
        priority: Priority,
    },
    /// Decides about an attention item.
    Mark(Box<Mark>),
    /// Admits an event at a later moment; at once when the moment is past.
    Schedule {
        /// When.
        at: Timestamp,
        /// What is said then.
        text: Arc<str>,
    },
}

/// What an observer has come to: it has dealt with every record up to one, and wants these things done.
///
/// Both are recorded together, so that a repeat of the same report changes nothing more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The observer's name.
    pub observer: Arc<str>,
    /// The last record that it has dealt with.
    pub through: Seq,
    /// What it wants done, in order.
    pub commands: Vec<HostCommand>,
    /// Why it could not deal with that record, when it was given up.
    pub gave_up: Option<Arc<str>>,
    /// Whether it is put there, also back, rather than come there: its activation says so.
    pub placed: bool,
}

impl Observed {
    /// What names the `n`-th event that this report admits, in front of record `at`: one that was put back hears a
    /// record again.
    pub(crate) fn key(&self, n: usize, at: Seq) -> String {
        format!("{}:{}:{n}@{at}", self.observer, self.through)
    }

    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// Fails when it has no name, or when an event would preempt.
    pub fn validate(&self) -> Result<(), EventError> {
        if self.observer.is_empty() {
            return Err(EventError::Nameless);
        }
        let preempts = |command: &HostCommand| match command {
            HostCommand::Admit { priority, .. } => Some(*priority).filter(|priority| priority.preempts()),
            HostCommand::Mark(_) | HostCommand::Schedule { .. } => None,
        };
        match self.commands.iter().find_map(preempts) {
            Some(priority) => Err(EventError::Untrusted { kind: SourceKind::Job, priority }),
            None => Ok(()),
        }
    }
}
