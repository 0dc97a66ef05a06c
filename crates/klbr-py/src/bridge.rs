//! The one way in which Rust calls Python: a coroutine function, as a task on the event loop of the agent's owner.
//!
//! No thread that drives an agent ever waits for the interpreter's lock: what needs it is done on threads of its own,
//! so that Python that keeps the lock keeps no admission waiting. Refuses to convert: text goes in, text comes out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// An event loop that runs in some thread of this process.
#[derive(Clone)]
pub(crate) struct EventLoop(Arc<Py<PyAny>>);

/// What a call came to: the text that it answered, or what was raised.
pub(crate) type Answer = Result<String, String>;

/// What is passed to a coroutine function.
pub(crate) type Arguments = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyTuple>> + Send>;

impl EventLoop {
    /// The loop that runs in this thread.
    ///
    /// # Errors
    ///
    /// Fails outside of a coroutine.
    pub(crate) fn running(py: Python<'_>) -> PyResult<Self> {
        let running = pyo3_async_runtimes::get_running_loop(py)?;
        Ok(EventLoop(Arc::new(running.unbind())))
    }

    /// Calls a coroutine function that answers with a string.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the task; what the task does about that is its own affair.
    pub(crate) async fn call(&self, function: Arc<Py<PyAny>>, arguments: Arguments) -> Answer {
        let (answer, answered) = oneshot::channel();
        let progress = Arc::new(Mutex::new(Progress { answer: Some(answer), task: None, is_over: false }));
        let _ending = Ending { event_loop: self.clone(), progress: progress.clone() };
        let event_loop = self.0.clone();
        let started = tokio::task::spawn_blocking(move || {
            Python::try_attach(|py| {
                let launch =
                    Launch { event_loop: event_loop.clone(), function, progress, arguments: arguments(py)? };
                event_loop.bind(py).call_method1("call_soon_threadsafe", (launch,)).map(|_| ())
            })
        });
        match started.await {
            Ok(Some(Ok(()))) => {}
            // The loop is closed, or the arguments could not be made.
            Ok(Some(Err(error))) => return Err(error.to_string()),
            Ok(None) | Err(_) => return Err("the interpreter is shutting down".to_owned()),
        }
        answered.await.unwrap_or_else(|_| Err("the event loop ended before the call did".to_owned()))
    }
}

/// How far a call has come. Never locked while the interpreter's lock is waited for.
struct Progress {
    answer: Option<oneshot::Sender<Answer>>,
    task: Option<Py<PyAny>>,
    is_over: bool,
}

impl Progress {
    fn end(&mut self, answer: Answer) {
        self.is_over = true;
        self.task = None;
        if let Some(sender) = self.answer.take() {
            // Nobody listens any more when the call was dropped.
            let _ = sender.send(answer);
        }
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels the task of a call that is dropped before its end.
struct Ending {
    event_loop: EventLoop,
    progress: Arc<Mutex<Progress>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::mem::replace(&mut lock(&self.progress).is_over, true) {
            return;
        }
        let (event_loop, progress) = (self.event_loop.0.clone(), self.progress.clone());
        let cancel = move || {
            Python::try_attach(|py| {
                // A loop that is closed has no task left to cancel.
                let _ = event_loop.bind(py).call_method1("call_soon_threadsafe", (Cancel { progress },));
            });
        };
        // Dropped on one of the runtime's threads, always: calls live in its tasks.
        if let Ok(handle) = Handle::try_current() {
            drop(handle.spawn_blocking(cancel));
        }
    }
}

/// Starts the task, in the loop's own thread.
#[pyclass(frozen)]
struct Launch {
    event_loop: Arc<Py<PyAny>>,
    function: Arc<Py<PyAny>>,
    arguments: Py<PyTuple>,
    progress: Arc<Mutex<Progress>>,
}

#[pymethods]
impl Launch {
    fn __call__(&self, py: Python<'_>) {
        if lock(&self.progress).is_over {
            return;
        }
        let started = || -> PyResult<Bound<'_, PyAny>> {
            let coroutine = self.function.bind(py).call1(self.arguments.bind(py))?;
            self.event_loop.bind(py).call_method1("create_task", (coroutine,))
        };
        match started() {
            Ok(task) => {
                lock(&self.progress).task = Some(task.clone().unbind());
                let done = Done { progress: self.progress.clone() };
                if let Err(error) = task.call_method1("add_done_callback", (done,)) {
                    lock(&self.progress).end(Err(error.to_string()));
                }
            }
            Err(error) => lock(&self.progress).end(Err(error.to_string())),
        }
    }
}

/// Hears of the task's end.
#[pyclass(frozen)]
struct Done {
    progress: Arc<Mutex<Progress>>,
}

#[pymethods]
impl Done {
    fn __call__(&self, task: &Bound<'_, PyAny>) {
        let answer = task.call_method0("result").and_then(|answer| answer.extract::<String>());
        lock(&self.progress).end(answer.map_err(|error| error.to_string()));
    }
}

/// Cancels the task, in the loop's own thread.
#[pyclass(frozen)]
struct Cancel {
    progress: Arc<Mutex<Progress>>,
}

#[pymethods]
impl Cancel {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let task = lock(&self.progress).task.take();
        task.map_or(Ok(()), |task| task.bind(py).call_method0("cancel").map(|_| ()))
    }
}
