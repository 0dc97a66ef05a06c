//! A thread of its own with a bounded queue in front of it, joined when it is let go.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use klbr_core::runtime::store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::closed;

/// A job with the place in the queue that it takes until it is dropped.
pub(crate) struct Queued<J> {
    pub(crate) job: J,
    pub(crate) place: OwnedSemaphorePermit,
}

/// A thread that takes jobs in order.
pub(crate) struct Lane<J> {
    sender: Mutex<Option<mpsc::Sender<Queued<J>>>>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread has let go of everything.
    ended: watch::Receiver<()>,
}

impl<J: Send + 'static> Lane<J> {
    /// Starts the thread; it should end when its receiver does.
    pub(crate) fn start(
        name: &str,
        room: usize,
        run: impl FnOnce(mpsc::Receiver<Queued<J>>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let (alive, ended) = watch::channel(());
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            run(receiver);
            drop(alive);
        })?;
        Ok(Lane {
            sender: Mutex::new(Some(sender)),
            room: Arc::new(Semaphore::new(room)),
            thread: Some(thread),
            ended,
        })
    }

    /// Hands a job over, once there is room for it. Dropped before that, the job is never run; after that it is.
    pub(crate) async fn send(&self, job: J) -> Result<(), StoreError> {
        let place = self.room.clone().acquire_owned().await.map_err(|_| closed())?;
        self.push(Queued { job, place })
    }

    fn push(&self, queued: Queued<J>) -> Result<(), StoreError> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().ok_or_else(closed)?.send(queued).map_err(|_| closed())
    }

    /// Lets the thread finish what it was handed, and takes no more.
    pub(crate) fn shut(&self) {
        self.room.close();
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns when the thread has let go of everything, after [`Lane::shut`].
    pub(crate) async fn ended(&self) {
        // Nothing is ever sent: it fails when the other side is gone.
        let _ = self.ended.clone().changed().await;
    }
}

impl<J> Drop for Lane<J> {
    fn drop(&mut self) {
        self.sender.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a thread of the store panicked");
        }
    }
}
