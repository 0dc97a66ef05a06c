//! The guard against use after a fork: a child has this process's memory and none of its threads.

use std::process;
use std::sync::OnceLock;

use pyo3_async_runtimes::tokio::{get_runtime, init};
use tokio::runtime::Builder;
use tokio::runtime::Runtime;

use crate::error::Fault;

/// The process that loaded the module.
static OWNER: OnceLock<u32> = OnceLock::new();

/// How many threads drive agents; they do no work of their own.
const THREADS: usize = 2;

/// Remembers which process this is. Called when the module is loaded.
pub(crate) fn remember() {
    OWNER.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("klbr").enable_all();
        init(builder);
        process::id()
    });
}

/// The runtime, unless this process is a copy of the one that it belongs to.
///
/// # Errors
///
/// Fails in a forked child, where a call would wait for threads that do not exist.
pub(crate) fn runtime() -> Result<&'static Runtime, Fault> {
    match OWNER.get() {
        Some(owner) if *owner != process::id() => Err(Fault::Fork(format!(
            "klbr was loaded by process {owner}, and this is its fork {}: threads do not survive a fork. Start \
             processes with multiprocessing's \"spawn\", or import klbr in the child first",
            process::id()
        ))),
        Some(_) | None => Ok(get_runtime()),
    }
}
