//! The fakes and the judges, proven over real sockets and real processes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed helper is a failed test")]

#[path = "it/answers.rs"]
mod answers;
#[path = "it/bench.rs"]
mod bench;
#[path = "it/connections.rs"]
mod connections;
#[path = "it/control.rs"]
mod control;
#[path = "it/crash.rs"]
mod crash;
#[path = "it/discord.rs"]
mod discord;
#[path = "it/discord_agent.rs"]
mod discord_agent;
#[path = "it/epochs.rs"]
mod epochs;
#[path = "it/hooks.rs"]
mod hooks;
#[path = "it/needle.rs"]
mod needle;
#[path = "it/operator.rs"]
mod operator;
#[path = "it/overflow.rs"]
mod overflow;
#[path = "it/processes.rs"]
mod processes;
#[path = "it/tidy.rs"]
mod tidy;
#[path = "it/wire.rs"]
mod wire;

/// Whether the daemon's binary is there; without it a proof is passed over loudly, and fails where `CI` is set.
fn has_daemon() -> bool {
    match klbr_tests::process::beside("klbrd", None) {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            println!("SKIPPED: {error}");
            false
        }
    }
}
