//! Between two event loops: a Rust future as a Python one, and a Python coroutine function as a Rust future.
//!
//! Everything that touches Python's loop is done by the loop's own thread, told through [`interpreter`]. Refuses to
//! convert what is passed to Python's functions: text goes in, text comes out.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::error::Fault;
use crate::{fork, interpreter};

/// An event loop that runs in some thread of this process.
#[derive(Clone)]
pub(crate) struct EventLoop(Arc<Py<PyAny>>);

/// What a call came to: the text that it answered, or what was raised.
pub(crate) type Answer = Result<String, String>;

/// What is passed to a coroutine function.
pub(crate) type Arguments = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyTuple>> + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on the runtime and gives an awaitable of the running loop for it. Cancelling that drops `work`.
///
/// # Errors
///
/// Fails outside of a coroutine, and in a forked process.
pub(crate) fn awaitable<T>(
    py: Python<'_>,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>>
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    let runtime = fork::runtime()?;
    let event_loop = EventLoop::running(py)?;
    let future = event_loop.0.bind(py).call_method0("create_future")?;
    let promise = future.clone().unbind();
    let task = runtime.spawn(async move {
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        let result =
            ended.unwrap_or_else(|_| Err(Fault::Internal("klbr has a fault: it panicked".to_owned())));
        event_loop.run(move |py| {
            let promise = promise.bind(py);
            if promise.call_method0("done")?.is_truthy()? {
                return Ok(());
            }
            match result.map_err(PyErr::from).and_then(|value| value.into_py_any(py)) {
                Ok(value) => promise.call_method1("set_result", (value,))?,
                Err(error) => promise.call_method1("set_exception", (error,))?,
            };
            Ok(())
        });
    });
    future.call_method1("add_done_callback", (Abort { task: task.abort_handle() },))?;
    Ok(future)
}

/// Drops the work of a future that is done: it was cancelled, or there is none left.
#[pyclass(frozen)]
struct Abort {
    task: AbortHandle,
}

#[pymethods]
impl Abort {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        self.task.abort();
    }
}

/// Something to be done by the loop's thread.
type Turn = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// The same, as Python calls it: once.
#[pyclass(frozen)]
struct Callback(Mutex<Option<Turn>>);

#[pymethods]
impl Callback {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let turn = lock(&self.0).take();
        turn.map_or(Ok(()), |turn| turn(py))
    }
}

impl EventLoop {
    /// The loop that runs in this thread.
    ///
    /// # Errors
    ///
    /// Fails outside of a coroutine.
    pub(crate) fn running(py: Python<'_>) -> PyResult<Self> {
        let running = py.import("asyncio")?.call_method0("get_running_loop")?;
        Ok(EventLoop(Arc::new(running.unbind())))
    }

    /// Has something done by the loop's thread, soon; answers false when the interpreter is about to end. A loop that
    /// is closed does nothing more, and drops it.
    fn run(&self, turn: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) -> bool {
        let event_loop = self.0.clone();
        interpreter::submit(move |py| {
            let callback = Callback(Mutex::new(Some(Box::new(turn))));
            // It fails only when the loop is closed.
            let _ = event_loop.bind(py).call_method1("call_soon_threadsafe", (callback,));
        })
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
        self.run(move |py| {
            if lock(&progress).is_over {
                return Ok(());
            }
            let begin = || {
                let coroutine = function.bind(py).call1(arguments(py)?.bind(py))?;
                event_loop.bind(py).call_method1("create_task", (coroutine,))
            };
            match begin() {
                Ok(task) => {
                    lock(&progress).task = Some(task.clone().unbind());
                    task.call_method1("add_done_callback", (Done { progress },)).map(|_| ())
                }
                Err(error) => {
                    lock(&progress).end(Err(error.to_string()));
                    Ok(())
                }
            }
        });
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
        let progress = self.progress.clone();
        self.event_loop.run(move |py| {
            let task = lock(&progress).task.take();
            task.map_or(Ok(()), |task| task.bind(py).call_method0("cancel").map(|_| ()))
        });
    }
}

/// Hears of a task's end.
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
