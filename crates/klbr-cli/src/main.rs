//! The `klbr` command: talk to agents that never stop running, and look after their home.

mod args;
mod chat;
mod client;
mod context;
mod demo;
mod error;
mod home;
mod offline;
mod text;
mod verb;
mod view;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

/// Also serves the C parsers, a tenth of whose time goes to allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let json = cli.common.json;
    verb::run(cli).map_or_else(|error| error.report(json), |()| ExitCode::SUCCESS)
}
