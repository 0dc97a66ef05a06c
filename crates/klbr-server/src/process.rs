//! Processes that the agent starts, and their certain end.
//!
//! Owns the tool that runs one command line, off unless the configuration says otherwise, and the killing of
//! everything that came of it: the group, what left the group, what ignores SIGTERM, what lost its parent.
//! Refuses to leave anything running: when the command itself ends, what it left behind is killed too.
//!
//! Commands run as the daemon's own user: they get no token and none of the variables that hold keys, but
//! what that user may read, the home with its token included, they may read too (`C-TRUST`).
//!
//! On Linux a process belongs to a run when its environment carries the run's marker, when it stands in a
//! belonging process's group or session, or when its parent belongs. What wipes its environment *and*
//! leaves its session *and* outlives its parent escapes. Elsewhere only the process group is killed: there is
//! no view of other processes' environments, so what leaves the group escapes.

mod run;
mod tree;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{Class, FailureKind, Outcome};
use klbr_core::runtime::tool::{CallContext, Tool};
use klbr_core::time::Human;
use schemars::JsonSchema;
use serde::Deserialize;

use run::{End, Run};
pub(crate) use tree::kill_leftovers;

/// The environment variable that marks what the agent has started.
pub const MARKER: &str = "KLBR_PROCESS";

/// What this platform cannot do about processes, if anything.
pub const SHORTFALL: Option<&str> = if cfg!(target_os = "linux") {
    None
} else {
    Some("a process that leaves its process group is not found here, and outlives its command")
};

/// The longest that one command may run.
const LONGEST: Duration = Duration::from_secs(600);
/// How long it may run when the call does not say.
const USUAL: Duration = Duration::from_secs(60);

/// Runs command lines.
pub struct ProcessTool {
    /// The first part of the marker: the home.
    home: String,
    /// Where commands begin.
    dir: PathBuf,
    /// Variables that commands do not get.
    secrets: Vec<String>,
}

impl ProcessTool {
    pub(crate) fn new(home: String, dir: PathBuf, secrets: Vec<String>) -> Self {
        ProcessTool { home, dir, secrets }
    }
}

/// Arguments of [`ProcessTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandLine {
    /// The command line, for `sh -c`.
    command: String,
    /// How long it may run, in milliseconds, at most 600000; 60000 when absent.
    timeout_ms: Option<u64>,
}

#[async_trait]
impl Tool for ProcessTool {
    type Arguments = CommandLine;
    const NAME: &'static str = "process";
    const DESCRIPTION: &'static str = "Runs one command line with sh and shows its output and exit status. When it ends, \
                                       is cancelled or runs out of time, everything that it started is killed.";
    const CLASS: Class = Class::Irreversible;

    fn deadline(&self) -> Duration {
        LONGEST + Duration::from_secs(10)
    }

    async fn call(&self, _: CallContext, line: CommandLine) -> Outcome {
        let limit = line.timeout_ms.map_or(USUAL, Duration::from_millis).min(LONGEST);
        if line.command.trim().is_empty() || limit.is_zero() {
            return Outcome::failed(
                FailureKind::Invalid,
                "Not run: the command is empty or has no time to run.",
            );
        }
        let run = match Run::start(&line.command, &self.home, &self.dir, &self.secrets) {
            Ok(run) => run,
            Err(error) => {
                return Outcome::failed(
                    FailureKind::Refused,
                    format!("Not run: sh could not be started: {error}."),
                );
            }
        };
        let (end, output) = run.finish(limit).await;
        match end {
            End::Exited(status) if status.success() => Outcome::confirmed(format!("{output}[exit status 0]")),
            End::Exited(status) => Outcome::failed(FailureKind::Refused, format!("{output}[{status}]")),
            End::TimedOut => {
                let text =
                    format!("{output}[killed, with everything that it started, after {}]", Human(limit));
                Outcome::failed(FailureKind::TimedOut, text)
            }
            End::Lost(error) => Outcome::unknown(format!("{output}[its end could not be learnt: {error}]")),
        }
    }
}
