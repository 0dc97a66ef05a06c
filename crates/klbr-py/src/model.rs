//! A model that is a Python object: its task hands over pieces while it runs, and the whole reply at its end.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use klbr_core::model::{Delta, Failure, Request, Sampled};
use klbr_core::runtime::model::{Model, Piece, Reply};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use crate::bridge::{Answer, EventLoop};

/// A model whose samplings are tasks on an event loop.
pub(crate) struct PyModel {
    pub(crate) event_loop: EventLoop,
    /// Takes a request as JSON and [`Pieces`], answers with a [`Said`] as JSON.
    pub(crate) function: Arc<Py<PyAny>>,
}

/// How the Python half tells what came of a sampling.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Sampled(Sampled),
    Failed { message: String, transient: bool },
}

/// Where a model's task puts the pieces of its reply.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Pieces(mpsc::UnboundedSender<Delta>);

#[pymethods]
impl Pieces {
    /// A piece of reasoning.
    fn think(&self, text: String) {
        self.put(Delta::Think(text));
    }

    /// A piece of plain text.
    fn scratch(&self, text: String) {
        self.put(Delta::Scratch(text));
    }

    /// A call has begun.
    fn call(&self, name: String) {
        self.put(Delta::CallStarted { name });
    }
}

impl Pieces {
    fn put(&self, delta: Delta) {
        // Nobody listens any more when the sampling was dropped; its task is being cancelled.
        let _ = self.0.send(delta);
    }
}

#[async_trait]
impl Model for PyModel {
    async fn sample(&self, request: Request) -> Result<Reply, Failure> {
        let told = json!({
            "model": &*request.model,
            "system": &*request.system,
            "tools": &*request.tools,
            "messages": request.messages,
            "parameters": request.parameters,
        });
        let told = told.to_string();
        let (sender, pieces) = mpsc::unbounded_channel();
        let make = move |py: Python<'_>| {
            let told = told.into_pyobject(py)?.into_any();
            Ok(PyTuple::new(py, [told, Bound::new(py, Pieces(sender))?.into_any()])?.unbind())
        };
        let (event_loop, function) = (self.event_loop.clone(), self.function.clone());
        let end = async move { Event::End(event_loop.call(function, Box::new(make)).await) };
        let pieces =
            stream::unfold(pieces, |mut pieces| async { Some((Event::Piece(pieces.recv().await?), pieces)) });
        // The end is polled only when no piece is there, so that none is told after it.
        let events =
            stream::select_with_strategy(pieces.boxed(), stream::once(end).boxed(), |(): &mut ()| {
                stream::PollNext::Left
            });
        Ok(events.map(piece).boxed())
    }
}

enum Event {
    Piece(Delta),
    End(Answer),
}

fn piece(event: Event) -> Result<Piece, Failure> {
    let answer = match event {
        Event::Piece(delta) => return Ok(Piece::Delta(delta)),
        Event::End(answer) => answer.map_err(provider)?,
    };
    match serde_json::from_str(&answer) {
        Ok(Said::Sampled(sampled)) => Ok(Piece::Finished(sampled)),
        Ok(Said::Failed { message, transient: true }) => Err(provider(message)),
        Ok(Said::Failed { message, transient: false }) => Err(Failure::Refused { status: None, message }),
        Err(error) => Err(Failure::Malformed(error.to_string())),
    }
}

fn provider(message: String) -> Failure {
    Failure::Provider { status: None, retry_after: None, message }
}
