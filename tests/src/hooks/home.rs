//! A home: an agent on SQLite whose review of actions a Python hook owns, and everything that watches it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use klbr_core::config::Config;
use klbr_core::event::Control;
use klbr_core::ids::{Epoch, Seq};
use klbr_core::policy::{Activation, Answer, Bindings, HookFailure, Question, Slot};
use klbr_core::record::Stamped;
use klbr_core::runtime::policy::Policy;
use klbr_core::runtime::{AgentBuilder, AgentHandle, RunningAgent};
use klbr_pyhost::{
    Change, Entry, HookPolicy, HostCalls, Invocation, Kind, Limits, OnDeath, Patience, Program, Recorder,
    SlotBinding, Sources, Spec, Watch, Worker,
};
use klbr_store::{Durability, Options, SqliteStore};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::judge::Executor;
use super::model::Obedient;

/// No two homes use one key, also of those that live in one folder one after the other.
static KEYS: AtomicUsize = AtomicUsize::new(0);

/// How long anything may take before a proof fails.
pub(super) const WATCHDOG: Duration = Duration::from_secs(60);

/// Where the hook stands.
pub(crate) const RUN: &str = "p:f";

/// Why a proof came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// There is no Python that is new enough.
    #[error("there is no Python 3.11 or later; name one in KLBR_PYTHON")]
    NoPython,
    /// The system refused.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// A program of the workspace is not there.
    #[error(transparent)]
    Process(#[from] crate::process::ProcessError),
    /// Something inside this process failed.
    #[error("{0}")]
    Inside(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was waited for did not come.
    #[error("it did not come: {0}")]
    Absent(String),
}

impl HomeError {
    pub(super) fn inside(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HomeError {
        HomeError::Inside(error.into())
    }
}

/// What a home is made with.
pub(super) struct Setup<'a> {
    /// The module in which `f` reviews actions.
    pub(super) code: &'a str,
    /// How long a review may take.
    pub(super) deadline: Duration,
    /// What its hook may ask.
    pub(super) host: Arc<dyn HostCalls>,
    /// Changes to how the worker is started, told the home's folder.
    pub(super) change: &'a (dyn Fn(&mut Spec, &Path) + Sync),
    /// What a commit survives.
    pub(super) durability: Durability,
}

/// Everything that a proof watches. Dropping it ends the processes and removes the folder.
pub(super) struct Home {
    pub(super) agent: RunningAgent,
    pub(super) policy: Timed,
    pub(super) model: Obedient,
    pub(super) executor: Executor,
    pub(super) invocations: Arc<Mutex<Vec<Invocation>>>,
    recorder: Arc<dyn Recorder>,
    pub(super) changes: watch::Receiver<Vec<Change>>,
    pub(super) folder: Folder,
    said: usize,
}

impl Home {
    pub(super) async fn start(setup: Setup<'_>) -> Result<Home, HomeError> {
        Home::start_in(Folder::new()?, setup).await
    }

    /// Goes on in a folder in which an agent has lived before.
    pub(super) async fn start_in(folder: Folder, setup: Setup<'_>) -> Result<Home, HomeError> {
        let mut spec = spec(folder.path(), setup.code, Slot::ActionReview)?;
        (setup.change)(&mut spec, folder.path());
        let (told, changes) = watch::channel(Vec::new());
        let watch: Arc<dyn Watch> = Arc::new(move |_, change: Change| {
            told.send_modify(|changes: &mut Vec<Change>| changes.push(change))
        });
        let worker = Arc::new(Worker::start(spec, setup.host, watch));
        let invocations: Arc<Mutex<Vec<Invocation>>> = Arc::default();
        let kept = Arc::clone(&invocations);
        let recorder: Arc<dyn Recorder> = Arc::new(move |invocation: Invocation| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(invocation);
        });
        let policy = Timed::new(policy(worker, Slot::ActionReview, setup.deadline, Arc::clone(&recorder)));
        let options = Options { durability: setup.durability, ..Options::default() };
        let store = SqliteStore::open(&folder.path().join("klbr.db"), options).map_err(HomeError::inside)?;
        let config = Config::new("hooks".parse().map_err(HomeError::inside)?, "m");
        let (model, executor) = (Obedient::default(), Executor::default());
        let agent = AgentBuilder::new(config, store, model.clone())
            .any_tool(Arc::new(executor.clone()))
            .policy(policy.clone())
            .start()
            .await
            .map_err(HomeError::inside)?;
        let said = KEYS.fetch_add(1_000_000, Ordering::Relaxed);
        Ok(Home { agent, policy, model, executor, invocations, recorder, changes, folder, said })
    }

    /// What takes the records of invocations.
    pub(super) fn recorder(&self) -> Arc<dyn Recorder> {
        Arc::clone(&self.recorder)
    }

    pub(super) fn handle(&self) -> &AgentHandle {
        self.agent.handle()
    }

    pub(super) fn worker(&self) -> &Arc<Worker> {
        self.policy.inner.worker()
    }

    /// A key that no message had before.
    pub(super) fn key(&mut self) -> String {
        self.said += 1;
        format!("said-{}", self.said)
    }

    /// Says something as the operator; when it was acknowledged, and how long that took.
    pub(super) async fn say(&mut self, text: &str) -> Result<(Instant, Duration), HomeError> {
        let key = self.key();
        let begun = Instant::now();
        self.handle().say(&key, text).await.map_err(HomeError::inside)?;
        Ok((Instant::now(), begun.elapsed()))
    }

    /// Has the agent call `act` with these arguments, and answers with what the model was told of it.
    pub(super) async fn act(&mut self, arguments: &str) -> Result<String, HomeError> {
        let after = self.model.count();
        self.say(&format!("do {arguments}")).await?;
        // What comes before may be about a call before.
        let (_, next) = self.model.is_told(&format!("do {arguments}"), after).await?;
        self.result(next).await
    }

    /// Has the operator speak in the midst of something: how long the admission took, and from there until the model is
    /// asked, and what became of the answer.
    pub(super) async fn interrupt(&mut self) -> Result<(Duration, Duration, String), HomeError> {
        let after = self.model.count();
        let (acknowledged, admitted) = self.say("say hello").await?;
        let (seen, next) = self.model.is_told("say hello", after).await?;
        let answer = self.result(next).await?;
        Ok((admitted, seen.at.saturating_duration_since(acknowledged), answer))
    }

    /// Takes every policy out of force, at once; how long the acknowledgement took.
    pub(super) async fn roll_back(&mut self) -> Result<Duration, HomeError> {
        let key = self.key();
        let back = Activation { now: true, ..Activation::default() };
        let begun = Instant::now();
        let command = self.handle().control(&key, Control::Activate(Box::new(back)));
        command.await.map_err(HomeError::inside)?;
        Ok(begun.elapsed())
    }

    /// The next result of a call.
    pub(super) async fn result(&self, after: usize) -> Result<String, HomeError> {
        self.model.result(after).await
    }

    /// Stops the agent and reads everything that it committed.
    pub(super) async fn close(self) -> Result<Closed, HomeError> {
        let (handle, agent) = (self.handle().clone(), self.handle().agent().clone());
        self.agent.shutdown().await;
        let records = handle.store().records(&agent, Seq(0), usize::MAX).await.map_err(HomeError::inside)?;
        let invocations =
            std::mem::take(&mut *self.invocations.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Closed { records, executor: self.executor, invocations, folder: self.folder })
    }
}

