//! What is in force: one epoch's worker behind the core's policy port, swapped whole. Owns activation and rollback.
//!
//! A question keeps the epoch that it was asked in: the old worker lives until its last answer. Rollback asks Python
//! nothing, so that it works with every Python process dead.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::policy::{Answer, Bindings, HookFailure, Question};
use klbr_core::runtime::policy::Policy;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::activation::{Recorded, Refused, Report, Trial, sample};
use crate::epochs::{Deaths, Epoch, EpochError, Epochs, Probation};
use crate::invocation::Recorder;
use crate::manifest::Manifest;
use crate::slots::HookPolicy;
use crate::transforms::Transforms;
use crate::worker::{Call, Change, OnDeath, Watch, Worker};

/// Makes an epoch durable before it is in force.
#[async_trait]
pub trait EpochLog: Send + Sync + 'static {
    /// Commits an epoch.
    ///
    /// # Errors
    ///
    /// Fails when it was not committed; it is not put in force then.
    async fn append(&self, epoch: &Epoch) -> Result<(), String>;
}

/// One epoch at work.
pub struct InForce {
    /// The epoch.
    pub epoch: Epoch,
    /// Its slots; `None` when it binds no hook.
    pub policy: Option<HookPolicy>,
    /// Its transforms; `None` when it binds no hook.
    pub transforms: Option<Transforms>,
}

/// The policy in force, and how it changes.
pub struct Live {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    trial: Trial,
    recorder: Arc<dyn Recorder>,
    watch: Arc<dyn Watch>,
    log: Arc<dyn EpochLog>,
    probation: Probation,
    current: RwLock<Arc<InForce>>,
    /// Held while an epoch comes: they come one after another.
    epochs: tokio::sync::Mutex<Epochs>,
    deaths: mpsc::UnboundedSender<(u64, Arc<str>)>,
}

/// Why nothing was activated.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    /// The candidate is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Another epoch is in force than was expected, or there is none of that number.
    #[error(transparent)]
    Epoch(#[from] EpochError),
    /// It could not be made durable.
    #[error("the activation was not committed: {0}")]
    NotCommitted(String),
    /// It was tried with success, and then its real worker did not become ready.
    #[error("the hook worker did not become ready: {0}")]
    NotReady(String),
}

impl Live {
    /// Puts in force what was in force last, on the tokio runtime at hand. Waits for no Python.
    pub fn start(
        trial: Trial,
        epochs: Epochs,
        probation: Probation,
        log: Arc<dyn EpochLog>,
        recorder: Arc<dyn Recorder>,
        watch: Arc<dyn Watch>,
    ) -> Live {
        let (deaths, died) = mpsc::unbounded_channel();
        let epoch = epochs.current().clone();
        let nothing = InForce { epoch: epoch.clone(), policy: None, transforms: None };
        let current = RwLock::new(Arc::new(nothing));
        let epochs = tokio::sync::Mutex::new(epochs);
        let shared = Arc::new(Shared { trial, recorder, watch, log, probation, current, epochs, deaths });
        shared.swap(shared.build(epoch));
        let task = tokio::spawn(guard(Arc::clone(&shared), died));
        Live { shared, task }
    }

    /// What is in force. Whoever holds it keeps its worker alive.
    pub fn current(&self) -> Arc<InForce> {
        self.shared.current()
    }

    /// All epochs, the oldest first. Waits while one comes.
    pub async fn epochs(&self) -> Vec<Epoch> {
        self.shared.epochs.lock().await.all().to_vec()
    }

    /// Tries a candidate without putting it in force.
    ///
    /// # Errors
    ///
    /// Fails when it is refused.
    pub async fn dry_run(
        &self,
        file: &str,
        candidate: &Manifest,
        recorded: &[Recorded],
    ) -> Result<Report, Refused> {
        let before = self.current();
        self.shared.trial.run(file, candidate, &before.epoch.manifest, recorded).await
    }

    /// Tries a candidate, makes it durable, and puts it in force: its worker is warm by then.
    ///
    /// `expected` is the epoch that the caller took to be in force. Cancelled before the commit, nothing has changed.
    ///
    /// # Errors
    ///
    /// Fails before anything has changed.
    pub async fn activate(
        &self,
        file: &str,
        candidate: Manifest,
        expected: u64,
        recorded: &[Recorded],
    ) -> Result<(Epoch, Report), ActivateError> {
        let shared = &self.shared;
        let mut epochs = shared.epochs.lock().await;
        let epoch = epochs.next(expected, candidate)?;
        let before = Arc::clone(&epochs.current().manifest);
        let report = shared.trial.run(file, &epoch.manifest, &before, recorded).await?;
        let built = shared.build(epoch.clone());
        warm(&built, shared.trial.start()).await.map_err(ActivateError::NotReady)?;
        shared.log.append(&epoch).await.map_err(ActivateError::NotCommitted)?;
        epochs.push(epoch.clone());
        shared.swap(built);
        Ok((epoch, report))
    }

