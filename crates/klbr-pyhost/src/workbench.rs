//! The workbench: one supervised Python process that runs the cells of one agent and keeps their variables.
//!
//! Owns the queue of cells, their time, the ladder that ends them, and the truth about what was lost. A cell is never
//! run again by itself. No sandbox: what a cell may do is what its process may do.

mod acts;
mod answer;
mod keeper;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use acts::Acts;
pub use acts::{ActState, Acted};
pub use answer::{CellAnswer, CellEnd, Printed, Rung};
use keeper::{Keeper, Names, Stop, stop, sweep};

use crate::host::HostCalls;
use crate::process::Program;
use crate::process::output::Kept;
use crate::protocol::{CellLimits, ToPython, Variable};
use crate::session::wire::{Context, Reply};
use crate::worker::supervise::Role;
use crate::worker::{CallError, Patience, Spec, State, Watch, Worker};

/// What a workbench is made of.
#[derive(Clone)]
pub struct Bench {
    /// How Python is started.
    pub program: Program,
    /// Folders that cells import from.
    pub paths: Vec<PathBuf>,
    /// How patient the host is with the process.
    pub patience: Patience,
    /// How quickly a cell is ended.
    pub ladder: Ladder,
    /// Where output is stored whole when it is too long to be shown whole; without it only both ends are kept.
    pub outputs: Option<PathBuf>,
    /// Bounds on what a cell answers with.
    pub bounds: Bounds,
}

/// How long each rung of the ladder has before the next: cancel the task, then SIGINT, then kill the whole group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// For the cell's task to end after being cancelled.
    pub task: Duration,
    /// For the cell to end after SIGINT.
    pub signal: Duration,
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder { task: Duration::from_millis(50), signal: Duration::from_millis(100) }
    }
}

/// Bounds on what a cell answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that are kept of each end of each stream.
    pub output: usize,
    /// Bytes of each stream that are stored whole at most.
    pub stored: u64,
    /// Characters of the last value's repr.
    pub repr: usize,
    /// How long that repr may take.
    pub repr_time: Duration,
    /// Parts that are shown.
    pub parts: usize,
    /// Bytes of each.
    pub part: usize,
    /// Actions of one cell.
    pub actions: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            output: 16 * 1024,
            stored: 256 << 20,
            repr: 8 * 1024,
            repr_time: Duration::from_millis(200),
            parts: 32,
            part: 256 * 1024,
            actions: 1000,
        }
    }
}

/// A cell to run.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its code.
    pub code: Arc<str>,
    /// The action that it is: the calls in it are `owner.n`.
    pub owner: Arc<str>,
    /// How long it may run.
    pub limit: Duration,
}

/// A supervised workbench. Dropping it kills the process.
pub struct Workbench {
    process: Worker,
    acts: Arc<Acts>,
    ladder: Ladder,
    bounds: Bounds,
    /// How long a process may take to start.
    start: Duration,
    turn: Arc<tokio::sync::Mutex<()>>,
    interrupts: watch::Sender<u64>,
    names: Arc<Names>,
    keeper: Keeper,
}

impl Workbench {
    /// Starts one, on the tokio runtime at hand. Returns at once.
    pub fn start(bench: Bench, host: Arc<dyn HostCalls>, watch: Arc<dyn Watch>) -> Workbench {
        let Bench { program, paths, patience, ladder, outputs, bounds } = bench;
        let acts = Arc::new(Acts::new(host));
        let start = patience.start;
        let spec = Spec { program, epoch: 0, paths, hooks: Vec::new(), patience };
        let numbers = AtomicU64::new(1);
        let fresh = move || {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let kept = |stream: &str| match &outputs {
                Some(folder) => {
                    let name = format!("{}-{number}.{stream}", std::process::id());
                    Kept::new(bounds.output).with_whole(folder.join(name), bounds.stored)
                }
                None => Kept::new(bounds.output),
            };
            (kept("stdout"), kept("stderr"))
        };
        let host: Arc<dyn HostCalls> = acts.clone();
        let process = Worker::start_as(Role::Workbench(Arc::new(fresh)), spec, host, watch);
        let (turn, interrupts) = (Arc::default(), watch::Sender::new(0));
        let names = Arc::new(Names::default());
        let keeper = Keeper::start(ladder, Arc::clone(&names));
        Workbench { process, acts, ladder, bounds, start, turn, interrupts, names, keeper }
    }

    /// What the process is doing.
    pub fn state(&self) -> State {
        self.process.state()
    }

    /// Which life of the process this is, from 1; `None` while there is none.
    pub fn generation(&self) -> Option<u64> {
        match self.process.state() {
            State::Ready(loaded) => Some(loaded.generation),
            State::Starting | State::BackingOff { .. } | State::Stopped => None,
        }
    }

