//! Policy in Python and the workbench, over the wire: what is in force, what a candidate would change, what cells left.

use std::collections::BTreeSet;
use std::sync::Arc;

use klbr_core::ids::Epoch;
use klbr_core::policy::{Answer, InForce, Question};
use klbr_pyhost::{Affected, LoadedHook, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The policy in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// What is in force, since when, and why.
    pub in_force: InForce,
    /// Its hooks, in the manifest's order.
    pub hooks: Vec<Hook>,
    /// Why they are not known, where their manifest cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Whether Python is used at all.
    pub python: PythonStatus,
    /// The process that answers for its hooks; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Process>,
    /// The epochs that have a process: an older one lives until its turn has ended.
    pub at_work: Vec<Epoch>,
    /// The invocations that failed last, the oldest first.
    pub failures: Vec<Failure>,
}

/// Whether Python is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "python", rename_all = "snake_case")]
pub enum PythonStatus {
    /// It is.
    On {
        /// The interpreter.
        interpreter: String,
    },
    /// Nobody asked for it; what is in force goes on.
    Unasked {
        /// The interpreter.
        interpreter: String,
    },
    /// It is switched off.
    Off,
}

/// A hook of what is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// `slot`, `transform` or `observer`.
    pub kind: String,
    /// What it is bound to, such as `delivery.review`.
    pub name: Arc<str>,
    /// `module:function`.
    pub run: Arc<str>,
    /// Its place among the transforms of its family, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
    /// How long it may take, in milliseconds.
    pub deadline_ms: u64,
    /// What becomes of the operation when it fails: `default`, `held`, `skipped`, `retried`.
    pub on_failure: String,
    /// The last record that it is done with, for an observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
    /// Where it is written, once its process has found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<LoadedHook>,
    /// Why its process could not load it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How a Python process is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Process {
    /// There is none yet: it is started when it is first needed.
    Absent,
    /// It starts and imports.
    Starting,
    /// It answers.
    Ready {
        /// Its process id.
        pid: u32,
        /// Its interpreter's version.
        version: Arc<str>,
        /// From its start until it was ready, in milliseconds.
        took_ms: u64,
    },
    /// It ended, and the next one is about to be started.
    BackingOff {
        /// Why it ended.
        reason: Arc<str>,
        /// In how many milliseconds.
        in_ms: u64,
    },
    /// It was stopped.
    Stopped,
}

/// An invocation of a hook that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// `module:function`.
    pub run: Arc<str>,
    /// What it is bound to.
    pub name: Arc<str>,
    /// The epoch that it was asked in.
    pub epoch: Epoch,
    /// How it failed.
    pub how: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// How long it had, in milliseconds.
    pub deadline_ms: u64,
}

/// Everything that was put in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyLog {
    /// The oldest first; the last is in force.
    pub epochs: Vec<InForce>,
}

/// A candidate to put in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What problems call its file.
    pub file: String,
    /// The manifest, TOML.
    pub text: String,
    /// The epoch that it is to follow on; whichever is in force when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Epoch>,
    /// Whether it ends the running turn instead of waiting for the next.
    #[serde(default)]
    pub now: bool,
}

/// A candidate that is in force now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Activated {
    /// What is in force.
    pub in_force: InForce,
    /// What it changed.
    #[serde(flatten)]
    pub trial: Trial,
}

/// A candidate to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DryRun {
    /// What problems call its file.
    pub file: String,
    /// The manifest, TOML.
    pub text: String,
}

/// What came of trying a candidate: what it would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What it restarts or remakes.
    pub affected: BTreeSet<Affected>,
    /// Its hooks as they were found.
    pub hooks: Vec<LoadedHook>,
    /// How many questions it was asked that had been asked before.
    pub asked: usize,
    /// Those that it answers differently.
    pub differences: Vec<Difference>,
}

/// A question that a candidate answers differently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The question.
    pub question: Question,
    /// What was decided then.
    pub before: Answer,
    /// What the candidate says.
    pub after: Answer,
}

/// Where to go back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// An epoch that was in force; what was in force before when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Epoch>,
}

/// The workbench of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkbenchStatus {
    /// Which life of its process this is, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
}

/// What cells left in the workbench.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variables {
    /// Each variable.
    pub variables: Vec<Variable>,
}
