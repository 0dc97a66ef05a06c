//! The command line.

mod code;
mod policy;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
pub(crate) use code::{Code, Edit, Find, Index, Over, Read, Symbols, Target, Text};
use klbr_core::attention;
use klbr_core::ids::{ActionId, AgentName};
pub(crate) use policy::{Activate, Hooks, Rollback, Workbench};

/// Agents that never stop running.
#[derive(Debug, Parser)]
#[command(name = "klbr", version, about, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What every verb takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// The home that the agents live in
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) home: Option<PathBuf>,
    /// The agent, where a home has several
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<AgentName>,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a home: a commented klbr.toml and a token. Overwrites nothing
    Init,
    /// Talk to the agent: attaches to a running daemon, or hosts one while you talk
    Chat(Chat),
    /// Run the daemon in the foreground
    Run,
    /// Say how the agent is doing
    Status,
    /// List the events that wait to be shown
    Inbox(Inbox),
    /// Search everything that was said, heard and answered; or list and verify the records
    History(History),
    /// Follow what happens
    Events(Events),
    /// Show or replace who the agent is
    #[command(subcommand)]
    Soul(Soul),
    /// List and change what the agent remembers; of what is pinned, it is told in its next turn
    #[command(subcommand)]
    Memory(Memory),
    /// List the models that the server offers
    Models,
    /// Check the home, the database, the model's server and the terminal
    Doctor,
    /// Watch an agent live for fifteen seconds: no key, no network, a scripted model
    Demo(Demo),
    /// Stop the daemon in order; what waits is kept
    Stop(Stop),
    /// End the running turn; what waits is then shown as usual
    Interrupt,
    /// Forget the conversation; history stays searchable
    Reset,
    /// Summarise the conversation now
    Compact,
    /// List the effects that wait for you, and decide about them
    #[command(subcommand)]
    Effects(Effects),
    /// Look after policy in Python: write hooks, try them, publish them, see what is in force
    #[command(subcommand)]
    Hooks(Hooks),
    /// Put an activation manifest in force: soul, settings, hooks; says first what that restarts
    Activate(Activate),
    /// Go back to what was in force before, the soul too; works with every Python process dead
    Rollback(Rollback),
    /// Look at the Python process that runs the model's cells
    #[command(subcommand)]
    Workbench(Workbench),
    /// Look after the agent's place on Discord
    #[command(subcommand)]
    Discord(Discord),
    /// Look after the database
    #[command(subcommand)]
    Store(Store),
    /// Read code by its symbols: outlines, definitions, mentions, checked edits. Needs no home
    #[command(subcommand)]
    Code(Code),
    /// For those who work on the agent
    #[command(subcommand)]
    Debug(Debug),
    /// The demo's own daemon
    #[command(hide = true)]
    DemoDaemon,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Chat {
    /// Say this, print what comes of it and leave when the turn has ended
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Vec<String>,
    /// One line for each thing that happens, also on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print only what is said to you, as it is said
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Inbox {
    #[command(subcommand)]
    pub(crate) verb: Option<InboxVerb>,
    #[command(flatten)]
    pub(crate) list: InboxList,
}

#[derive(Subcommand, Debug)]
pub(crate) enum InboxVerb {
    /// List it, as without a verb
    List(InboxList),
    /// Show one attention item with what it says
    Show {
        /// The item: msg:ID or the bare id
        item: String,
    },
    /// Decide about an attention item
    Mark(InboxMark),
}

#[derive(Args, Debug)]
pub(crate) struct InboxList {
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
}

#[derive(Args, Debug)]
pub(crate) struct InboxMark {
    /// The item: msg:ID or the bare id
    pub(crate) item: String,
    /// pending, seen, acted or ignored
    #[arg(value_parser = word::<attention::Status>)]
    pub(crate) status: attention::Status,
    /// none, replied, messaged, dismissed or noted; what the status suggests when it is left out
    #[arg(long, value_parser = word::<attention::Response>)]
    pub(crate) action: Option<attention::Response>,
    /// Why, in a few words
    #[arg(long)]
    pub(crate) note: Option<String>,
}

/// Reads one of a closed set of words; an error names them all.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde::de::value::Error> {
    T::deserialize(serde::de::IntoDeserializer::into_deserializer(text))
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct History {
    #[command(subcommand)]
    pub(crate) verb: Option<HistoryVerb>,
    #[command(flatten)]
    pub(crate) search: Search,
}

#[derive(Args, Debug)]
pub(crate) struct Search {
    /// Words, parts of words, identifiers, in any script
    pub(crate) text: Vec<String>,
    /// Only from this source: local, agent, discord, …
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only from this conversation, by its channel's id
    #[arg(long)]
    pub(crate) conversation: Option<String>,
    /// Only at or after this time, such as 2026-11-05T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// How many finds at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,
    /// How many of the best finds to pass over
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryVerb {
    /// List the records in order
    List {
        /// Only those after this one
        #[arg(long, default_value_t = 0, value_name = "RECORD")]
        after: u64,
        /// How many at most
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Read every record again and see whether the history and its ledger hold
    Verify,
}

#[derive(Args, Debug)]
pub(crate) struct Events {
    /// Everything after this record; from now on when absent
    #[arg(long, value_name = "RECORD")]
    pub(crate) after: Option<u64>,
    /// Leave when nothing more is there at the moment
    #[arg(long)]
    pub(crate) no_follow: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Soul {
    /// Print it
    Show,
    /// Replace it: from a file, from standard input, or in $EDITOR
    Edit {
        /// The file with the new text; - for standard input
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// List the memories, or those that fit
    List {
        /// Words to look for
        text: Vec<String>,
    },
    /// Remember something
    Add {
        /// What
        #[arg(required = true)]
        text: Vec<String>,
        /// Where it belongs, such as conversation:d1 or author:42
        #[arg(long, value_name = "SCOPE")]
        tag: Vec<String>,
        /// Have it stand in front of every conversation
        #[arg(long)]
        pin: bool,
    },
    /// Change what a memory says, or where it belongs; what is not given stays
    Edit {
        /// Its number
        id: u64,
        /// What it says from now on
        #[arg(required_unless_present = "tag")]
        text: Vec<String>,
        /// Where it belongs from now on
        #[arg(long, value_name = "SCOPE")]
        tag: Vec<String>,
    },
    /// Have a memory stand in front of every conversation
    Pin {
        /// Its number
        id: u64,
    },
    /// Have it found by searching only
    Unpin {
        /// Its number
        id: u64,
    },
    /// Forget a memory
    Forget {
        /// Its number
        id: u64,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Go on as fast as it goes, without pauses for reading
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the home, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Stop {
    /// End the running turn only: the daemon goes on, and the agent stays quiet until something new arrives
    #[arg(long)]
    pub(crate) turn: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Discord {
    /// Check token, intents, channels and permissions, without starting the agent
    Check,
    /// List the conversations that the agent has heard
    Conversations,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Effects {
    /// List what waits for you and what is under way
    List,
    /// Let a held effect happen
    Allow {
        /// Its action, such as 4.2.1
        action: ActionId,
    },
    /// Refuse a held effect
    Deny {
        /// Its action, such as 4.2.1
        action: ActionId,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// See whether the database is whole
    Check,
    /// Copy the database, also while a daemon writes it
    Backup {
        /// Where to; nothing may be there yet
        file: PathBuf,
    },
    /// Put a backup in the database's place; what was there is set aside
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Write an agent's whole history as lines of JSON
    Export {
        /// Where to; standard output when absent
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Debug {
    /// Ask the agent to look back at what it is doing
    Reflect {
        /// What to look at
        #[arg(default_value = "Look back: what are you doing, what is open, what should be different?")]
        text: String,
    },
}
