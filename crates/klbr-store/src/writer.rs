//! The one thread that writes: it drains its queue into one transaction, syncs once, then answers everyone.
//!
//! Each request runs under a savepoint, so that one that is refused takes nothing with it. What does not have to
//! be durable at once, the history index, is brought forward between the groups in small transactions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use klbr_core::ids::AgentName;
use klbr_core::runtime::store::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Fail, Outcome, sorted};
use crate::lane::Queued;
use crate::tables::{Syncing, Tables};

/// The most requests that share one sync.
const GROUP: usize = 256;
/// How long the index may lag behind while nobody asks for it.
const LAG: Duration = Duration::from_secs(1);
/// The same after it could not be brought forward.
const LAG_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long the index may keep the close of a store waiting; what is left is done after the next start.
const CLOSING: Duration = Duration::from_secs(1);
/// After about this much was written, the log is copied into the database beside the commits.
const LOG_SHARE: usize = 4 << 20;
/// A log longer than this is emptied by the writer itself.
const LOG_LIMIT: u64 = 64 << 20;

/// The way back to whoever asked.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer can be asked for.
pub(crate) enum Request {
    /// A change, durable before it is answered.
    Change(Box<dyn Change>),
    /// Brings the history index of an agent up to what is committed.
    CatchUp(AgentName, Answer<()>),
    /// Finishes, empties the log and ends.
    Close(Answer<()>),
}

/// A change of the tables: run within a group, then answered when the group has ended.
pub(crate) trait Change: Send {
    /// Changes the tables.
    fn run(&mut self, tables: &mut Tables) -> Outcome<()>;
    /// Answers.
    fn end(self: Box<Self>, ended: Result<(), StoreError>);
}

/// A change made of a function.
pub(crate) struct Work<T, F> {
    run: Option<F>,
    value: Option<T>,
    answer: Answer<T>,
}

impl<T, F> Work<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut Tables) -> Outcome<T> + Send + 'static,
{
    /// The request; the answer is sent when its group has ended.
    pub(crate) fn request(run: F, answer: Answer<T>) -> Request {
        Request::Change(Box::new(Work { run: Some(run), value: None, answer }))
    }
}

impl<T, F> Change for Work<T, F>
where
    T: Send,
    F: FnOnce(&mut Tables) -> Outcome<T> + Send,
{
    fn run(&mut self, tables: &mut Tables) -> Outcome<()> {
        if let Some(run) = self.run.take() {
            self.value = Some(run(tables)?);
        }
        Ok(())
    }

    fn end(self: Box<Self>, ended: Result<(), StoreError>) {
        let Work { value, answer, .. } = *self;
        // Nobody listens any more when the future was dropped; the change stands.
        let _ = answer.send(ended.and_then(|()| value.ok_or_else(crate::error::closed)));
    }
}

pub(crate) struct Writer {
    tables: Tables,
    log: PathBuf,
    indexed: Instant,
    lag: Duration,
    /// Whether the last step of the index left something to do.
    more: bool,
    keeper: Option<(SyncSender<()>, JoinHandle<()>)>,
}

/// What the queue had for the writer.
enum Next {
    Group(Vec<Queued<Request>>),
    Idle,
    Closed,
}

impl Writer {
    /// A writer of `tables`; `beside` is a connection of its own for copying the log meanwhile.
    pub(crate) fn new(tables: Tables, beside: Connection, log: PathBuf) -> std::io::Result<Self> {
        let (sender, wishes) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("klbr-store-log".into()).spawn(move || {
            while let Ok(()) = wishes.recv() {
                if let Err(error) = copy_log(&beside, "PASSIVE") {
                    tracing::warn!(%error, "the log could not be copied into the database; it is tried again");
                }
            }
        })?;
        Ok(Writer {
            tables,
            log,
            indexed: Instant::now(),
            lag: LAG,
            more: false,
            keeper: Some((sender, thread)),
        })
    }

    /// Serves until every handle is gone or the store is closed.
    pub(crate) fn run(mut self, queue: &Receiver<Queued<Request>>) {
        let mut waiting: Vec<(AgentName, Answer<()>)> = Vec::new();
        let mut closing: Option<Answer<()>> = None;
        while closing.is_none() {
            let group = match self.next(queue, self.more || !waiting.is_empty()) {
                Next::Group(group) => group,
                Next::Idle => Vec::new(),
                Next::Closed => break,
            };
            let mut changes = Vec::with_capacity(group.len());
            for Queued { job, place } in group {
                match job {
                    Request::Change(change) => changes.push((change, place)),
                    Request::CatchUp(agent, answer) => waiting.push((agent, answer)),
                    Request::Close(answer) => closing = Some(answer),
                }
            }
            let idle = changes.is_empty();
            if !idle {
                self.group(changes);
            }
            if idle || !waiting.is_empty() || self.indexed.elapsed() > self.lag {
                self.index(&mut waiting);
            }
            self.spare_the_log();
        }
        drop(waiting);
        let closed = self.finish();
        match (closing, closed) {
            (Some(answer), closed) => drop(answer.send(closed.map_err(StoreError::from))),
            (None, Ok(())) => {}
            (None, Err(fail)) => {
                let error = StoreError::from(fail);
                tracing::warn!(%error, "the log was not emptied; the next start does it");
            }
        }
    }

