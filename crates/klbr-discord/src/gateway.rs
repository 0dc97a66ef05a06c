//! The gateway: one connection per shard, for as long as the agent lives.
//!
//! Owns when a connection is made and where to, and the session that it resumes. twilight-gateway speaks on each
//! connection; a new [`Shard`] is made for the next one, since a shard by itself reconnects without any pause, forgets
//! where to resume after one refused connection, and resumes only where READY said. Refuses to read what is told:
//! that is [`Intake`](crate::intake)'s, and admission the pump's, which never holds a connection up.

mod connection;
mod end;
mod identify;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use twilight_gateway::{ConfigBuilder, Intents, Session as Resumable, Shard, ShardId};

use crate::backoff::Backoff;
use crate::discord::Inner;
use crate::http::Failure;
use crate::kept::Session;
use crate::payload::Read;
use crate::pump::{Item, QUEUE};
use connection::Connection;
pub(crate) use end::End;
pub use end::Fatal;
use identify::{Gate, Now};

/// What the adapter wants to be told.
pub(crate) const INTENTS: Intents = Intents::GUILDS
    .union(Intents::GUILD_MESSAGES)
    .union(Intents::GUILD_MESSAGE_REACTIONS)
    .union(Intents::DIRECT_MESSAGES)
    .union(Intents::DIRECT_MESSAGE_REACTIONS)
    .union(Intents::MESSAGE_CONTENT);

/// Connections in a row on which a session was not resumed, without being refused either: after them another one begins,
/// and what was missed is fetched.
const RESUMES: u32 = 3;

/// How long Discord may take to say where the gateway is.
const PATIENCE: Duration = Duration::from_secs(60);

/// What Discord says of its gateway.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where sessions begin.
    url: String,
    /// What every shard is made with; it holds the certificates, so that they are loaded once.
    config: twilight_gateway::Config<Now>,
    /// The shards of this process.
    shards: Vec<u32>,
    /// How many there are altogether.
    total: u32,
    gate: Gate,
}

/// Asks Discord where the gateway is, for as long as it cannot be reached.
pub(crate) async fn plan(inner: &Inner) -> Result<Plan, Fatal> {
    let mut backoff = Backoff::default();
    let told = loop {
        match inner.http.gateway(Instant::now() + PATIENCE).await {
            Ok(told) => break told,
            Err(Failure::Refused { status: 401, .. }) => return Err(Fatal::Token),
            // Something that only looks like Discord may not have it; then the settings have to say.
            Err(failure) if !failure.is_passing() && inner.settings.gateway_url.is_some() => {
                break Default::default();
            }
            Err(failure) if !failure.is_passing() => return Err(Fatal::Refused(failure.to_string())),
            Err(failure) => {
                tracing::warn!(%failure, "Discord does not say where its gateway is: asking again");
                sleep(backoff.next()).await;
            }
        }
    };
    let limit = told.object("session_start_limit").cloned().unwrap_or_default();
    let url = inner.settings.gateway_url.clone().or_else(|| told.name("url"));
    let url = url.ok_or_else(|| Fatal::Refused("Discord did not say where its gateway is".to_owned()))?;
    let recommended = told.number("shards").and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1);
    let (shards, total) = match &inner.settings.shards {
        Some(shards) => (shards.numbers.clone(), shards.total),
        None => ((0..recommended).collect(), recommended),
    };
    let gate = Gate::new(
        limit.number("max_concurrency").unwrap_or(1),
        limit.number("remaining"),
        Duration::from_millis(limit.number("reset_after").unwrap_or_default()),
    );
    let url = without_query(&url);
    let token = format!("Bot {}", inner.settings.token.expose());
    let config = ConfigBuilder::new(token, INTENTS).queue(Now).proxy_url(url.clone()).build();
    Ok(Plan { url, config, shards, total, gate })
}

impl Plan {
    pub(crate) fn shards(&self) -> &[u32] {
        &self.shards
    }
}

/// Where a session is, as far as this process has heard of it.
#[derive(Clone, Debug, Default)]
struct Position {
    session: Option<Session>,
    /// Whether the session's own address could not be reached the last time.
    is_url_bad: bool,
}

/// Keeps one shard connected until something ends it for good.
pub(crate) async fn run(
    inner: &Inner,
    plan: &Plan,
    number: u32,
    items: &mpsc::Sender<Item>,
) -> Result<(), Fatal> {
    let id = ShardId::new_checked(number, plan.total)
        .ok_or_else(|| Fatal::Refused(format!("there is no shard {number} of {}", plan.total)))?;
    let kept = inner.world().session(number).cloned();
    let mut position =
        Position { session: kept.filter(|session| session.shards == plan.total), is_url_bad: false };
    let mut backoff = Backoff::default();
    let mut in_vain = 0;
    loop {
        let begins = position.session.is_none();
        if begins {
            plan.gate.pass(number).await;
        }
        let shard = Shard::with_config(id, config(plan, &position));
        let mut connection = Connection::new(inner, number, plan.total, items, &mut position, &mut backoff);
        let end = Box::pin(connection.run(shard)).await;
        let is_in_vain = !begins && !connection.was_live() && matches!(end, End::Lost(_));
        in_vain = if is_in_vain { in_vain + 1 } else { 0 };
        if begins && !connection.is_greeted() {
            plan.gate.give_back(number).await;
        }
        match &end {
            End::Fatal(fatal) => return Err(fatal.clone()),
            End::Overflow => {
                tracing::warn!(
                    shard = number,
                    "admission is behind: the gateway's connection is let go meanwhile"
                );
                // Resuming from the last dispatch that was taken in, nothing is missed.
                if items.reserve_many(QUEUE / 2).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            End::Closed => return Ok(()),
            End::Unreachable(why) => {
                position.is_url_bad = position.session.is_some() && !position.is_url_bad;
                tracing::warn!(shard = number, why, "the gateway cannot be reached");
            }
            End::Lost(why) if in_vain >= RESUMES => {
                position = Position::default();
                tracing::info!(shard = number, why, "the gateway's session cannot be resumed");
            }
            End::Lost(why) => tracing::info!(shard = number, why, "the gateway's connection ended"),
            End::Invalid(why) => {
                position = Position::default();
                tracing::info!(shard = number, why, "the gateway's session ended");
            }
        }
        sleep(backoff.next()).await;
    }
}

/// What the next connection is made with: the session, and where it is resumed.
fn config(plan: &Plan, position: &Position) -> twilight_gateway::Config<Now> {
    let mut config = ConfigBuilder::from(plan.config.clone());
    if let Some(session) = &position.session {
        let url = session.url.as_deref().filter(|_| !position.is_url_bad).map(without_query);
        config = config
            .session(Resumable::new(session.sequence, session.id.clone()))
            .resume_url(url.unwrap_or_else(|| plan.url.clone()));
    }
    config.build()
}

/// An address as a shard takes it: the shard itself adds version and encoding.
fn without_query(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_what_a_shard_adds_itself() {
        assert_eq!(without_query("wss://gateway.discord.gg/?v=10&encoding=json"), "wss://gateway.discord.gg");
        assert_eq!(without_query("ws://127.0.0.1:9"), "ws://127.0.0.1:9");
    }
}
