//! Updates as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream;
use klbr_core::runtime::Updates;
use klbr_core::update::Update;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::error::ApiError;
use super::extract::{Asked, Living, resume_point};
use crate::api::StreamQuery;

/// How often a silent stream shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    headers: HeaderMap,
    Asked(query): Asked<StreamQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let after = resume_point(&agent, &headers, query).await?;
    let updates = agent.updates(after).await?;
    let events = stream::unfold((updates, shared.stop.clone()), |(mut updates, stop)| async move {
        let event = next(&mut updates, &stop).await.map(|update| to_event(&update))?;
        Some((Ok(event), (updates, stop)))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// The next update; none when the agent or the daemon stops, or the store fails: a client resumes then.
pub(super) async fn next(updates: &mut Updates, stop: &CancellationToken) -> Option<Update> {
    tokio::select! {
        update = updates.next() => match update {
            Ok(update) => update,
            Err(error) => {
                tracing::warn!(%error, "a client's stream of updates ends");
                None
            }
        },
        () = stop.cancelled() => None,
    }
}

fn to_event(update: &Update) -> Event {
    let data = serde_json::to_string(update).expect("an update is plain data with text keys");
    let event = Event::default().data(data);
    match update.id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}
