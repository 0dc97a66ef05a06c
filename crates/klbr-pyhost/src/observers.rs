//! Observers: hooks that hear what was committed. Owns their pace, retries and dead letters; refuses to keep a cursor:
//! that is the [`Journal`]'s, so that it moves in one commit with what the observer commands.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::attention::Status;
use klbr_core::event::Priority;
use klbr_core::policy::Heard;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::invocation::{Open, Outcome, Recorder};
use crate::worker::{Call, Kind, OnDeath, Worker};

/// One observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observer {
    /// Its name: its cursor's identity over epochs.
    pub name: Arc<str>,
    /// `module:function`.
    pub run: Arc<str>,
    /// The kind of record that it hears.
    pub hears: Heard,
    /// How long it may take for one.
    pub deadline: Duration,
    /// How often it may fail on one record before that is a dead letter.
    pub attempts: u32,
    /// The pause after its first failure on a record, doubled with each further one, at most a minute.
    pub pause: Duration,
    /// Where its activation puts it.
    pub from: Begin,
}

/// Where an observer begins when it is activated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// After the newest record; its cursor is set there.
    Now,
    /// Where it was, or after the newest record if it never was anywhere.
    #[default]
    Cursor,
    /// With the record of this number; its cursor is set before it.
    Seq(u64),
}

/// A committed record, as observers hear it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Committed {
    /// Its number.
    pub seq: u64,
    /// When it happened, in UTC milliseconds.
    pub at: i64,
    /// What it says.
    pub body: Value,
    /// The observer whose command made it, if one did. That one does not hear it.
    pub made_by: Option<Arc<str>>,
}

/// Some records after a cursor.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// In their order.
    pub records: Vec<Committed>,
    /// The first record of any kind that still exists.
    pub first_kept: u64,
    /// The newest record that was looked at, of any kind.
    pub newest: u64,
}

/// What an observer may command. Nothing of it delivers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// Admit an event.
    Admit {
        /// What it says.
        text: Arc<str>,
        /// How urgent it is; never as the operator.
        priority: Priority,
    },
    /// Mark an attention item.
    Mark {
        /// Its name, such as `msg:123`.
        item: Arc<str>,
        /// Its new status.
        status: Status,
        /// A note.
        note: Arc<str>,
    },
    /// Add a memory.
    Remember {
        /// What to remember.
        text: Arc<str>,
        /// Its scope.
        tags: Vec<Arc<str>>,
    },
    /// Admit an event later.
    Schedule {
        /// What it says.
        text: Arc<str>,
        /// In how many milliseconds, counted from when the host takes it in.
        after_ms: u64,
    },
}

/// How an observer goes on after a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Advance {
    /// It heard it, and commands this.
    Heard {
        /// The record.
        seq: u64,
        /// In order; committed with the cursor or not at all.
        wishes: Vec<Wish>,
    },
    /// It failed on it too often.
    DeadLettered {
        /// The record.
        seq: u64,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        reason: Arc<str>,
    },
    /// What it had not heard yet exists no more.
    Gap {
        /// The last record that is missed.
        through: u64,
    },
    /// Its cursor is set, because its activation says so, or over records that it does not hear.
    Placed {
        /// The last record that it does not hear.
        through: u64,
    },
}

impl Advance {
    /// Where the cursor stands then.
    pub fn cursor(&self) -> u64 {
        match self {
            Advance::Heard { seq, .. } | Advance::DeadLettered { seq, .. } => *seq,
            Advance::Gap { through } | Advance::Placed { through } => *through,
        }
    }
}

/// The journal failed; what it was asked is asked again later.
#[derive(Debug, thiserror::Error)]
#[error("the journal failed: {0}")]
pub struct JournalError(pub String);

/// Where records come from, and where cursors live.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// The last record that an observer is done with, if it ever was.
    ///
    /// # Errors
    ///
    /// Fails as the store fails.
    async fn cursor(&self, observer: &str) -> Result<Option<u64>, JournalError>;

    /// Records of a kind after a number, at most `limit`.
    ///
    /// # Errors
    ///
    /// Fails as the store fails.
    async fn read(&self, hears: Heard, after: u64, limit: usize) -> Result<Batch, JournalError>;

    /// The newest record of any kind.
    ///
    /// # Errors
    ///
    /// Fails as the store fails.
    async fn newest(&self) -> Result<u64, JournalError>;

    /// Commits what an observer commands together with its cursor: both or neither.
    ///
    /// # Errors
    ///
    /// Fails when neither was committed, or when that is not known.
    async fn advance(&self, observer: &str, advance: Advance) -> Result<(), JournalError>;

    /// Waits until there is a record after a number. Cancel-safe.
    async fn wait(&self, after: u64);
}

/// Records that are read at once.
const BATCH: usize = 64;

/// How many records that it does not hear an observer passes over before its cursor is set behind them.
const STRIDE: u64 = 10_000;

/// The pause after a failure of the journal, doubled with each further one.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Puts an observer's cursor where its activation says, and answers with that. Not for a mere restart.
///
/// # Errors
///
/// Fails as the journal fails.
pub async fn place(observer: &Observer, journal: &dyn Journal) -> Result<u64, JournalError> {
    let known = journal.cursor(&observer.name).await?;
    let through = match (observer.from, known) {
        (Begin::Cursor, Some(cursor)) => return Ok(cursor),
        (Begin::Seq(seq), _) => seq.saturating_sub(1),
        (Begin::Now, _) | (Begin::Cursor, None) => journal.newest().await?,
    };
    journal.advance(&observer.name, Advance::Placed { through }).await?;
    Ok(through)
}