    fn next(&self, queue: &Receiver<Queued<Request>>, hurry: bool) -> Next {
        let first = if hurry {
            match queue.try_recv() {
                Ok(first) => first,
                Err(TryRecvError::Empty) => return Next::Idle,
                Err(TryRecvError::Disconnected) => return Next::Closed,
            }
        } else if self.tables.is_behind() {
            match queue.recv_timeout(self.lag.saturating_sub(self.indexed.elapsed())) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => return Next::Idle,
                Err(RecvTimeoutError::Disconnected) => return Next::Closed,
            }
        } else {
            match queue.recv() {
                Ok(first) => first,
                Err(_) => return Next::Closed,
            }
        };
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(queued) = queue.try_recv()
        {
            group.push(queued);
        }
        Next::Group(group)
    }

    /// One transaction and one sync for all of a group; each request is answered after it.
    fn group<P>(&mut self, group: Vec<(Box<dyn Change>, P)>) {
        let mut kept = Vec::with_capacity(group.len());
        let mut lost: Option<Arc<rusqlite::Error>> = self.tables.begin(Syncing::AtOnce).err().map(Arc::new);
        for (mut change, place) in group {
            if let Some(error) = &lost {
                change.end(Err(sorted(error)));
                continue;
            }
            match self.tables.within_savepoint(&mut *change) {
                Ok(()) => kept.push((change, place)),
                Err(fail) => {
                    let (error, cause) = match fail {
                        Fail::Sql(error) => {
                            let cause = Arc::new(error);
                            (sorted(&cause), cause)
                        }
                        Fail::Store(error) => (error, Arc::new(rusqlite::Error::InvalidQuery)),
                    };
                    if self.tables.is_lost() {
                        lost = Some(cause);
                    }
                    change.end(Err(error));
                }
            }
        }
        if lost.is_none() {
            lost = self.tables.commit_all().err().map(Arc::new);
        }
        self.tables.ended(lost.is_none());
        for (change, _place) in kept {
            change.end(match &lost {
                None => Ok(()),
                Some(error) => Err(sorted(error)),
            });
        }
    }

    /// Brings the index one step forward, and answers those whose agent it has caught up with.
    fn index(&mut self, waiting: &mut Vec<(AgentName, Answer<()>)>) {
        let failed = self.tables.index_step(waiting.first().map(|(agent, _)| agent)).err();
        self.indexed = Instant::now();
        self.lag = if failed.is_some() { LAG_AFTER_FAILURE } else { LAG };
        self.more = failed.is_none() && self.tables.is_behind();
        if let Some(fail) = failed {
            let error = Arc::new(StoreError::from(fail));
            tracing::warn!(%error, "the history index could not be brought forward; it is tried again");
            for (_, answer) in waiting.drain(..) {
                let _ = answer.send(Err(StoreError::Unavailable(Box::new(error.clone()))));
            }
        } else {
            for (_, answer) in waiting.extract_if(.., |(agent, _)| !self.tables.is_behind_with(agent)) {
                let _ = answer.send(Ok(()));
            }
        }
    }

    fn spare_the_log(&mut self) {
        if self.tables.written < LOG_SHARE {
            return;
        }
        self.tables.written = 0;
        if let Some((keeper, _)) = &self.keeper {
            // A full wish list means that one is about to be granted.
            let _ = keeper.try_send(());
        }
        // Under uninterrupted commits there is always a rest that was not copied, and the log cannot begin anew.
        if std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_LIMIT)
            && let Err(error) = self.tables.copy_log("TRUNCATE")
        {
            tracing::debug!(%error, "the log could not be emptied while it is read");
        }
    }

    fn finish(&mut self) -> Outcome<()> {
        let begun = Instant::now();
        while self.tables.is_behind() && begun.elapsed() < CLOSING {
            if self.tables.index_step(None).is_err() {
                break;
            }
        }
        if let Some((sender, thread)) = self.keeper.take() {
            drop(sender);
            let _ = thread.join();
        }
        Ok(self.tables.copy_log("TRUNCATE")?)
    }
}

/// Copies the log into the database.
pub(crate) fn copy_log(conn: &Connection, how: &str) -> rusqlite::Result<()> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()))
}
