//! What only asks.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use klbr_core::ids::Seq;
use klbr_core::ledger::Ledger;
use klbr_core::runtime::AgentHandle;
use klbr_core::runtime::channel::Channel as _;
use klbr_core::runtime::store::Search;
use klbr_core::status::Attended;
use klbr_core::time::Timestamp;

use super::Shared;
use super::error::ApiError;
use super::extract::{Asked, Living, Named};
use crate::api::{
    AgentStatus, Conversation, Conversations, DaemonStatus, HistoryQuery, Hits, Inbox, InboxQuery, ItemBody,
    Records, RecordsQuery, Soul,
};
use crate::host::Slot;

/// How long the agent's own account is waited for before the rest is told without it.
pub(super) const ACCOUNT: Duration = Duration::from_millis(50);

pub(super) async fn status(State(shared): State<Arc<Shared>>, Named(hosted): Named) -> Json<AgentStatus> {
    let agent = match hosted.slot() {
        Slot::Ready(handle) => tokio::time::timeout(ACCOUNT, handle.status()).await.ok().and_then(Result::ok),
        Slot::Starting | Slot::Stopping | Slot::Failed(_) => None,
    };
    Json(AgentStatus {
        name: hosted.name.to_string(),
        state: hosted.state(),
        daemon: DaemonStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: u64::try_from(shared.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            home: shared.home.dir().display().to_string(),
        },
        model: hosted.model_status(),
        channel: hosted.channel(),
        agent,
    })
}

pub(super) async fn ledger(Living(agent): Living) -> Result<Json<Ledger>, ApiError> {
    Ok(Json(agent.ledger().await?))
}

pub(super) async fn inbox(
    Living(agent): Living,
    Asked(query): Asked<InboxQuery>,
) -> Result<Json<Inbox>, ApiError> {
    let limit = limit(query.limit, 100, 10_000)?;
    Ok(Json(Inbox { waiting: agent.waiting(limit).await?, items: agent.attention(limit).await? }))
}

pub(super) async fn item(
    Living(agent): Living,
    Path((_, name)): Path<(String, String)>,
) -> Result<Json<ItemBody>, ApiError> {
    let item = find(&agent, &name).await?;
    let bodies = agent.store().bodies(agent.agent(), &[item.newest]).await?;
    let body = bodies.into_iter().next().unwrap_or_default();
    Ok(Json(ItemBody { item, author: body.author, text: body.text }))
}

/// The attention item of this name.
pub(super) async fn find(agent: &AgentHandle, name: &str) -> Result<Attended, ApiError> {
    let mut items = agent.attention(usize::MAX).await?;
    if let Some(at) = items.iter().position(|item| item.is_named(name)) {
        return Ok(items.swap_remove(at));
    }
    let is_open = |item: &&Attended| item.decided.is_none();
    let open: Vec<&str> = items.iter().filter(is_open).take(12).map(|item| &*item.item).collect();
    let error = ApiError::new(
        axum::http::StatusCode::NOT_FOUND,
        "unknown_item",
        format!("there is no attention item {name:?}"),
    );
    Err(error.hint(match open[..] {
        [] => "nothing waits for a decision".to_owned(),
        _ => format!("undecided are {}", open.join(", ")),
    }))
}

pub(super) async fn discord_conversations(
    Named(hosted): Named,
    Living(agent): Living,
) -> Result<Json<Conversations>, ApiError> {
    let Some(discord) = hosted.discord.get() else {
        let error =
            ApiError::new(axum::http::StatusCode::NOT_FOUND, "no_discord", "the agent is not on Discord");
        return Err(error.hint("set KLBR_DISCORD_TOKEN, or discord.token_file in klbr.toml, and restart"));
    };
    let aliases = agent.conversations().await?;
    let known = discord.conversations().await?.into_iter();
    let conversations = known.map(|one| Conversation::new(one, discord.instance(), &aliases)).collect();
    Ok(Json(Conversations { conversations }))
}

pub(super) async fn records(
    Living(agent): Living,
    Asked(query): Asked<RecordsQuery>,
) -> Result<Json<Records>, ApiError> {
    let limit = limit(query.limit, 100, 1_000)?;
    let page = agent.store().records(agent.agent(), Seq(query.after.unwrap_or(0)), limit).await?;
    let next = page.last().filter(|_| page.len() == limit).map(|last| last.seq);
    let records = page.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    let records = records.map_err(|error| {
        ApiError::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "unwritable_record", error.to_string())
    })?;
    Ok(Json(Records { records, next }))
}

pub(super) async fn history(
    Living(agent): Living,
    Asked(query): Asked<HistoryQuery>,
) -> Result<Json<Hits>, ApiError> {
    if query.text.trim().is_empty() {
        return Err(ApiError::bad_request("empty_search", "the text to look for is empty"));
    }
    let search = Search {
        text: query.text,
        since: query.since.map(Timestamp),
        until: query.until.map(Timestamp),
        source: query.source,
        conversation: query.conversation,
        limit: limit(query.limit, 20, 200)?,
        offset: query.offset.unwrap_or(0),
    };
    Ok(Json(Hits { hits: agent.search(search).await? }))
}

pub(super) async fn soul(Living(agent): Living) -> Result<Json<Soul>, ApiError> {
    Ok(Json(Soul { text: agent.soul().await?.to_string() }))
}

pub(super) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, ApiError> {
    match asked {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => {
            Err(ApiError::bad_request("invalid_query", format!("limit is {limit}, not 1 to {most}")))
        }
    }
}
