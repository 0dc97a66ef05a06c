//! The one place that reads the process: its environment, its terminal; and that puts the parts together.

use std::io::{IsTerminal as _, stderr, stdin, stdout};
use std::path::PathBuf;

use klbr_core::ids::AgentName;
use klbr_server::config::{AGENT, Config};

use crate::args::Common;
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// The environment's name for the home.
const HOME: &str = "KLBR_HOME";

/// What a verb works with: flags, then the environment, then what the home says.
pub(crate) fn context(common: &Common) -> Outcome<Context> {
    let home = home(common)?;
    Ok(Context { home, agent: common.agent.clone(), json: common.json })
}

fn home(common: &Common) -> Outcome<PathBuf> {
    let given = common.home.clone().or_else(|| variable(HOME).map(PathBuf::from));
    let usual = || variable("HOME").map(|user| PathBuf::from(user).join(".klbr"));
    let home = given.or_else(usual).ok_or_else(|| {
        CommandError::user("no home is known: neither --home, KLBR_HOME nor HOME is set", "name one with --home FOLDER")
    })?;
    Ok(std::path::absolute(home)?)
}

/// What a home is configured with.
pub(crate) fn config(home: &std::path::Path, agent: Option<&AgentName>) -> Outcome<Config> {
    let flags = |name: &str| (name == AGENT).then(|| agent.map(AgentName::to_string)).flatten();
    Ok(Config::load(home, &flags, &variable)?)
}

/// The editor that the operator prefers.
pub(crate) fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(variable).filter(|editor| !editor.trim().is_empty())
}

/// Whether somebody sits at both ends of this program.
pub(crate) fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal() && variable("TERM").is_none_or(|term| term != "dumb")
}

/// What is known of the terminal, for `doctor`.
pub(crate) struct TerminalFacts {
    pub(crate) is_interactive: bool,
    pub(crate) term: Option<String>,
    pub(crate) locale: Option<String>,
}

/// Looks at the terminal.
pub(crate) fn terminal() -> TerminalFacts {
    TerminalFacts {
        is_interactive: stdin().is_terminal() && stdout().is_terminal() && stderr().is_terminal(),
        term: variable("TERM"),
        locale: ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
