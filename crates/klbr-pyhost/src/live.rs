//! What is in force: the workers of an agent's epochs behind the core's policy port. Owns activation and rollback.
//!
//! The truth is the agent's records. A question is answered under the epoch that it is asked in, whose worker lives
//! until no turn of that epoch runs. Rollback asks Python nothing, so that it works with every Python process dead.

mod attached;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use klbr_core::event::{Control, NewEvent, Via};
use klbr_core::ids::Epoch;
use klbr_core::policy::{Activation, Answer, Asked, Bindings, Cause, HookFailure, InForce, Question};
use klbr_core::runtime::policy::Policy;
use klbr_core::runtime::{AdmitError, AgentHandle, Stopped};
use tokio::sync::{mpsc, watch};

pub use attached::Attached;

use crate::activation::{Refused, Report, Trial};
use crate::at_work::AtWork;
use crate::at_work::Built;
use crate::history::{History, NoWayBack, Probation};
use crate::invocation::{Invocation, Outcome, Recorder};
use crate::manifest::{Affected, KeptError, Manifest, Manifests};
use crate::protocol::Logged;
use crate::questions::Questions;
use crate::reads::Reads;
use crate::worker::{Change, Watch, Worker};

/// How many failed invocations are remembered for the operator.
const FAILURES: usize = 20;

/// How many recorded questions of each slot a candidate is asked.
const TRIED_ON: usize = 16;

/// What policy in Python is made of.
pub struct Parts {
    /// How a worker is started, and a candidate tried.
    pub trial: Trial,
    /// Where manifests are kept.
    pub manifests: Manifests,
    /// Where recorded questions are kept.
    pub questions: Questions,
    /// When a policy has failed for good.
    pub probation: Probation,
    /// Hears of each invocation.
    pub recorder: Arc<dyn Recorder>,
    /// Hears what happens to workers.
    pub watch: Arc<dyn Watch>,
}

/// The policy of one agent, and how it changes. Clones are the same policy.
///
/// Given to the agent's builder it answers questions; [`Live::attach`] gives it the agent in return.
#[derive(Clone)]
pub struct Live(Arc<Shared>);

struct Shared {
    trial: Trial,
    reads: Arc<Reads>,
    manifests: Manifests,
    questions: Questions,
    probation: Probation,
    recorder: Arc<dyn Recorder>,
    watch: Arc<dyn Watch>,
    agent: watch::Sender<Option<AgentHandle>>,
    /// By the epoch of their activation. Never asked for a manifest that was put in force after them.
    at_work: RwLock<BTreeMap<Epoch, Arc<AtWork>>>,
    /// Warm, and not in force yet.
    staged: Mutex<Option<Arc<AtWork>>>,
    /// The activation that the agent told of last.
    announced: watch::Sender<Option<Epoch>>,
    /// Held while a candidate is tried: they come one after another. No rollback waits for it.
    trying: tokio::sync::Mutex<()>,
    failures: Arc<Mutex<VecDeque<Invocation>>>,
    deaths: mpsc::UnboundedSender<(Epoch, Change)>,
    died: Mutex<Option<mpsc::UnboundedReceiver<(Epoch, Change)>>>,
}

/// A candidate, and who wants it in force.
#[derive(Clone, Debug)]
pub struct Order {
    /// What names the request: the same key is the same request.
    pub key: String,
    /// By what it came.
    pub via: Option<Via>,
    /// What problems call the manifest.
    pub file: String,
    /// The candidate.
    pub manifest: Manifest,
    /// The epoch that it is to follow on; whichever is in force when there is none.
    pub expected: Option<Epoch>,
    /// Whether it ends the running turn instead of waiting for the next.
    pub now: bool,
}

