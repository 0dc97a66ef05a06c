//! What a cell answers with: its end, its parts, its output, and what it did.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Acted;
use super::keeper::Stop;
use crate::process::output::Kept;
use crate::protocol::{CellOutcome, Part, WaitAsked};
use crate::session::wire::CellEnded;
use crate::worker::supervise::LastWords;

/// The answer to a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellAnswer {
    /// Which life of the workbench ran it; 0 when none did.
    pub generation: u64,
    /// How it ended.
    pub end: CellEnd,
    /// What it shows, each part bounded.
    pub parts: Vec<Part>,
    /// What it printed.
    pub stdout: Printed,
    /// What it printed to standard error.
    pub stderr: Printed,
    /// The variables that were lost since the last answer, when the workbench was started anew in between.
    pub state_lost: Option<Vec<Arc<str>>>,
    /// The actions that it called.
    pub acts: Vec<Acted>,
    /// How many processes it left behind; they were killed.
    pub survivors: usize,
    /// How long it took.
    pub took: Duration,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum CellEnd {
    /// It ran to its end.
    Done,
    /// It raised; its exception is the last part.
    Raised,
    /// It ended with a wait.
    Waits(WaitAsked),
    /// It was interrupted.
    Interrupted {
        /// What ended it.
        by: Rung,
    },
    /// It ran longer than it may.
    TimedOut {
        /// What ended it.
        by: Rung,
    },
    /// The workbench died under it.
    Died {
        /// How.
        reason: Arc<str>,
    },
    /// The workbench was started anew while it waited for its turn. It did not run.
    Aborted {
        /// The generation that it was meant for.
        queued_for: u64,
    },
    /// There is no workbench. It did not run.
    Unavailable {
        /// Why.
        reason: Arc<str>,
    },
}

/// A rung of the ladder that ends a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Its task was cancelled. Variables stay.
    Task,
    /// It was interrupted as by Ctrl-C. Variables stay.
    Signal,
    /// The whole group was killed. Variables are gone.
    Kill,
}

/// One stream of a cell's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Printed {
    /// Its beginning and its end.
    pub text: Arc<str>,
    /// How many bytes it has altogether.
    pub bytes: u64,
    /// The file that has all of it, if something is left out above.
    pub whole: Option<PathBuf>,
}

impl From<&Kept> for Printed {
    fn from(kept: &Kept) -> Self {
        let whole = kept.whole().map(std::path::Path::to_owned);
        Printed { text: kept.text().into(), bytes: kept.total(), whole }
    }
}

fn stopped_by((why, by): (Stop, Rung)) -> CellEnd {
    match why {
        Stop::Interrupted => CellEnd::Interrupted { by },
        Stop::TimedOut => CellEnd::TimedOut { by },
    }
}

impl CellAnswer {
    /// The answer of a cell that did not run.
    pub(super) fn without(end: CellEnd) -> Self {
        CellAnswer {
            generation: 0,
            end,
            parts: Vec::new(),
            stdout: Printed::default(),
            stderr: Printed::default(),
            state_lost: None,
            acts: Vec::new(),
            survivors: 0,
            took: Duration::ZERO,
        }
    }

    pub(super) fn of(ended: CellEnded, stopped: Option<(Stop, Rung)>) -> Self {
        let reply = ended.reply;
        let end = match (reply.outcome, reply.wait, stopped) {
            (CellOutcome::Yielded, Some(wait), None) => CellEnd::Waits(wait),
            // It came to its end in the moment in which it was stopped, or it was stopped.
            (_, _, Some(stopped)) => stopped_by(stopped),
            (CellOutcome::Ok, _, None) => CellEnd::Done,
            (CellOutcome::Raised | CellOutcome::Cancelled | CellOutcome::Yielded, _, None) => CellEnd::Raised,
        };
        let (stdout, stderr) = (Printed::from(&ended.stdout), Printed::from(&ended.stderr));
        CellAnswer { parts: reply.parts, stdout, stderr, ..CellAnswer::without(end) }
    }

    pub(super) fn of_the_dead(left: Option<&LastWords>, stopped: Option<(Stop, Rung)>) -> Self {
        let reason = left.map_or_else(|| "its supervisor is gone".into(), |left| left.reason.clone());
        let mut answer = CellAnswer::without(stopped.map_or(CellEnd::Died { reason }, stopped_by));
        if let Some(left) = left {
            (answer.stdout, answer.stderr) = (Printed::from(&left.stdout), Printed::from(&left.stderr));
        }
        answer
    }
}