/// The observers of one epoch at work. Dropping it stops them where they are; their cursors tell where that is.
pub struct Observers {
    tasks: Vec<JoinHandle<()>>,
}

impl Observers {
    /// Sets observers to work, each at its own pace, on the tokio runtime at hand.
    pub fn start(
        worker: Arc<Worker>,
        observers: Vec<Observer>,
        journal: Arc<dyn Journal>,
        recorder: Arc<dyn Recorder>,
    ) -> Self {
        let task = |observer| {
            let (worker, journal, recorder) = (worker.clone(), journal.clone(), recorder.clone());
            tokio::spawn(Listening { observer, worker, journal, recorder }.run())
        };
        Observers { tasks: observers.into_iter().map(task).collect() }
    }

    /// Stops them, and waits until none is at work any more.
    pub async fn stop(mut self) {
        for task in &mut self.tasks {
            task.abort();
            // Cancelled, as was asked.
            let _ = task.await;
        }
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

struct Listening {
    observer: Observer,
    worker: Arc<Worker>,
    journal: Arc<dyn Journal>,
    recorder: Arc<dyn Recorder>,
}

impl Listening {
    async fn run(self) {
        let (mut failures, mut seen) = (0, 0);
        loop {
            match self.go_on(&mut seen).await {
                Ok(()) => failures = 0,
                Err(JournalError(_)) => {
                    failures += 1;
                    sleep(pause(PAUSE, failures)).await;
                }
            }
        }
    }

    /// One batch, from wherever the cursor stands, or behind what it does not hear.
    async fn go_on(&self, seen: &mut u64) -> Result<(), JournalError> {
        let name = &self.observer.name;
        let cursor = match self.journal.cursor(name).await? {
            Some(cursor) => cursor,
            None => place(&self.observer, &*self.journal).await?,
        };
        let from = cursor.max(*seen);
        let batch = self.journal.read(self.observer.hears, from, BATCH).await?;
        if batch.first_kept > from + 1 {
            return self.journal.advance(name, Advance::Gap { through: batch.first_kept - 1 }).await;
        }
        if batch.records.is_empty() {
            *seen = from.max(batch.newest);
            if *seen > cursor + STRIDE {
                self.journal.advance(name, Advance::Placed { through: *seen }).await?;
            }
            self.journal.wait(*seen).await;
            return Ok(());
        }
        for record in batch.records {
            let advance = match record.made_by.as_ref() == Some(name) {
                // It would hear itself for ever.
                true => Advance::Placed { through: record.seq },
                false => self.tell(record).await,
            };
            // If that fails, the record is told again, and what it commanded this time never was.
            self.journal.advance(name, advance).await?;
        }
        Ok(())
    }

    /// Tells it a record until it has heard it, or failed too often.
    async fn tell(&self, record: Committed) -> Advance {
        let seq = record.seq;
        let body = serde_json::to_value(&record).expect("a record is plain data");
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reason = match self.tell_once(&body).await {
                Ok(wishes) => return Advance::Heard { seq, wishes },
                Err(reason) => reason,
            };
            if attempts >= self.observer.attempts.max(1) {
                return Advance::DeadLettered { seq, attempts, reason };
            }
            sleep(pause(self.observer.pause, attempts)).await;
        }
    }

    async fn tell_once(&self, body: &Value) -> Result<Vec<Wish>, Arc<str>> {
        let observer = &self.observer;
        let hears: Arc<str> = observer.hears.as_str().into();
        let open = Open::new(
            &self.recorder,
            (&observer.run, Kind::Observer, &hears),
            self.worker.epoch(),
            body,
            observer.deadline,
        );
        let deadline = Instant::now() + observer.deadline;
        let call = Call { run: observer.run.clone(), body: body.clone(), deadline, on_death: OnDeath::Fail };
        match self.worker.call(call).await {
            Ok(answer) => match wishes(&answer) {
                Ok(wishes) => {
                    open.close(Outcome::Answered, Some(answer));
                    Ok(wishes)
                }
                Err(reason) => {
                    let reason: Arc<str> = format!("{}: {reason}", observer.run).into();
                    open.close(Outcome::Invalid { reason: reason.clone() }, Some(answer));
                    Err(reason)
                }
            },
            Err(error) => {
                open.close(Outcome::from(&error), None);
                Err(format!("{}: {error}", observer.run).into())
            }
        }
    }
}

fn wishes(answer: &Value) -> Result<Vec<Wish>, String> {
    let wishes: Vec<Wish> =
        serde_json::from_value(answer["commands"].clone()).map_err(|error| error.to_string())?;
    for wish in &wishes {
        if let Wish::Admit { priority, .. } = wish
            && priority.preempts()
        {
            return Err(format!("an observer cannot admit with the priority {priority:?}"));
        }
    }
    Ok(wishes)
}

fn pause(first: Duration, failures: u32) -> Duration {
    (first * 2u32.saturating_pow(failures.saturating_sub(1).min(16))).min(LONGEST_PAUSE)
}
