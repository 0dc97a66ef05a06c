//! Ends the cells that nobody waits for any more, by the same ladder as any other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Ladder, Rung};
use crate::session::wire::{Ask, Reply, Waiting};
use crate::worker::Loaded;

/// Why a cell is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupted,
    TimedOut,
}

/// The generation of the last cell, and the variables that existed then.
#[derive(Default)]
pub(super) struct Names(Mutex<(u64, Vec<Arc<str>>)>);

impl Names {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<Arc<str>>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell has ended and left these.
    pub(super) fn left(&self, generation: u64, names: Vec<Arc<str>>) {
        *self.lock() = (generation, names);
    }

    /// A cell has ended with the process that it ran in.
    pub(super) fn died(&self, generation: u64) {
        self.lock().0 = generation;
    }

    /// The names that are gone, if the last cell ran in an earlier life. Said once.
    pub(super) fn lost(&self, generation: u64) -> Option<Vec<Arc<str>>> {
        let mut known = self.lock();
        let is_other = known.0 != 0 && known.0 != generation;
        is_other.then(|| {
            known.0 = generation;
            std::mem::take(&mut known.1)
        })
    }
}

/// Takes over cells whose caller is gone. Dropping it leaves them to the end of their process.
pub(super) struct Keeper {
    abandoned: mpsc::UnboundedSender<Running>,
    task: JoinHandle<()>,
}

impl Keeper {
    pub(super) fn start(ladder: Ladder, names: Arc<Names>) -> Self {
        let (abandoned, mut cells) = mpsc::unbounded_channel::<Running>();
        let task = tokio::spawn(async move {
            while let Some(Running { loaded, mut waiting, turn }) = cells.recv().await {
                match stop(&loaded, &mut waiting, ladder).await {
                    (Some(Reply::Cell(ended)), _) => {
                        sweep(&loaded).await;
                        names.left(loaded.generation, ended.reply.names);
                    }
                    (Some(Reply::Result(_) | Reply::Vars(_)) | None, _) => names.died(loaded.generation),
                }
                drop(turn);
            }
        });
        Keeper { abandoned, task }
    }

    /// Watches over a cell that runs.
    pub(super) fn watch(&self, loaded: Arc<Loaded>, waiting: Waiting, turn: OwnedMutexGuard<()>) -> Watched {
        Watched { running: Some(Running { loaded, waiting, turn }), abandoned: self.abandoned.clone() }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A cell that runs, and its turn.
struct Running {
    loaded: Arc<Loaded>,
    waiting: Waiting,
    turn: OwnedMutexGuard<()>,
}

/// A cell that its caller waits for. Dropped before its end, it is the keeper's.
pub(super) struct Watched {
    running: Option<Running>,
    abandoned: mpsc::UnboundedSender<Running>,
}

impl Watched {
    pub(super) fn waiting(&mut self) -> &mut Waiting {
        &mut self.running.as_mut().expect("it is taken only when it has ended").waiting
    }

    /// It has ended; its turn lasts until what is left of it is cleared away.
    pub(super) fn ended(mut self) -> Option<OwnedMutexGuard<()>> {
        self.running.take().map(|running| running.turn)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // Without a keeper there is no workbench any more.
            let _ = self.abandoned.send(running);
        }
    }
}

/// The ladder. Answers with what the cell said, if it still said something, and the rung that ended it.
pub(super) async fn stop(loaded: &Loaded, waiting: &mut Waiting, ladder: Ladder) -> (Option<Reply>, Rung) {
    waiting.cancel();
    if let Ok(reply) = timeout(ladder.task, waiting.reply()).await {
        return (reply, Rung::Task);
    }
    loaded.wire.ask(Ask::Interrupt);
    // A child that ignores signals would keep whoever waits for it. After the signal, or the cell would go on.
    loaded.wire.ask(Ask::Sweep(oneshot::channel().0));
    if let Ok(reply) = timeout(ladder.signal, waiting.reply()).await {
        return (reply, Rung::Signal);
    }
    loaded.wire.ask(Ask::End("a cell did not answer to being interrupted".into()));
    (waiting.reply().await, Rung::Kill)
}

/// Kills what a cell started and left behind; answers with how many there were.
pub(super) async fn sweep(loaded: &Loaded) -> usize {
    let (done, count) = oneshot::channel();
    loaded.wire.ask(Ask::Sweep(done));
    // A process that is gone has been swept already.
    count.await.unwrap_or_default()
}
