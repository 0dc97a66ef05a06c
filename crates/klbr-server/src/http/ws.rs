//! Updates over a WebSocket, which takes messages and interrupts too.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use klbr_core::event::{Control, Via};
use klbr_core::runtime::{AgentHandle, Updates};

use super::control::{command, say};
use super::error::ApiError;
use super::extract::{Asked, Caller, Living, checked_key, made_key, parse, resume_point, via};
use super::{MAX_BODY, Shared, stream};
use crate::api::{Answer, ClientFrame, ServerFrame, StreamQuery};

/// A request that asks for a WebSocket.
pub(super) struct Upgrade(WebSocketUpgrade, Via);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let via = via(parts, "ws");
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await;
        upgrade.map(|upgrade| Upgrade(upgrade, via)).map_err(|rejection| {
            ApiError::new(StatusCode::UPGRADE_REQUIRED, "no_websocket", rejection.body_text())
                .hint("connect with a WebSocket client, or GET the same agent's events")
        })
    }
}

pub(super) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    headers: HeaderMap,
    Asked(query): Asked<StreamQuery>,
    Upgrade(upgrade, via): Upgrade,
) -> Result<Response, ApiError> {
    let after = resume_point(&agent, &headers, query).await?;
    let updates = agent.updates(after).await?;
    let upgrade = upgrade.max_message_size(MAX_BODY).max_frame_size(MAX_BODY);
    Ok(upgrade.on_upgrade(move |socket| talk(socket, shared, agent, updates, via)))
}

/// Talks until the client goes, the agent stops, or the daemon does.
async fn talk(
    mut socket: WebSocket,
    shared: Arc<Shared>,
    agent: AgentHandle,
    mut updates: Updates,
    via: Via,
) {
    loop {
        let frame = tokio::select! {
            update = stream::next(&mut updates, &shared.stop) => match update {
                Some(update) => ServerFrame::Update(Box::new(update)),
                None => break,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    ServerFrame::Answer(answer(&shared, &agent, &via, text.as_bytes()).await)
                }
                Some(Ok(Message::Binary(bytes))) => {
                    ServerFrame::Answer(answer(&shared, &agent, &via, &bytes).await)
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
        };
        let text = serde_json::to_string(&frame).expect("a frame is plain data with text keys");
        let sent = tokio::select! {
            sent = socket.send(Message::Text(text.into())) => sent.is_ok(),
            () = shared.stop.cancelled() => false,
        };
        if !sent {
            break;
        }
    }
    // A client that does not take the farewell has gone already.
    let _ = socket.send(Message::Close(None)).await;
}

async fn answer(shared: &Shared, agent: &AgentHandle, via: &Via, bytes: &[u8]) -> Answer {
    let frame = match parse(bytes) {
        Ok(frame) => frame,
        Err(error) => return Answer::Refused { key: None, error: error.into_problem() },
    };
    let (key, taken) = match frame {
        ClientFrame::Message { text, key } => (key.clone(), take(shared, agent, via, key, Some(text)).await),
        ClientFrame::Interrupt { key } => (key.clone(), take(shared, agent, via, key, None).await),
    };
    match taken {
        Ok(accepted) => Answer::Accepted(accepted),
        Err(error) => Answer::Refused { key, error: error.into_problem() },
    }
}

/// Takes a message, or an interrupt where there is no text.
async fn take(
    shared: &Shared,
    agent: &AgentHandle,
    via: &Via,
    key: Option<String>,
    text: Option<String>,
) -> Result<crate::api::Accepted, ApiError> {
    let key = match key {
        Some(key) => checked_key(&key)?,
        None => made_key()?,
    };
    let caller = Caller { key, via: via.clone() };
    match text {
        Some(text) => say(agent, &shared.hosted.metrics, caller, &text).await,
        None => command(agent, &shared.hosted.metrics, caller, Control::Interrupt).await,
    }
}
