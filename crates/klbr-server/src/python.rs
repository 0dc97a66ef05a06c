//! Policy and cells in Python, as the daemon hosts them: what they are made of, and what of it is told to the log.
//!
//! [`Python::register`] is the one place where an agent is given them.

mod tools;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use klbr_core::runtime::AgentBuilder;
use klbr_pyhost::{
    Bench, Bounds, Change, Invocation, Ladder, Level, Limits, Live, Logged, Manifests, NoHost, Outcome,
    Parts, Patience, Probation, Program, PythonTool, Questions, Sources, Trees, Trial, Watch,
};

use crate::api::policy::PythonStatus;
use crate::config::{Config, Python as Choice, PythonConfig, Toolset};
use crate::home::Home;
use tools::{Hands, HooksActivate, HooksList, HooksPublish, HooksTry};

/// Where the Python package and its bytecode stand, within `run/` of the home.
const PACKAGE: &str = "python";

/// How many decided questions of each slot are kept where Python is used.
const QUESTIONS: usize = 16;

/// Python at an agent's service.
pub(crate) struct Python {
    pub(crate) live: Live,
    /// The action by which cells run; only where the model acts by them.
    pub(crate) cells: Option<Arc<PythonTool>>,
    hands: Hands,
    pub(crate) toolset: Toolset,
    /// How many decided questions of each slot the agent keeps in memory until they are written down.
    pub(crate) questions: usize,
    pub(crate) status: PythonStatus,
}

impl Python {
    /// Puts it together; `None` when it is switched off. Starts no hook worker. Blocks.
    ///
    /// # Errors
    ///
    /// Fails when the home cannot be written.
    pub(crate) fn new(config: &Config, home: &Home) -> io::Result<Option<Self>> {
        let (python, status) = match &config.python {
            Choice::On(python) => (python, PythonStatus::On { interpreter: shown(python) }),
            Choice::Unasked(python) => (python, PythonStatus::Unasked { interpreter: shown(python) }),
            Choice::Off => return Ok(None),
        };
        let agent = home.agent(&config.agent.name);
        let installed = home.run().join(PACKAGE);
        // Where nothing runs, nothing is installed for it.
        let is_used = matches!(config.python, Choice::On(_)) || home.policy().exists();
        if is_used {
            Sources.install(&installed)?;
            std::fs::create_dir_all(&agent)?;
        }
        let program = Program {
            python: python.interpreter.clone(),
            package: Sources.place(&installed),
            environment: python.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory: agent.clone(),
            bytecode: Some(installed.join("bytecode")),
            limits: Limits { memory: Some(python.memory), cpu: python.cpu, files: Some(python.files) },
        };
        let cells = (python.actions != Toolset::Tools).then(|| {
            let bench = Bench {
                program: program.clone(),
                paths: Vec::new(),
                patience: Patience::default(),
                ladder: Ladder::default(),
                outputs: Some(agent.join("outputs")),
                bounds: Bounds::default(),
            };
            Arc::new(PythonTool::new(bench, Arc::new(Told("workbench"))))
        });
        let (lookup, secrets) = (config.variables.clone(), config.secret_variables.clone());
        let variables = move |name: &str| match lookup.get(name) {
            _ if secrets.iter().any(|secret| secret == name) || name.starts_with("KLBR_") => {
                Err("is the daemon's own, and not for hooks")
            }
            Some(value) => Ok(OsString::from(value)),
            None => Err("is not set for the daemon"),
        };
        let live = Live::new(Parts {
            trial: Trial {
                program,
                patience: Patience::default(),
                trees: Trees::new(home.dir()),
                host: Arc::new(NoHost),
                variables: Arc::new(variables),
            },
            manifests: Manifests::new(home.dir()),
            questions: Questions::new(&agent),
            probation: Probation::default(),
            recorder: Arc::new(record),
            watch: Arc::new(Told("hook worker")),
        });
        let hands = Hands {
            live: live.clone(),
            trees: Trees::new(home.dir()),
            folder: agent,
            self_activation: python.self_activation,
        };
        let questions = if is_used { QUESTIONS } else { 0 };
        Ok(Some(Python { live, cells, hands, toolset: python.actions, questions, status }))
    }

    /// Gives an agent its policy; and where its model runs cells, the action for that and policy in its own hands.
    pub(crate) fn register(&self, builder: AgentBuilder) -> AgentBuilder {
        let builder = builder.policy(self.live.clone());
        match &self.cells {
            Some(cells) => builder
                .any_tool(cells.clone())
                .tool(HooksList(self.hands.clone()))
                .tool(HooksPublish(self.hands.clone()))
                .tool(HooksTry(self.hands.clone()))
                .tool(HooksActivate(self.hands.clone())),
            None => builder,
        }
    }
}

fn shown(python: &PythonConfig) -> String {
    PathBuf::from(&python.interpreter).display().to_string()
}

/// Tells the log of an invocation.
fn record(invocation: Invocation) {
    let Invocation { run, name, epoch, outcome, elapsed, .. } = invocation;
    match outcome {
        Outcome::Answered | Outcome::Abandoned => {
            tracing::debug!(%run, %name, epoch, ?elapsed, %outcome, "a hook was asked");
        }
        Outcome::Invalid { .. }
        | Outcome::Raised { .. }
        | Outcome::Deadline
        | Outcome::Unavailable { .. } => {
            tracing::warn!(%run, %name, epoch, ?elapsed, %outcome, "a hook failed");
        }
    }
}

/// Tells the log what happens to a process, and what user code logs in it.
struct Told(&'static str);

impl Watch for Told {
    fn changed(&self, epoch: u64, change: Change) {
        let what = self.0;
        match change {
            Change::Started { pid } => tracing::debug!(what, epoch, pid, "started"),
            Change::Ready { pid, took, failed } => {
                tracing::info!(what, epoch, pid, ?took, "ready");
                for hook in failed {
                    tracing::warn!(what, epoch, run = %hook.run, error = %hook.error, "a hook was not loaded");
                }
            }
            Change::Died { pid, reason, stderr, pause } => {
                tracing::warn!(what, epoch, pid, %reason, ?pause, stderr = %stderr, "died");
            }
            Change::NotStarted { reason, pause } => {
                tracing::warn!(what, epoch, %reason, ?pause, "could not be started");
            }
        }
    }

    fn logged(&self, epoch: u64, logged: Logged) {
        let Logged { level, logger, message, run, left_out, .. } = logged;
        let (what, run) = (self.0, run.as_deref());
        match level {
            Level::Debug => tracing::debug!(what, epoch, run, %logger, left_out, "{message}"),
            Level::Info => tracing::info!(what, epoch, run, %logger, left_out, "{message}"),
            Level::Warning => tracing::warn!(what, epoch, run, %logger, left_out, "{message}"),
            Level::Error | Level::Critical => {
                tracing::error!(what, epoch, run, %logger, left_out, "{message}")
            }
        }
    }
}
