//! The workbench: where the model's cells run, and what they left there.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use klbr_pyhost::{CallError, PythonTool};
use tokio::time::Instant;

use super::error::ApiError;
use super::extract::Named;
use super::policy::process;
use crate::api::Done;
use crate::api::policy::{Process, Variables, WorkbenchStatus};
use crate::host::Hosted;

/// How long the workbench may take to tell of its variables: a cell that runs comes first.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn status(Named(hosted): Named) -> Result<Json<WorkbenchStatus>, ApiError> {
    Ok(Json(match cells(&hosted)?.workbench() {
        Some(workbench) => {
            WorkbenchStatus { generation: workbench.generation(), process: process(&workbench.state()) }
        }
        None => WorkbenchStatus { generation: None, process: Process::Absent },
    }))
}

pub(super) async fn variables(Named(hosted): Named) -> Result<Json<Variables>, ApiError> {
    let variables = match cells(&hosted)?.workbench() {
        Some(workbench) => workbench.variables(Instant::now() + PATIENCE).await?,
        None => Vec::new(),
    };
    Ok(Json(Variables { variables }))
}

pub(super) async fn restart(Named(hosted): Named) -> Result<Json<Done>, ApiError> {
    let done = match cells(&hosted)?.workbench() {
        Some(workbench) => {
            workbench.restart("the operator started it over");
            "the workbench starts over; its variables are gone"
        }
        None => "the workbench has not been started yet: the first cell does that",
    };
    Ok(Json(Done { done: done.to_owned() }))
}

fn cells(hosted: &Hosted) -> Result<Arc<PythonTool>, ApiError> {
    let cells = hosted.python.get().and_then(|python| python.cells.clone());
    cells.ok_or_else(|| {
        ApiError::new(
            StatusCode::CONFLICT,
            "no_workbench",
            "the agent has no workbench: it acts by tools alone",
        )
        .hint("set python.actions to python or both in klbr.toml, and start the daemon again")
    })
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "workbench_unavailable",
            format!("the workbench: {error}"),
        )
        .hint("a cell may be running; the workbench's status says how its process is doing")
    }
}