/// How Python is started in a folder.
///
/// # Errors
///
/// Fails when there is none, or its package cannot be put on disk.
pub(crate) fn program(folder: &Path) -> Result<Program, HomeError> {
    let cached = std::env::temp_dir().join(format!("klbr-hooks-{}", Sources.hash()));
    Ok(Program {
        python: super::python().ok_or(HomeError::NoPython)?,
        package: Sources.install(&cached)?,
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("LANG".into(), "C.UTF-8".into())],
        directory: folder.to_owned(),
        bytecode: Some(cached.join("bytecode")),
        limits: Limits::default(),
    })
}

/// A worker in a folder, in whose module `p` the function `f` owns a slot.
///
/// # Errors
///
/// As [`program`]; and when the module cannot be written.
pub(crate) fn spec(folder: &Path, code: &str, slot: Slot) -> Result<Spec, HomeError> {
    std::fs::write(folder.join("p.py"), code)?;
    Ok(Spec {
        program: program(folder)?,
        epoch: 1,
        paths: vec![folder.to_owned()],
        hooks: vec![Entry { run: RUN.into(), kind: Kind::Slot, name: slot.as_str().into() }],
        patience: Patience::default(),
    })
}

/// A policy whose one slot is owned by the function `f` of such a worker.
pub(crate) fn policy(
    worker: Arc<Worker>,
    slot: Slot,
    deadline: Duration,
    recorder: Arc<dyn Recorder>,
) -> HookPolicy {
    let binding = SlotBinding { run: RUN.into(), deadline, on_death: OnDeath::Fail };
    HookPolicy::new(worker, BTreeMap::from([(slot, binding)]), recorder)
}