    /// Runs a cell, after those that came before it. Always answers: within the time to
    /// start, the limit, the ladder, and the time to kill.
    ///
    /// Dropping the future ends the cell by the ladder, in the background; the next cell waits for that.
    pub async fn run(&self, cell: Cell) -> CellAnswer {
        let queued_for = self.generation();
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let loaded = match self.process.ready(Instant::now() + self.start.max(cell.limit)).await {
            Ok(loaded) => loaded,
            Err(error) => {
                return CellAnswer::without(CellEnd::Unavailable { reason: error.to_string().into() });
            }
        };
        if let Some(queued_for) = queued_for.filter(|queued_for| *queued_for != loaded.generation) {
            let mut answer = CellAnswer::without(CellEnd::Aborted { queued_for });
            answer.generation = loaded.generation;
            answer.state_lost = self.names.lost(loaded.generation);
            return answer;
        }
        let started = Instant::now();
        let until = started + cell.limit;
        self.acts.begin();
        let mut interrupts = self.interrupts.subscribe();
        let limits = CellLimits {
            repr_bytes: self.bounds.repr,
            repr_ms: self.bounds.repr_time.as_millis() as u64,
            parts: self.bounds.parts,
            part_bytes: self.bounds.part,
        };
        let context =
            Context { who: "cell".into(), owner: cell.owner.clone(), host_calls: self.bounds.actions };
        let message = |id| ToPython::Cell { id, code: cell.code.clone(), limits };
        let mut cell = match loaded.wire.begin(context, message) {
            Ok(waiting) => self.keeper.watch(Arc::clone(&loaded), waiting, turn),
            Err(error) => {
                return CellAnswer::without(CellEnd::Unavailable { reason: error.to_string().into() });
            }
        };
        let stopped = tokio::select! {
            reply = cell.waiting().reply() => Err(reply),
            _ = interrupts.changed() => Ok(Stop::Interrupted),
            () = sleep_until(until) => Ok(Stop::TimedOut),
        };
        let (reply, stopped) = match stopped {
            Err(reply) => (reply, None),
            Ok(why) => {
                let (reply, by) = stop(&loaded, cell.waiting(), self.ladder).await;
                (reply, Some((why, by)))
            }
        };
        let _turn = cell.ended();
        let mut answer = match reply {
            Some(Reply::Cell(ended)) => {
                let survivors = match ended.reply.spawned || ended.has_children || stopped.is_some() {
                    true => sweep(&loaded).await,
                    false => 0,
                };
                let names = ended.reply.names.clone();
                let state_lost = self.names.lost(loaded.generation);
                self.names.left(loaded.generation, names);
                CellAnswer { state_lost, survivors, ..CellAnswer::of(*ended, stopped) }
            }
            Some(Reply::Result(_) | Reply::Vars(_)) | None => {
                let mut ended = loaded.ended.clone();
                let left = ended.wait_for(Option::is_some).await.ok().and_then(|left| left.clone());
                let mut answer = CellAnswer::of_the_dead(left.as_deref(), stopped);
                answer.state_lost = self.names.lost(loaded.generation);
                self.names.died(loaded.generation);
                answer
            }
        };
        answer.generation = loaded.generation;
        answer.took = started.elapsed();
        answer.acts = self.acts.finish();
        answer
    }

    /// Interrupts the cell that runs, if one does. Returns at once.
    pub fn interrupt(&self) {
        self.interrupts.send_modify(|count| *count += 1);
    }

    /// Starts over: the variables are gone, and cells that wait for their turn are aborted.
    pub fn restart(&self, reason: &str) {
        self.process.replace(reason);
    }

    /// The variables that cells left. Waits for its turn, since cells and this share one thread.
    ///
    /// # Errors
    ///
    /// Fails when the process does not answer by the deadline.
    pub async fn variables(&self, deadline: Instant) -> Result<Vec<Variable>, CallError> {
        let late = |_| CallError::Deadline;
        let _turn = timeout_at(deadline, self.turn.lock()).await.map_err(late)?;
        let loaded = self.process.ready(deadline).await?;
        let gone = || CallError::Unavailable("the workbench died under the question".into());
        let context = Context { who: "variables".into(), owner: "".into(), host_calls: 0 };
        let mut waiting = loaded.wire.begin(context, |id| ToPython::Vars { id }).map_err(|_| gone())?;
        match timeout_at(deadline, waiting.reply()).await.map_err(late)? {
            Some(Reply::Vars(variables)) => Ok(variables),
            Some(Reply::Cell(_) | Reply::Result(_)) | None => Err(gone()),
        }
    }

    /// Stops it, and waits until nothing of it is left.
    pub async fn stop_process(self) {
        self.process.stop().await;
    }
}
