//! The guard against use after a fork: a child has this process's memory and none of its threads.

use std::process;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::error::Fault;

/// The process that loaded the module.
static OWNER: OnceLock<u32> = OnceLock::new();

/// The threads that drive agents.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// How many there are; they do no work of their own.
const THREADS: usize = 2;

/// Remembers which process this is. Called when the module is loaded.
pub(crate) fn remember() {
    OWNER.get_or_init(process::id);
}

/// Whether this process is a copy of the one that loaded the module.
pub(crate) fn is_copy() -> bool {
    OWNER.get().is_some_and(|owner| *owner != process::id())
}

/// The runtime, unless this process is a copy of the one that it belongs to.
///
/// # Errors
///
/// Fails in a forked child, where a call would wait for threads that do not exist.
pub(crate) fn runtime() -> Result<&'static Runtime, Fault> {
    if is_copy() {
        return Err(Fault::Fork(format!(
            "this process ({}) is a fork of the one that loaded klbr, whose threads are not here: start processes \
             with multiprocessing's \"spawn\"",
            process::id()
        )));
    }
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(THREADS).thread_name("klbr").enable_all().build();
    let built = built.map_err(|error| Fault::Internal(format!("there can be no threads: {error}")))?;
    Ok(RUNTIME.get_or_init(|| built))
}
