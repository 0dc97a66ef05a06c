//! What the verbs about policy in Python take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Hooks {
    /// List the hooks in force: what each is bound to, its deadline, its process, what failed last
    List,
    /// Run one hook on what the agent was asked lately. Needs no daemon, and changes nothing
    Test {
        /// The function, such as my_policy.reviews:review_send
        #[arg(value_name = "MODULE:FUNCTION")]
        run: String,
        /// The folder that it is imported from
        #[arg(long, default_value = ".", value_name = "FOLDER")]
        tree: PathBuf,
        /// The slot or family that it answers; what its decorator says when left out
        #[arg(long = "as", value_name = "NAME")]
        bound: Option<String>,
    },
    /// Copy a folder of Python into the home, under its content's hash; prints the manifest that would bind it
    Publish {
        /// The folder that modules are imported from
        folder: PathBuf,
    },
    /// Try a manifest: load its hooks, ask them what was asked before, show what they answer differently
    DryRun {
        /// The activation manifest, TOML
        file: PathBuf,
    },
    /// Put a manifest in force: the same as klbr activate
    Activate(Activate),
    /// Go back to what was in force before: the same as klbr rollback
    Rollback(Rollback),
    /// List everything that was put in force, when, and why
    Log,
}

#[derive(Args, Debug)]
pub(crate) struct Activate {
    /// The activation manifest, TOML
    pub(crate) file: PathBuf,
    /// End the running turn, instead of waiting for the next one
    #[arg(long)]
    pub(crate) now: bool,
    /// Only if this epoch is in force; the one of this moment when left out
    #[arg(long, value_name = "EPOCH")]
    pub(crate) expect: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Rollback {
    /// The epoch to go back to; what was in force before this when left out
    pub(crate) epoch: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workbench {
    /// Say how its process is doing
    Status,
    /// List the variables that cells left: type, size, first characters
    Vars,
    /// Start it over: its variables are gone
    Restart,
}