/// Why nothing was activated.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    /// The candidate is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Another one came first.
    #[error("{current} is in force, not {expected}")]
    Superseded {
        /// What the caller took to be in force.
        expected: Epoch,
        /// What is.
        current: Epoch,
    },
    /// There is nothing to go back to.
    #[error(transparent)]
    NoWayBack(#[from] NoWayBack),
    /// Its manifest could not be kept.
    #[error("the manifest could not be kept")]
    NotKept(#[from] KeptError),
    /// It was not admitted.
    #[error("the activation was not admitted: {0}")]
    NotAdmitted(#[from] AdmitError),
    /// It was tried with success, and then its real worker did not become ready.
    #[error("the hook worker did not become ready: {0}")]
    NotReady(String),
    /// The agent has stopped, or is not there yet.
    #[error("the agent is not there")]
    NoAgent,
}

impl From<Stopped> for ActivateError {
    fn from(_: Stopped) -> Self {
        ActivateError::NoAgent
    }
}

impl Live {
    /// A policy that owns nothing until its agent says what is in force. Starts no process.
    pub fn new(parts: Parts) -> Live {
        let Parts { mut trial, manifests, questions, probation, recorder, watch } = parts;
        let reads = Arc::new(Reads::over(trial.host));
        trial.host = reads.clone();
        let failures: Arc<Mutex<VecDeque<Invocation>>> = Arc::default();
        let kept = failures.clone();
        let recorder: Arc<dyn Recorder> = Arc::new(move |invocation: Invocation| {
            if !matches!(invocation.outcome, Outcome::Answered | Outcome::Abandoned) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(invocation.clone());
                let excess = kept.len().saturating_sub(FAILURES);
                kept.drain(..excess);
            }
            recorder.record(invocation);
        });
        let (deaths, died) = mpsc::unbounded_channel();
        Live(Arc::new(Shared {
            trial,
            reads,
            manifests,
            questions,
            probation,
            recorder,
            watch,
            agent: watch::Sender::new(None),
            at_work: RwLock::default(),
            staged: Mutex::new(None),
            announced: watch::Sender::new(None),
            trying: tokio::sync::Mutex::new(()),
            failures,
            deaths,
            died: Mutex::new(Some(died)),
        }))
    }

    /// Gives it the agent that it is the policy of: observers begin, failures are seen to. What is returned stops all
    /// of it, workers too, when it is dropped.
    pub fn attach(&self, agent: AgentHandle) -> Attached {
        Attached::start(self.0.clone(), agent)
    }

    /// Keeps what the agent was asked lately, for later trials: by itself that happens with the end of each turn.
    pub async fn keep_asked(&self) {
        self.0.flush_questions().await;
    }

    /// Everything that was put in force, the oldest first; the last is in force.
    ///
    /// # Errors
    ///
    /// Fails when the agent is not there.
    pub async fn history(&self) -> Result<Vec<InForce>, ActivateError> {
        Ok(self.0.agent()?.epochs().await?)
    }

    /// The manifest that governs what is in force, as it was kept; `None` when there is none.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be read back.
    pub async fn manifest(&self, of: &InForce) -> Result<Option<Manifest>, KeptError> {
        match &of.manifest {
            Some(name) => self.0.read(name.clone()).await.map(Some),
            None => Ok(None),
        }
    }

    /// The worker of what is in force, if it has one and it was started.
    pub fn worker(&self) -> Option<Arc<Worker>> {
        let newest = self.0.at_work().last_key_value().map(|(_, at_work)| at_work.clone())?;
        newest.worker().cloned()
    }

    /// The epochs that have a worker at this moment.
    pub fn at_work(&self) -> Vec<Epoch> {
        let is_running = |(epoch, at_work): (&Epoch, &Arc<AtWork>)| at_work.worker().map(|_| *epoch);
        self.0.at_work().iter().filter_map(is_running).collect()
    }

    /// The invocations that failed last, the oldest first.
    pub fn failures(&self) -> Vec<Invocation> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Tries a candidate without putting it in force.
    ///
    /// # Errors
    ///
    /// Fails when it is refused.
    pub async fn dry_run(&self, file: &str, candidate: &Manifest) -> Result<Report, ActivateError> {
        let epochs = self.history().await?;
        self.0.attempt(file, candidate, History(&epochs).current()).await
    }

    /// Tries a candidate, keeps its manifest, and puts it in force: its worker is warm by then.
    ///
    /// # Errors
    ///
    /// Fails before anything has changed.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the admission, nothing has changed; later, it is in force or is not, as the history tells.
    pub async fn activate(&self, order: Order) -> Result<(InForce, Report), ActivateError> {
        let shared = &self.0;
        let agent = shared.agent()?;
        let _trying = shared.trying.lock().await;
        let epochs = agent.epochs().await?;
        let before = History(&epochs).current();
        let (expected, current) = (order.expected.unwrap_or(before.epoch), before.epoch);
        if expected != current {
            return Err(ActivateError::Superseded { expected, current });
        }
        let Order { key, via, file, manifest, now, .. } = order;
        let report = shared.attempt(&file, &manifest, before).await?;
        let (manifests, manifest) = (shared.manifests.clone(), Arc::new(manifest));
        let kept = manifest.clone();
        let keeping = tokio::task::spawn_blocking(move || manifests.keep(&kept));
        let hash = keeping.await.map_err(|_| ActivateError::NoAgent)??;
        let name: Arc<str> = hash.to_string().into();
        let epoch = expected.next();
        let staged = Arc::new(AtWork::new(epoch, Some(name.clone())));
        if let Some(worker) = staged.begin(shared.built(epoch, manifest.clone())) {
            shared.trial.warm(worker, &manifest).await.map_err(ActivateError::NotReady)?;
        }
        *shared.staged() = Some(staged);
        let soul_in_force = agent.soul().await?;
        let soul = manifest.soul.clone().filter(|soul| *soul != soul_in_force);
        let activation = Activation {
            manifest: Some(name.clone()),
            slots: manifest.bindings(),
            soul,
            now,
            expected: Some(expected),
            cause: Cause::Activated,
        };
        let admitted = admit(&agent, &key, via, activation).await;
        *shared.staged() = None;
        admitted?;
        let epochs = agent.epochs().await?;
        match epochs.iter().find(|one| one.epoch == epoch && one.manifest.as_ref() == Some(&name)) {
            Some(in_force) => Ok((in_force.clone(), report)),
            None => Err(ActivateError::Superseded { expected, current: History(&epochs).current().epoch }),
        }
    }

    /// As [`roll_back`], for the agent that it is attached to.
    ///
    /// # Errors
    ///
    /// As [`roll_back`].
    pub async fn roll_back(
        &self,
        key: &str,
        via: Option<Via>,
        to: Option<Epoch>,
    ) -> Result<InForce, ActivateError> {
        roll_back(&self.0.agent()?, key, via, to).await
    }
}

/// Goes back to what was in force in an epoch, or to what was in force before when none is named. Needs no Python, not
/// even a policy at work, and waits for no candidate that is being tried.
///
/// # Errors
///
/// Fails when there was none of that number, or when it could not be admitted.
pub async fn roll_back(
    agent: &AgentHandle,
    key: &str,
    via: Option<Via>,
    to: Option<Epoch>,
) -> Result<InForce, ActivateError> {
    let epochs = agent.epochs().await?;
    let history = History(&epochs);
    let to = to.map_or_else(|| history.before(), Ok)?;
    let activation = history.back_to(to)?;
    let cause = activation.cause.clone();
    admit(agent, key, via, activation).await?;
    let after = agent.epochs().await?;
    let known = History(&epochs).current().epoch;
    let ours = |one: &&InForce| one.epoch > known && one.cause == cause;
    // A repeat of a request that was carried out before finds what is in force.
    Ok(after.iter().find(ours).unwrap_or(History(&after).current()).clone())
}

async fn admit(
    agent: &AgentHandle,
    key: &str,
    via: Option<Via>,
    activation: Activation,
) -> Result<(), AdmitError> {
    let control = Control::Activate(Box::new(activation));
    let event = NewEvent::control(format!("{}:{key}", control.verb()), control);
    let event = match via {
        Some(via) => event.by(via),
        None => event,
    };
    agent.admit(event).await.map(drop)
}

impl Shared {
    fn agent(&self) -> Result<AgentHandle, ActivateError> {
        self.agent.borrow().clone().ok_or(ActivateError::NoAgent)
    }

    fn at_work(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Epoch, Arc<AtWork>>> {
        self.at_work.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn staged(&self) -> MutexGuard<'_, Option<Arc<AtWork>>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, name: Arc<str>) -> Result<Manifest, KeptError> {
        let manifests = self.manifests.clone();
        let reading = tokio::task::spawn_blocking(move || manifests.read(&name));
        reading.await.unwrap_or_else(|_| Err(KeptError::NoHash("the host is stopping".to_owned())))
    }

    /// Tries a candidate on what was asked before.
    async fn attempt(
        &self,
        file: &str,
        candidate: &Manifest,
        before: &InForce,
    ) -> Result<Report, ActivateError> {
        let in_force = match &before.manifest {
            // What cannot be read any more must not stand in its successor's way.
            Some(name) => self.read(name.clone()).await.unwrap_or_default(),
            None => Manifest::default(),
        };
        self.flush_questions().await;
        let questions = self.questions.clone();
        let recorded =
            tokio::task::spawn_blocking(move || questions.read(TRIED_ON)).await.unwrap_or_default();
        let mut report = self.trial.run(file, candidate, &in_force, &recorded).await?;
        // The operator may have replaced the soul since that manifest.
        let soul = self.agent()?.soul().await?;
        match &candidate.soul {
            Some(own) if *own != soul => {
                report.affected.insert(Affected::Prefix);
            }
            Some(_) | None if candidate.skills == in_force.skills => {
                report.affected.remove(&Affected::Prefix);
            }
            Some(_) | None => {}
        }
        Ok(report)
    }

    /// Keeps what the agent was asked since the last time.
    async fn flush_questions(&self) {
        let Ok(agent) = self.agent() else { return };
        let asked: Vec<Asked> = agent.asked().await.unwrap_or_default();
        if asked.is_empty() {
            return;
        }
        let questions = self.questions.clone();
        let keeping = tokio::task::spawn_blocking(move || questions.add(asked)).await;
        if let Ok(Err(error)) = keeping {
            tracing::warn!(%error, "the questions that were asked could not be kept for later trials");
        }
    }

    /// The hooks of a manifest, over a worker that starts now; nobody waits for it.
    fn built(&self, epoch: Epoch, manifest: Arc<Manifest>) -> Built {
        let watch = Arc::new(Told { epoch, deaths: self.deaths.clone(), watch: Arc::clone(&self.watch) });
        Built::new(&self.trial, epoch, manifest, watch, self.recorder.clone())
    }

    /// What answers the questions of an epoch. One that is not at work any more comes back from the records.
    async fn resolve(&self, epoch: Epoch) -> Result<Arc<AtWork>, HookFailure> {
        let found = self.at_work().range(..=epoch).next_back().map(|(_, at_work)| at_work.clone());
        let at_work = match found {
            Some(at_work) => at_work,
            None => {
                let gone = |_| HookFailure::Unavailable { reason: "the agent is not there".into() };
                let mut agents = self.agent.subscribe();
                let agent = agents.wait_for(Option::is_some).await.map_err(|_| gone(()))?.clone();
                let agent = agent.ok_or_else(|| gone(()))?;
                let epochs = agent.epochs().await.map_err(|_| gone(()))?;
                let nobody = || HookFailure::Unavailable { reason: "nobody owns the slot".into() };
                let governing = History(&epochs).governing(epoch).ok_or_else(nobody)?;
                let fresh = Arc::new(AtWork::new(governing.epoch, governing.manifest.clone()));
                let mut at_work = self.at_work.write().unwrap_or_else(PoisonError::into_inner);
                at_work.entry(governing.epoch).or_insert(fresh).clone()
            }
        };
        self.begin(&at_work).await.map_err(|reason| HookFailure::Unavailable { reason })?;
        Ok(at_work)
    }

    /// Sees to it that an epoch is at work: its manifest read, its worker started. Nobody waits for the worker.
    async fn begin(&self, at_work: &AtWork) -> Result<(), Arc<str>> {
        at_work
            .begin_with(async |name| match self.read(name).await {
                Ok(manifest) => Ok(self.built(at_work.epoch(), Arc::new(manifest))),
                Err(error) => {
                    let source = std::error::Error::source(&error).map(|why| format!(": {why}"));
                    Err(format!("its manifest cannot be read: {error}{}", source.unwrap_or_default()).into())
                }
            })
            .await
    }

    /// Lets go what was put in force before what governs an epoch: no turn asks it any more.
    fn retire(&self, epoch: Epoch) {
        let mut at_work = self.at_work.write().unwrap_or_else(PoisonError::into_inner);
        let Some(governing) = at_work.range(..=epoch).next_back().map(|(epoch, _)| *epoch) else { return };
        let newer = at_work.split_off(&governing);
        let old = std::mem::replace(&mut *at_work, newer);
        drop(at_work);
        // Outside the lock: the last holder of an epoch kills its worker.
        drop(old);
    }
}

/// Hears of an epoch's worker: its deaths are counted, and everything is told on.
struct Told {
    epoch: Epoch,
    deaths: mpsc::UnboundedSender<(Epoch, Change)>,
    watch: Arc<dyn Watch>,
}

impl Watch for Told {
    fn changed(&self, number: u64, change: Change) {
        if matches!(change, Change::Died { .. } | Change::NotStarted { .. }) {
            // Nobody listens any more when everything ends.
            let _ = self.deaths.send((self.epoch, change.clone()));
        }
        self.watch.changed(number, change);
    }

    fn logged(&self, number: u64, logged: Logged) {
        self.watch.logged(number, logged);
    }
}

#[async_trait]
impl Policy for Live {
    /// None: what is in force is the records' to say.
    fn slots(&self) -> Bindings {
        Bindings::new()
    }

    fn activated(&self, epoch: Epoch, manifest: Option<Arc<str>>) {
        let staged = self.0.staged().take();
        let staged = staged.filter(|staged| staged.epoch() == epoch && staged.name() == manifest.as_ref());
        let fresh = || Arc::new(AtWork::new(epoch, manifest));
        let mut at_work = self.0.at_work.write().unwrap_or_else(PoisonError::into_inner);
        at_work.entry(epoch).or_insert_with(|| staged.unwrap_or_else(fresh));
        drop(at_work);
        self.0.announced.send_replace(Some(epoch));
    }

    async fn decide(&self, epoch: Epoch, question: Question) -> Result<Answer, HookFailure> {
        // Held until the answer is there: an activation in between changes nothing for this question.
        let at_work = self.0.resolve(epoch).await?;
        at_work.decide(question).await
    }
}
