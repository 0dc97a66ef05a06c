//! What concerns the daemon rather than an agent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::Shared;
use super::read::ACCOUNT;
use crate::api::{AgentEntry, Agents, Done, Models};
use crate::host::Slot;

pub(super) async fn health() -> &'static str {
    "ok\n"
}

pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let ledger = match shared.hosted.slot() {
        Slot::Ready(handle) => {
            let status = tokio::time::timeout(ACCOUNT, handle.status()).await;
            status.ok().and_then(Result::ok).map(|status| status.ledger)
        }
        Slot::Starting | Slot::Stopping | Slot::Failed(_) => None,
    };
    let page = shared.hosted.metrics.render(shared.hosted.name.as_str(), ledger);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page)
}

pub(super) async fn agents(State(shared): State<Arc<Shared>>) -> Json<Agents> {
    let hosted = &shared.hosted;
    Json(Agents { agents: vec![AgentEntry { name: hosted.name.to_string(), state: hosted.state() }] })
}

pub(super) async fn models(State(shared): State<Arc<Shared>>) -> Json<Models> {
    Json(shared.hosted.models().await)
}

pub(super) async fn shutdown(State(shared): State<Arc<Shared>>) -> Json<Done> {
    tracing::info!("a client asked for the end");
    shared.stop.cancel();
    Json(Done { done: "the daemon is stopping".to_owned() })
}
