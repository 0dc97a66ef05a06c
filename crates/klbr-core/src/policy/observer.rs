//! Observers: what hears of committed records, and what it may have the host do.

use std::sync::Arc;

use crate::attention::Mark;
use crate::event::{EventError, Priority, SourceKind};
use crate::ids::Seq;
use crate::time::Timestamp;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The observer's name.
    pub observer: Arc<str>,
    /// The last record that it has dealt with.
    pub through: Seq,
    /// What it wants done, in order.
    pub commands: Vec<HostCommand>,
    /// Why it could not deal with that record, when it was given up.
    pub gave_up: Option<Arc<str>>,
}

impl Observed {
    /// What names the `n`-th event that this report admits.
    pub(crate) fn key(&self, n: usize) -> String {
        format!("{}:{}:{n}", self.observer, self.through)
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
