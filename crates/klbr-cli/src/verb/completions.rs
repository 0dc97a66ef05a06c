//! `klbr completions`: a completion script.

use std::io::{self, Write as _};

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::args::Cli;
use crate::error::Outcome;

/// Prints the script.
pub(super) fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "klbr", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
