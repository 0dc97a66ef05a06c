//! The proofs of klbr that need more than one crate: fakes as real processes, and the judges that watch from outside.
//!
//! - [`mod@bench`]: the bars of the architecture, measured (`bench`).
//! - [`clock`]: stamps that processes of one machine may compare.
//! - [`conformance`]: the cases that klbr must pass, as data, and their runner.
//! - [`control`]: what the controls of the fakes have in common.
//! - [`crash`]: the daemon, killed again and again, and the judge of what it kept (`crash-matrix`).
//! - [`daemon`]: the daemon as a process, and its client.
//! - [`discord_double`]: a small strict Discord as a process (`discord-double`), and the client of its control.
//! - [`fake_model`]: a scripted model server as a process (`fake-model`), and the client of its control.
//! - [`hooks`]: policy in Python with a live agent around it, failing in every way (`hook-trials`, `cut-wire`).
//! - [`http`]: the client that the proofs ask with.
//! - [`llama`]: a real llama.cpp server, where there is what starts one.
//! - [`prefix`]: whether a request extends the one before it, byte for byte.
//! - [`proc_tree`]: a tree of processes that is hard to kill (`proc-tree`), and the judge of who still lives.
//! - [`process`]: children of a proof, started, awaited with a watchdog, signalled, never left behind.
//! - [`shared`]: real counterparts that a shared folder starts.
//! - [`simulator`]: a seeded world around the core, with a judge of what must hold whatever happens.
//! - [`trace`]: a life of two hundred turns, and how much of it a provider finds in its cache.
//! - [`validity`]: whether a captured request is one that any provider would take.
//! - [`yepcord`]: a real server that speaks Discord's API, where there is what starts one.

pub mod bench;
pub mod clock;
pub mod conformance;
pub mod control;
pub mod crash;
pub mod daemon;
pub mod discord_double;
pub mod fake_model;
pub mod hooks;
pub mod http;
pub mod llama;
pub mod prefix;
pub mod proc_tree;
pub mod process;
pub mod shared;
pub mod simulator;
pub mod trace;
pub mod validity;
pub mod yepcord;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// The commit that the proofs were built from, short; `unknown` outside a repository.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let is_changed = git(&["status", "--porcelain"]).is_none_or(|changed| !changed.is_empty());
    if is_changed { head + " with changes" } else { head }
}

/// A new folder of its own in the system's folder for such things.
///
/// # Errors
///
/// Fails when it cannot be made.
pub fn folder(name: &str) -> std::io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("{name}-{}-{next}", std::process::id()));
    std::fs::create_dir(&folder)?;
    Ok(folder)
}
