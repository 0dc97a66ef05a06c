//! The verbs, one file each.

mod code;
mod compact;
mod completions;
mod debug;
mod discord;
mod doctor;
mod effects;
mod events;
mod history;
mod hooks;
mod inbox;
mod init;
mod interrupt;
mod memory;
mod models;
mod reset;
mod run;
mod soul;
mod status;
mod stop;
mod store;
mod workbench;

use crate::args::{Cli, Verb};
use crate::error::Outcome;
use crate::{chat, demo, wiring};

/// Does what was asked for. The runtime is made only for verbs that need one.
pub(crate) fn run(cli: Cli) -> Outcome {
    if let Verb::Completions { shell } = cli.verb {
        return completions::run(shell);
    }
    if let Verb::Code(code) = &cli.verb {
        return code::run(code, cli.common.json);
    }
    let context = wiring::context(&cli.common)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        match &cli.verb {
            Verb::Init => init::run(&context),
            Verb::Chat(chat) => chat::run(&context, chat).await,
            Verb::Run => run::run(&context).await,
            Verb::Status => status::run(&context).await,
            Verb::Inbox(inbox) => inbox::run(&context, inbox).await,
            Verb::History(history) => history::run(&context, history).await,
            Verb::Events(events) => events::run(&context, events).await,
            Verb::Soul(soul) => soul::run(&context, soul).await,
            Verb::Memory(memory) => memory::run(&context, memory).await,
            Verb::Models => models::run(&context).await,
            Verb::Doctor => doctor::run(&context).await,
            Verb::Demo(demo) => demo::run(demo).await,
            Verb::DemoDaemon => demo::serve(&context).await,
            Verb::Stop(stop) => stop::run(&context, stop).await,
            Verb::Interrupt => interrupt::run(&context).await,
            Verb::Reset => reset::run(&context).await,
            Verb::Compact => compact::run(&context).await,
            Verb::Effects(effects) => effects::run(&context, effects).await,
            Verb::Hooks(hooks) => hooks::run(&context, hooks).await,
            Verb::Activate(activate) => hooks::activate(&context, activate).await,
            Verb::Rollback(rollback) => hooks::roll_back(&context, rollback).await,
            Verb::Workbench(workbench) => workbench::run(&context, workbench).await,
            Verb::Discord(discord) => discord::run(&context, discord).await,
            Verb::Store(store) => store::run(&context, store),
            Verb::Debug(debug) => debug::run(&context, debug).await,
            Verb::Code(_) | Verb::Completions { .. } => Ok(()),
        }
    });
    // A read of the terminal may be left behind; nothing else is.
    runtime.shutdown_background();
    outcome
}
