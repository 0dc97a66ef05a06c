//! The hook worker: one supervised Python process that answers calls. Owns its restarts and the deadlines of its calls.
//!
//! Deadlines hold in every state, because they are timers of the host: while the interpreter starts, imports, spins, or
//! sits in C code. A call that misses its deadline is cancelled; if the worker does not answer to that within the grace,
//! it is replaced.

pub(crate) mod supervise;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::host::HostCalls;
use crate::process::Program;
use crate::protocol::{FailedHook, HelloHook, HookError, LoadedHook, Logged, ToPython};
use supervise::{LastWords, Role};

use crate::session::wire::{Ask, BeginError, Context, Reply, Wire};

/// What a worker is made of.
#[derive(Clone)]
pub struct Spec {
    /// How Python is started.
    pub program: Program,
    /// The epoch that it serves.
    pub epoch: u64,
    /// Folders that its hooks are imported from.
    pub paths: Vec<std::path::PathBuf>,
    /// The hooks that it loads.
    pub hooks: Vec<Entry>,
    /// How patient the host is with it.
    pub patience: Patience,
}

/// One hook that a worker loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `module:function`.
    pub run: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// The slot, transform or record that it is bound to.
    pub name: Arc<str>,
}

/// The three kinds of hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A decision with one owner.
    Slot,
    /// A rewrite, in order.
    Transform,
    /// A listener to what was committed.
    Observer,
}

impl Kind {
    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Slot => "slot",
            Kind::Transform => "transform",
            Kind::Observer => "observer",
        }
    }
}

/// How patient the host is with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From its start until it is ready, imports included.
    pub start: Duration,
    /// From a missed deadline until it has answered to being cancelled.
    pub grace: Duration,
    /// How long a worker may have nothing to do before it is asked for a sign of life.
    pub heartbeat: Duration,
    /// How long it may take to give one, before it is replaced.
    pub silence: Duration,
    /// The first pause before a process that died is started anew, doubled with each further death. A first death
    /// after a calm time is followed by no pause.
    pub back_off: Duration,
    /// The longest such pause.
    pub back_off_max: Duration,
    /// How long it has to live for its deaths to be forgotten.
    pub calm: Duration,
    /// How many host calls one hook call may make.
    pub host_calls: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            start: Duration::from_secs(10),
            grace: Duration::from_millis(100),
            heartbeat: Duration::from_secs(5),
            silence: Duration::from_secs(3),
            back_off: Duration::from_millis(50),
            back_off_max: Duration::from_secs(30),
            calm: Duration::from_secs(10),
            host_calls: 64,
        }
    }
}

/// What a worker is doing.
#[derive(Clone)]
pub enum State {
    /// A process is starting and importing.
    Starting,
    /// It answers calls.
    Ready(Arc<Loaded>),
    /// It died, and the next one is started at an instant.
    BackingOff {
        /// Why it died.
        reason: Arc<str>,
        /// When the next one starts.
        until: Instant,
    },
    /// It was stopped.
    Stopped,
}

/// A process that is ready.
pub struct Loaded {
    /// Its process id.
    pub pid: u32,
    /// Its interpreter's version.
    pub python: Arc<str>,
    /// The hooks that it has.
    pub hooks: Vec<LoadedHook>,
    /// The hooks that could not be loaded. The others work.
    pub failed: Vec<FailedHook>,
    /// From its start until it was ready.
    pub took: Duration,
    /// The epoch of a worker; of a workbench, which of its lives this is.
    pub(crate) generation: u64,
    pub(crate) wire: Arc<Wire>,
    /// What it left, once it is gone with everything that came of it.
    pub(crate) ended: watch::Receiver<Option<Arc<LastWords>>>,
}

/// What happened to a worker, for the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A process was started.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// It is ready.
    Ready {
        /// Its process id.
        pid: u32,
        /// From its start.
        took: Duration,
        /// The hooks that it could not load, each with why.
        failed: Vec<FailedHook>,
    },
    /// It is gone, or was killed, with everything that came of it.
    Died {
        /// Its process id.
        pid: u32,
        /// Why.
        reason: Arc<str>,
        /// The last 4 KiB that it wrote to standard error.
        stderr: Arc<str>,
        /// The pause until the next one.
        pause: Duration,
    },
    /// No process could be started.
    NotStarted {
        /// Why.
        reason: Arc<str>,
        /// The pause until the next try.
        pause: Duration,
    },
}

/// Hears what happens to workers. Called on the supervisor's task: quick, and without waiting.
pub trait Watch: Send + Sync + 'static {
    /// Something happened to the worker of an epoch.
    fn changed(&self, epoch: u64, change: Change);

    /// User code logged something in the worker of an epoch.
    fn logged(&self, epoch: u64, logged: Logged) {
        let (_, _) = (epoch, logged);
    }
}

impl<F: Fn(u64, Change) + Send + Sync + 'static> Watch for F {
    fn changed(&self, epoch: u64, change: Change) {
        self(epoch, change);
    }
}

/// One call of a hook.
#[derive(Clone, Debug)]
pub struct Call {
    /// `module:function`.
    pub run: Arc<str>,
    /// The question, the value, or the record.
    pub body: Value,
    /// When its answer is no longer wanted.
    pub deadline: Instant,
    /// Whether it is asked again when the worker dies under it.
    pub on_death: OnDeath,
}

