//! The control API: the world changed, faults scripted, the record read.
//!
//! Owns its routes under `/control` and their answers. Refuses state of its own: it only translates.

pub(super) mod command;
mod perform;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Query, State as Shared};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::command::Command;
use super::gateway::session::SessionState;
use super::payload::{self, Shown};
use super::record::{Asked, Created, Entry, Noted, Record, Summary};
use super::settings::Settings;
use super::snowflake::Snowflake;
use super::state::Double;
use crate::control::{After, news};

/// Which channel is asked for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Of {
    pub(super) channel: Snowflake,
}

type Bad = (StatusCode, String);

pub(super) fn router() -> Router<Arc<Double>> {
    Router::new()
        .route("/control", get(summary).post(command))
        .route("/control/requests", get(requests))
        .route("/control/messages", get(messages))
        .route("/control/gateway", get(gateway))
        .route("/control/sessions", get(sessions))
        .route("/control/settings", get(settings))
        .route("/control/history", get(history))
        .layer(DefaultBodyLimit::disable())
}

async fn command(Shared(double): Shared<Arc<Double>>, body: String) -> Result<Json<Value>, Bad> {
    let bad = |error: String| (StatusCode::BAD_REQUEST, error);
    let command: Command =
        serde_json::from_str(&body).map_err(|error| bad(format!("the command: {error}")))?;
    perform::perform(&double, command).await.map(Json).map_err(bad)
}

async fn summary(Shared(double): Shared<Arc<Double>>) -> Json<Summary> {
    Json(double.lock().record.summary())
}

async fn sessions(Shared(double): Shared<Arc<Double>>) -> Json<Vec<SessionState>> {
    Json(double.lock().sessions.states())
}

async fn settings(Shared(double): Shared<Arc<Double>>) -> Json<Settings> {
    Json(double.lock().settings.clone())
}

/// All messages of a channel as they are, oldest first.
async fn history(Shared(double): Shared<Arc<Double>>, Query(of): Query<Of>) -> Result<Json<Vec<Value>>, Bad> {
    let state = double.lock();
    let channel = state.world.channels.get(&of.channel);
    let channel = channel.ok_or_else(|| (StatusCode::NOT_FOUND, "there is no such channel".to_owned()))?;
    let messages = channel.messages.values();
    Ok(Json(messages.map(|message| payload::message(&state.world, message, Shown::Answer)).collect()))
}

async fn requests(Shared(double): Shared<Arc<Double>>, Query(after): Query<After>) -> Json<Vec<Asked>> {
    Json(since(&double, after, |record| record.requests()).await)
}

async fn messages(Shared(double): Shared<Arc<Double>>, Query(after): Query<After>) -> Json<Vec<Created>> {
    Json(since(&double, after, |record| record.created()).await)
}

async fn gateway(Shared(double): Shared<Arc<Double>>, Query(after): Query<After>) -> Json<Vec<Noted>> {
    Json(since(&double, after, |record| record.gateway()).await)
}

async fn since<T: Entry + Clone>(double: &Double, after: After, read: impl Fn(&Record) -> &[T]) -> Vec<T> {
    let changes = double.lock().record.subscribe();
    let found = || {
        let state = double.lock();
        read(&state.record).iter().filter(|entry| entry.seq() > after.after).cloned().collect()
    };
    news(changes, after.wait_ms, found).await
}
