//! The control API: scripts in, captured requests and events out, gates released.
//!
//! Owns its routes, on a port of its own so that no control connection is in the log. Refuses state: it only
//! translates.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};
use serde::{Deserialize, Serialize};

use super::log::{Captured, Event};
use super::script::Script;
use super::server::Shared;

/// The longest that a question for news is held open.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The most that one call lets through a gate.
const MOST_RELEASED: usize = 1 << 20;

/// Which entries are asked for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct After {
    /// Those after this number.
    pub(super) after: u64,
    /// How long to wait for one if there is none, in milliseconds.
    pub(super) wait_ms: u64,
}

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
    Json(news(&shared, after, |shared| shared.log.requests_after(after.after)).await)
}

async fn events(State(shared): State<Arc<Shared>>, Query(after): Query<After>) -> Json<Vec<Event>> {
    Json(news(&shared, after, |shared| shared.log.events_after(after.after)).await)
}

async fn clear(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.log.clear();
    StatusCode::NO_CONTENT
}

async fn release(State(shared): State<Arc<Shared>>, Json(release): Json<Release>) -> StatusCode {
    shared.gate(&release.gate).add_permits(release.times.min(MOST_RELEASED));
    StatusCode::NO_CONTENT
}

async fn news<T>(shared: &Shared, after: After, read: impl Fn(&Shared) -> Vec<T>) -> Vec<T> {
    let mut changes = shared.log.subscribe();
    let waiting = async {
        loop {
            changes.borrow_and_update();
            let found = read(shared);
            // The log outlives every question, so that a change can always come.
            if !found.is_empty() || changes.changed().await.is_err() {
                return found;
            }
        }
    };
    let limit = Duration::from_millis(after.wait_ms).min(LONGEST_WAIT);
    tokio::time::timeout(limit, waiting).await.unwrap_or_default()
}
