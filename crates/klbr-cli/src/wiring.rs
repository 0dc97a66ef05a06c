//! The one place that reads the process: its environment, its terminal; and that puts the parts together.

use std::io::{IsTerminal as _, stderr, stdin, stdout};
use std::path::{Path, PathBuf};

use klbr_codeintel::isolate::Isolation;
use klbr_core::ids::AgentName;
use klbr_server::config::{self, AGENT, Config};
use klbr_server::{Home, logging};

use crate::args::Common;
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// What a verb works with: flags, then the environment, then what the home says.
pub(crate) fn context(common: &Common) -> Outcome<Context> {
    let home = home(common)?;
    Ok(Context { home, agent: common.agent.clone(), json: common.json })
}

fn home(common: &Common) -> Outcome<PathBuf> {
    let home = common.home.clone().or_else(|| config::home(&variable)).ok_or_else(|| {
        let message = "no home is known: neither --home, KLBR_HOME nor HOME is set";
        CommandError::user(message, "name one with --home FOLDER")
    })?;
    Ok(std::path::absolute(home)?)
}

/// What a home is configured with.
pub(crate) fn config(home: &Path, agent: Option<&AgentName>) -> Outcome<Config> {
    let flags = |name: &str| (name == AGENT).then(|| agent.map(AgentName::to_string)).flatten();
    let config = Config::load(home, &flags, &variable)?;
    let variables = config::Variables::new(|name| std::env::var(name).ok());
    Ok(Config { parser: Some(parser()?), variables, ..config })
}

/// Begins to log: to the error stream, and to the home once it is there.
pub(crate) fn log(home: &Path) -> Outcome {
    let filter = logging::filter(&variable(config::LOG).unwrap_or_default()).map_err(|error| {
        CommandError::config(
            format!("{} is no filter", config::LOG),
            "write it like info or klbr_server=debug,warn",
        )
        .because(error)
    })?;
    let home = Home::new(home);
    let file = home.run().is_dir().then(|| logging::LogFile::open(&home.log()).ok()).flatten();
    tracing::subscriber::set_global_default(logging::subscriber(filter, file))
        .map_err(|error| CommandError::internal("nothing can be logged", "please report this").because(error))
}

/// The editor that the operator prefers.
pub(crate) fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(variable).filter(|editor| !editor.trim().is_empty())
}

/// Texts of so many bytes are parsed in a process that can be killed. In smaller ones no single step of the parser
/// takes long, so that it ends itself in time.
const HARD: usize = 256 << 10;

/// This program again, as a process that parses.
pub(crate) fn parser() -> Outcome<Isolation> {
    let arguments = vec!["code".into(), "worker".into()];
    Ok(Isolation { program: std::env::current_exe()?, arguments, above_bytes: HARD })
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
