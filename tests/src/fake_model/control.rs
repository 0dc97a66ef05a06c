//! The control API: scripts in, captured requests and events out, gates released.
//!
//! Owns its routes, on a port of its own so that no control connection is in the log. Refuses state: it only
//! translates.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};
use serde::{Deserialize, Serialize};

use super::log::{Captured, Event};
use super::script::Script;
use super::server::Shared;
use crate::control::{After, news};

/// Which gate is released, for how many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Release {
    pub(super) gate: String,
    #[serde(default = "once")]
    pub(super) times: usize,
}

fn once() -> usize {
    1
}

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/script", put(load))
        .route("/requests", get(requests))
        .route("/events", get(events))
        .route("/log", delete(clear))
        .route("/release", post(release))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

async fn load(State(shared): State<Arc<Shared>>, body: String) -> Result<StatusCode, (StatusCode, String)> {
    let script: Script = serde_json::from_str(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("the script: {error}")))?;
    shared.load(script);
    Ok(StatusCode::NO_CONTENT)
}

async fn requests(State(shared): State<Arc<Shared>>, Query(after): Query<After>) -> Json<Vec<Captured>> {
    Json(news(shared.log.subscribe(), after.wait_ms, || shared.log.requests_after(after.after)).await)
}

async fn events(State(shared): State<Arc<Shared>>, Query(after): Query<After>) -> Json<Vec<Event>> {
    Json(news(shared.log.subscribe(), after.wait_ms, || shared.log.events_after(after.after)).await)
}

async fn clear(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.log.clear();
    StatusCode::NO_CONTENT
}

async fn release(State(shared): State<Arc<Shared>>, Json(release): Json<Release>) -> StatusCode {
    shared.gates.release(&release.gate, release.times);
    StatusCode::NO_CONTENT
}