/// What becomes of a call whose worker dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeath {
    /// It is asked again of the next worker, within its deadline.
    AskAgain,
    /// It has failed.
    Fail,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No answer by the deadline.
    #[error("no answer by the deadline")]
    Deadline,
    /// It could not be asked, or the worker died under it.
    #[error("the hook worker is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The hook failed.
    #[error("{0}")]
    Failed(Box<HookError>),
}

/// A supervised hook worker. Dropping it kills the process.
pub struct Worker {
    epoch: u64,
    state: watch::Receiver<State>,
    patience: Patience,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Worker {
    /// Starts one, on the tokio runtime at hand. Returns at once; the process may not even exist yet.
    pub fn start(spec: Spec, host: Arc<dyn HostCalls>, watch: Arc<dyn Watch>) -> Worker {
        Worker::start_as(Role::Worker, spec, host, watch)
    }

    /// Supervises a process of either role.
    pub(crate) fn start_as(
        role: Role,
        spec: Spec,
        host: Arc<dyn HostCalls>,
        watch: Arc<dyn Watch>,
    ) -> Worker {
        let (sender, state) = watch::channel(State::Starting);
        let (stop, stopped) = watch::channel(false);
        let (epoch, patience) = (spec.epoch, spec.patience);
        let task = tokio::spawn(supervise::run(spec, role, host, watch, sender, stopped));
        Worker { epoch, state, patience, stop, task }
    }

    /// The epoch that it serves.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until a process is ready.
    ///
    /// # Errors
    ///
    /// Fails when that is not so by the deadline, or cannot be any more.
    pub async fn ready(&self, deadline: Instant) -> Result<Arc<Loaded>, CallError> {
        let mut state = self.state.clone();
        loop {
            match &*state.borrow_and_update() {
                State::Ready(loaded) => return Ok(Arc::clone(loaded)),
                State::Stopped => return Err(CallError::Unavailable("it was stopped".into())),
                // A call that cannot be answered in time is not kept waiting for nothing.
                State::BackingOff { reason, until } if *until >= deadline => {
                    return Err(CallError::Unavailable(Arc::clone(reason)));
                }
                State::Starting | State::BackingOff { .. } => {}
            }
            match timeout_at(deadline, state.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(CallError::Unavailable("its supervisor is gone".into())),
                Err(_) => return Err(CallError::Deadline),
            }
        }
    }

    /// Calls a hook. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// Fails by the deadline at the latest.
    pub async fn call(&self, call: Call) -> Result<Value, CallError> {
        loop {
            let loaded = self.ready(call.deadline).await?;
            if let Some(failed) = loaded.failed.iter().find(|failed| failed.run == call.run) {
                return Err(CallError::Unavailable(format!("{}: {}", call.run, failed.error).into()));
            }
            let left = call.deadline.saturating_duration_since(Instant::now());
            let context =
                Context { who: call.run.clone(), owner: "".into(), host_calls: self.patience.host_calls };
            let message = |id| ToPython::Call {
                id,
                hook: call.run.clone(),
                body: call.body.clone(),
                budget_ms: left.as_millis() as u64,
            };
            let mut waiting = match loaded.wire.begin(context, message) {
                Ok(waiting) => waiting,
                // It died in this moment: its successor is waited for, since this one was never asked.
                Err(BeginError::Closed) => {
                    self.after(&loaded, call.deadline).await?;
                    continue;
                }
                Err(error) => return Err(CallError::Unavailable(error.to_string().into())),
            };
            match timeout_at(call.deadline, waiting.reply()).await {
                Err(_) => return Err(CallError::Deadline),
                Ok(Some(Reply::Result(Ok(value)))) => return Ok(value),
                Ok(Some(Reply::Result(Err(error)))) => return Err(CallError::Failed(Box::new(error))),
                Ok(Some(Reply::Cell(_) | Reply::Vars(_))) => {
                    return Err(CallError::Unavailable("the worker answered another question".into()));
                }
                Ok(None) => match call.on_death {
                    OnDeath::AskAgain => self.after(&loaded, call.deadline).await?,
                    OnDeath::Fail => {
                        return Err(CallError::Unavailable("the worker died under the call".into()));
                    }
                },
            }
        }
    }

    /// Waits until `gone` is no longer the one that is called.
    async fn after(&self, gone: &Arc<Loaded>, deadline: Instant) -> Result<(), CallError> {
        let mut state = self.state.clone();
        let changed = state.wait_for(|state| match state {
            State::Ready(loaded) => !Arc::ptr_eq(loaded, gone),
            State::Starting | State::BackingOff { .. } | State::Stopped => true,
        });
        match timeout_at(deadline, changed).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(CallError::Unavailable("its supervisor is gone".into())),
            Err(_) => Err(CallError::Deadline),
        }
    }

    /// Has the process replaced by a fresh one.
    pub fn replace(&self, reason: &str) {
        if let State::Ready(loaded) = &*self.state.borrow() {
            loaded.wire.ask(Ask::End(reason.into()));
        }
    }

    /// Stops it, and waits until nothing of it is left.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // A supervisor that panicked has dropped its process, which kills it.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Spec {
    fn hello_hooks(&self) -> Vec<HelloHook> {
        let hooks = self.hooks.iter().map(|entry| HelloHook {
            run: Arc::clone(&entry.run),
            kind: entry.kind.as_str(),
            name: Arc::clone(&entry.name),
        });
        hooks.collect()
    }
}