    /// Goes back to an epoch that was in force before. Needs no Python.
    ///
    /// # Errors
    ///
    /// Fails when there was none of that number, or when it could not be committed.
    pub async fn roll_back(&self, to: u64) -> Result<Epoch, ActivateError> {
        let mut epochs = self.shared.epochs.lock().await;
        let epoch = epochs.back_to(to)?;
        self.shared.put(&mut epochs, epoch.clone()).await?;
        Ok(epoch)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn current(&self) -> Arc<InForce> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn swap(&self, next: InForce) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, Arc::new(next));
        drop(current);
        // Outside the lock: the last holder of an epoch kills its worker.
        drop(old);
    }

    async fn put(&self, epochs: &mut Epochs, epoch: Epoch) -> Result<(), ActivateError> {
        self.log.append(&epoch).await.map_err(ActivateError::NotCommitted)?;
        epochs.push(epoch.clone());
        self.swap(self.build(epoch));
        Ok(())
    }

    /// An epoch at work; its worker starts, and nobody waits for it.
    fn build(&self, epoch: Epoch) -> InForce {
        if epoch.manifest.hooks.is_empty() {
            return InForce { epoch, policy: None, transforms: None };
        }
        let spec = self.trial.spec(&epoch.manifest, epoch.number);
        let (watch, deaths) = (Arc::clone(&self.watch), self.deaths.clone());
        let watch: Arc<dyn Watch> = Arc::new(move |epoch, change: Change| {
            if let Change::Died { reason, .. } | Change::NotStarted { reason, .. } = &change {
                // Nobody listens any more when everything ends.
                let _ = deaths.send((epoch, Arc::clone(reason)));
            }
            watch.changed(epoch, change);
        });
        let worker = Arc::new(Worker::start(spec, Arc::clone(&self.trial.host), watch));
        let policy = HookPolicy::new(Arc::clone(&worker), epoch.manifest.slots(), Arc::clone(&self.recorder));
        let transforms = Transforms::new(worker, epoch.manifest.transforms(), Arc::clone(&self.recorder));
        InForce { epoch, policy: Some(policy), transforms: Some(transforms) }
    }
}

/// Waits until a worker is ready, and calls each hook that owns a required slot once.
async fn warm(built: &InForce, within: Duration) -> Result<(), String> {
    let Some(policy) = &built.policy else { return Ok(()) };
    let until = Instant::now() + within;
    let loaded = policy.worker().ready(until).await.map_err(|error| error.to_string())?;
    if let Some(failed) = loaded.failed.first() {
        return Err(format!("{}: {}", failed.run, failed.error));
    }
    for (slot, binding) in policy.bindings().filter(|(slot, _)| slot.is_required()) {
        let body = serde_json::to_value(sample(slot)).expect("a question has only string keys");
        let call = Call { run: binding.run.clone(), body, deadline: until, on_death: OnDeath::Fail };
        policy.worker().call(call).await.map_err(|error| format!("{}: {error}", binding.run))?;
    }
    Ok(())
}

/// Sends an epoch back whose worker keeps dying.
async fn guard(shared: Arc<Shared>, mut died: mpsc::UnboundedReceiver<(u64, Arc<str>)>) {
    let started = Instant::now();
    let mut deaths: BTreeMap<u64, Deaths> = BTreeMap::new();
    while let Some((epoch, reason)) = died.recv().await {
        let has_failed = deaths.entry(epoch).or_default().note(started.elapsed(), shared.probation);
        if !has_failed {
            continue;
        }
        let mut epochs = shared.epochs.lock().await;
        if epochs.current().number != epoch {
            continue;
        }
        if let Some(back) = epochs.back_from_failure(reason) {
            // A log that refuses leaves the epoch in force, backing off; the next death tries again.
            let _ = shared.put(&mut epochs, back).await;
        }
    }
}

#[async_trait]
impl Policy for Live {
    fn slots(&self) -> Bindings {
        self.current().policy.as_ref().map(Policy::slots).unwrap_or_default()
    }

    /// Answers under what is in force when the question comes.
    async fn decide(&self, epoch: klbr_core::ids::Epoch, question: Question) -> Result<Answer, HookFailure> {
        // Held until the answer is there: an activation in between changes nothing for this question.
        let current = self.current();
        match &current.policy {
            Some(policy) => policy.decide(epoch, question).await,
            None => Err(HookFailure::Unavailable { reason: "nobody owns the slot".into() }),
        }
    }
}
