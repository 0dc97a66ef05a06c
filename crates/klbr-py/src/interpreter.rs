//! The one thread of this crate that calls into Python by itself, and its end.
//!
//! A thread that still holds, or waits for, the interpreter's lock while the interpreter ends brings the process down. So
//! whatever Rust has to tell Python goes through this thread, which is joined before that. Threads that drive agents
//! hand over and go on: they never wait for the lock.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;

use crate::fork;

/// Something to be done with the interpreter's lock held. Quick: others wait behind it.
type Job = Box<dyn FnOnce(Python<'_>) + Send>;

struct Caller {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

/// The thread, from the loading of the module to the interpreter's end.
static CALLER: Mutex<Option<Caller>> = Mutex::new(None);

fn caller() -> MutexGuard<'static, Option<Caller>> {
    CALLER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread, and has it joined before the interpreter ends.
///
/// # Errors
///
/// Fails when there can be no thread.
pub(crate) fn start(py: Python<'_>) -> PyResult<()> {
    let mut caller = caller();
    if caller.is_some() {
        return Ok(());
    }
    let (jobs, queue) = mpsc::channel::<Job>();
    let work = move || {
        for job in queue {
            Python::attach(job);
        }
    };
    let thread = thread::Builder::new().name("klbr-python".to_owned()).spawn(work)?;
    *caller = Some(Caller { jobs, thread });
    let end = pyo3::types::PyCFunction::new_closure(py, Some(c"klbr_end"), None, |arguments, _| {
        // A fork has no such thread, and perhaps a lock that nobody will ever release.
        let ended = if fork::is_copy() { None } else { caller_taken() };
        arguments.py().detach(|| ended.map(JoinHandle::join));
    })?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// The thread, once nothing more can be handed to it.
fn caller_taken() -> Option<JoinHandle<()>> {
    caller().take().map(|caller| caller.thread)
}

/// Hands something over; answers false, and drops it, when the interpreter is about to end.
pub(crate) fn submit(job: impl FnOnce(Python<'_>) + Send + 'static) -> bool {
    caller().as_ref().is_some_and(|caller| caller.jobs.send(Box::new(job)).is_ok())
}