/// What is left of a home whose agent has stopped.
pub(super) struct Closed {
    pub(super) records: Vec<Stamped>,
    pub(super) executor: Executor,
    pub(super) invocations: Vec<Invocation>,
    pub(super) folder: Folder,
}

/// A folder that is removed.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> std::io::Result<Self> {
        crate::folder("klbr-hooks").map(Folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What something still writes there is of no use to anyone.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A question that was asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    /// How long the policy had it, once that is over.
    pub(super) took: Option<Duration>,
    /// When a timer of the deadline's length rang that was set in the same moment.
    pub(super) control: Option<Duration>,
}

/// The hook policy, with a control timer beside each question. Clones share everything.
#[derive(Clone)]
pub(super) struct Timed {
    inner: Arc<HookPolicy>,
    asked: watch::Sender<Vec<Asked>>,
    timers: Arc<Mutex<JoinSet<()>>>,
}

impl Timed {
    fn new(inner: HookPolicy) -> Self {
        Timed { inner: Arc::new(inner), asked: watch::Sender::default(), timers: Arc::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.asked.borrow().len()
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// Waits until something holds of a question by its number.
    pub(super) async fn until(
        &self,
        number: usize,
        wanted: impl Fn(&Asked) -> bool,
    ) -> Result<Asked, HomeError> {
        let mut asked = self.asked.subscribe();
        let waiting = asked.wait_for(|asked| asked.get(number).is_some_and(&wanted));
        let found = tokio::time::timeout(WATCHDOG, waiting).await;
        let found = found.ok().and_then(Result::ok).map(|asked| asked[number].clone());
        found.ok_or_else(|| {
            HomeError::Absent(format!("question {number}: {:?}", self.asked.borrow().get(number)))
        })
    }
}

impl Timed {
    fn set(&self, timer: impl Future<Output = ()> + Send + 'static) {
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        while timers.try_join_next().is_some() {}
        timers.spawn(timer);
    }
}

#[async_trait]
impl Policy for Timed {
    fn slots(&self) -> Bindings {
        self.inner.slots()
    }

    async fn decide(&self, epoch: Epoch, question: Question) -> Result<Answer, HookFailure> {
        let deadline = self.slots().get(&question.slot()).copied().unwrap_or_default();
        let begun = Instant::now();
        let mut number = 0;
        self.asked.send_modify(|asked| {
            number = asked.len();
            asked.push(Asked { question: question.clone(), took: None, control: None });
        });
        let told = self.asked.clone();
        let timer = async move {
            tokio::time::sleep(deadline).await;
            told.send_modify(|asked| asked[number].control = Some(begun.elapsed()));
        };
        self.set(timer);
        let _ends = Ends { asked: &self.asked, number, begun };
        self.inner.decide(epoch, question).await
    }
}

/// Stamps the end of a question, also of one that is given up.
struct Ends<'a> {
    asked: &'a watch::Sender<Vec<Asked>>,
    number: usize,
    begun: Instant,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        self.asked.send_modify(|asked| asked[self.number].took = Some(took));
    }
}
