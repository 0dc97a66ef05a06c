//! The driver's tasks: each ends in one arrival, also when it panics; none outlives the driver.

use std::collections::HashMap;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::Arrival;
use crate::ids::Fence;
use crate::input::Input;

pub(super) struct Tasks {
    set: JoinSet<()>,
    arrivals: mpsc::Sender<Arrival>,
    running: HashMap<Fence, AbortHandle>,
    /// What the machine is told when the task panics.
    on_panic: HashMap<Id, (Fence, Input)>,
}

impl Tasks {
    pub(super) fn new(arrivals: mpsc::Sender<Arrival>) -> Self {
        Tasks { set: JoinSet::new(), arrivals, running: HashMap::new(), on_panic: HashMap::new() }
    }

    /// Where a task sends what it finds.
    pub(super) fn arrivals(&self) -> mpsc::Sender<Arrival> {
        self.arrivals.clone()
    }

    /// Starts a task that answers a command.
    pub(super) fn spawn(
        &mut self,
        fence: Fence,
        on_panic: Input,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.set.spawn(task);
        self.on_panic.insert(handle.id(), (fence, on_panic));
        self.running.insert(fence, handle);
    }

    /// Starts a task that nothing depends on.
    pub(super) fn spawn_aside(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(task);
    }

    /// Drops the task that answers a command, with everything it holds.
    pub(super) fn abort(&mut self, fence: Fence) {
        if let Some(handle) = self.running.remove(&fence) {
            handle.abort();
        }
    }

    pub(super) fn abort_all(&mut self) {
        self.set.abort_all();
        self.running.clear();
    }

    /// Waits for a task that panics, and says what the machine is to be told. Pends for ever when no task is
    /// left.
    ///
    /// Cancel safe.
    pub(super) async fn next_panic(&mut self) -> Option<Input> {
        loop {
            let Some(ended) = self.set.join_next_with_id().await else {
                return std::future::pending().await;
            };
            let (id, panicked) = match ended {
                Ok((id, ())) => (id, false),
                Err(error) => (error.id(), error.is_panic()),
            };
            if let Some((fence, input)) = self.on_panic.remove(&id) {
                self.running.remove(&fence);
                if panicked {
                    return Some(input);
                }
            }
        }
    }
}
