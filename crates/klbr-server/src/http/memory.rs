//! What the operator changes of an agent's memories. A change of a pinned one reaches the model as a note in the
//! next frame that starts a turn (`C-MEM`).

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use klbr_core::runtime::clock::{Clock as _, SystemClock};
use klbr_core::runtime::store::{MemoryChange, is_scope};

use super::error::ApiError;
use super::extract::{Asked, Body, Key, Living};
use super::read::limit;
use crate::api::{Memories, MemoryEdit, MemoryQuery, Remembered};

pub(super) async fn list(
    Living(agent): Living,
    Asked(query): Asked<MemoryQuery>,
) -> Result<Json<Memories>, ApiError> {
    let limit = limit(query.limit, 100, 1_000)?;
    let text = query.text.unwrap_or_default();
    Ok(Json(Memories { memories: agent.store().memories(agent.agent(), &text, &[], limit).await? }))
}

pub(super) async fn change(
    Living(agent): Living,
    Key(key): Key,
    Body(edit): Body<MemoryEdit>,
) -> Result<Json<Remembered>, ApiError> {
    let (id, change) = checked(edit)?;
    // An action's key is its id; no operator's can be one.
    let key = format!("operator:{key}");
    match agent.store().remember(agent.agent(), &key, SystemClock.now(), change).await? {
        Some(memory) => Ok(Json(Remembered { memory })),
        None => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "unknown_memory",
            format!("there is no memory {}", id.unwrap_or_default()),
        )
        .hint("GET on the same path lists them")),
    }
}

/// The change, and the memory that it is of.
fn checked(edit: MemoryEdit) -> Result<(Option<u64>, MemoryChange), ApiError> {
    let text = |text: String| match text.trim() {
        "" => Err(ApiError::bad_request("empty_memory", "the text is empty").hint("say what to remember")),
        text => Ok(Arc::from(text)),
    };
    let tags = |tags: Vec<String>| match tags.iter().find(|tag| !is_scope(tag)) {
        Some(tag) => Err(ApiError::bad_request("invalid_tag", format!("{tag:?} is no scope"))
            .hint("a tag says where a memory belongs, such as conversation:d1 or author:42")),
        None => Ok(tags.into_iter().map(Arc::from).collect::<Vec<Arc<str>>>()),
    };
    Ok(match edit {
        MemoryEdit::Add { text: said, tags: scopes, pinned } => {
            (None, MemoryChange::Add { text: text(said)?, tags: tags(scopes)?, pinned })
        }
        MemoryEdit::Update { id, text: said, tags: scopes, pinned } => {
            let (text, tags) = (said.map(text).transpose()?, scopes.map(tags).transpose()?);
            (Some(id), MemoryChange::Update { id, text, tags, pinned })
        }
        MemoryEdit::Forget { id } => (Some(id), MemoryChange::Forget { id }),
    })
}
