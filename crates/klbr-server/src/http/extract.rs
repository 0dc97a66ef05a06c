//! What handlers take out of a request, each refused with what is wrong with it.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use klbr_core::event::Via;
use klbr_core::ids::Seq;
use klbr_core::runtime::AgentHandle;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::{MAX_BODY, Shared};
use crate::api::{CLIENT, IDEMPOTENCY_KEY, StreamQuery};
use crate::home::random_hex;
use crate::host::{Hosted, Slot};

/// The longest key, in bytes.
const MAX_KEY: usize = 200;

/// The longest name of a client, in bytes.
const MAX_CLIENT: usize = 100;

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes =
            Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "too_large",
                    format!("the body is larger than {MAX_BODY} bytes"),
                ),
                _ => ApiError::bad_request("unreadable_body", rejection.body_text()),
            })?;
        parse(&bytes).map(Body)
    }
}

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let code = if error.is_data() { "invalid_body" } else { "malformed_json" };
        ApiError::bad_request(code, format!("the body is not what it should be: {error}"))
            .hint("GET /openapi.json describes it")
    })
}

/// Query parameters.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(Asked(query)),
            Err(rejection) => Err(ApiError::bad_request("invalid_query", rejection.body_text())),
        }
    }
}

/// The agent that the path names, whether it lives yet or not.
pub(super) struct Named(pub(super) Arc<Hosted>);

impl FromRequestParts<Arc<Shared>> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let Path(parameters) = Path::<Vec<(String, String)>>::from_request_parts(parts, shared)
            .await
            .map_err(|rejection| ApiError::bad_request("invalid_path", rejection.body_text()))?;
        let name = parameters.into_iter().find(|(key, _)| key == "name").map(|(_, name)| name);
        let name = name.unwrap_or_default();
        if name == shared.hosted.name.as_str() {
            return Ok(Named(shared.hosted.clone()));
        }
        Err(ApiError::new(StatusCode::NOT_FOUND, "unknown_agent", format!("there is no agent {name:?} here"))
            .hint(format!("the agent of this home is {}", shared.hosted.name)))
    }
}

/// The agent that the path names, once it lives.
pub(super) struct Living(pub(super) AgentHandle);

impl FromRequestParts<Arc<Shared>> for Living {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let Named(hosted) = Named::from_request_parts(parts, shared).await?;
        match hosted.slot() {
            Slot::Ready(handle) => Ok(Living(handle)),
            Slot::Starting => Err(ApiError::starting()),
            Slot::Stopping => Err(ApiError::stopping()),
            Slot::Failed(error) => Err(ApiError::failed(crate::daemon::whole_story(&*error))),
        }
    }
}

/// What names the request: its own key, or one made for it.
pub(super) struct Key(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).into_iter();
        match (values.next(), values.next()) {
            (None, _) => made_key().map(Key),
            (Some(value), None) => match value.to_str() {
                Ok(text) => checked_key(text).map(Key),
                Err(_) => Err(bad_key("it has bytes that are no visible ASCII")),
            },
            (Some(_), Some(_)) => Err(bad_key("it is there more than once")),
        }
    }
}

/// Who wants something admitted, under which key (`C-TRUST`).
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) key: String,
    pub(super) via: Via,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Key(key) = Key::from_request_parts(parts, state).await?;
        Ok(Caller { key, via: via(parts, "http") })
    }
}

/// By what a request came; `transport` names a client that does not name itself.
pub(super) fn via(parts: &Parts, transport: &str) -> Via {
    let named = [CLIENT, header::USER_AGENT.as_str()].into_iter().find_map(|name| parts.headers.get(name));
    let client = named.map(|name| client_name(name.as_bytes())).filter(|name| !name.is_empty());
    Via { client: client.as_deref().unwrap_or(transport).into(), path: parts.uri.path().into() }
}

/// A client's name as it is kept: what a record says about an operator is no place for anyone's control characters.
fn client_name(told: &[u8]) -> String {
    let plain = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' };
    let name: String = told.trim_ascii().iter().take(MAX_CLIENT).map(plain).collect();
    name.trim_end().to_owned()
}

pub(super) fn made_key() -> Result<String, ApiError> {
    random_hex(16).map(|random| format!("made-{random}")).map_err(|error| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", error.to_string())
            .hint("send an Idempotency-Key of your own")
    })
}

pub(super) fn checked_key(text: &str) -> Result<String, ApiError> {
    match text {
        "" => Err(bad_key("it is empty")),
        long if long.len() > MAX_KEY => Err(bad_key("it is longer than 200 bytes")),
        text if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(bad_key("it has blanks or characters that are no visible ASCII"))
        }
        text => Ok(text.to_owned()),
    }
}

fn bad_key(why: &str) -> ApiError {
    ApiError::bad_request("invalid_idempotency_key", format!("the Idempotency-Key cannot be used: {why}"))
        .hint("send up to 200 visible ASCII characters, such as a UUID, or none")
}

/// Where a stream of updates begins.
pub(super) async fn resume_point(
    handle: &AgentHandle,
    headers: &HeaderMap,
    query: StreamQuery,
) -> Result<Option<Seq>, ApiError> {
    let (name, asked) = match headers.get("last-event-id") {
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
            let invalid = || {
                ApiError::bad_request("invalid_last_event_id", "Last-Event-ID is not the number of a record")
                    .hint("send the id of the last event that you saw, or none")
            };
            ("Last-Event-ID", Some(number.ok_or_else(invalid)?))
        }
        None => ("after", query.after),
    };
    let Some(asked) = asked.map(Seq) else { return Ok(None) };
    let last = handle.store().last(handle.agent()).await?;
    if asked > last {
        return Err(ApiError::bad_request(
            "invalid_last_event_id",
            format!("{name} is {asked}, but the newest record is {last}: that id is of another history"),
        )
        .hint("begin anew with after=0"));
    }
    Ok(Some(asked))
}
