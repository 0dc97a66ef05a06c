//! The pump: what was heard becomes durable, many at once and in order (`B-DIS-3`).
//!
//! Owns the queue between the gateway and admission, and everything that moves a cursor: only what was admitted, or let
//! pass, is passed. Refuses to hold the gateway up: a full queue is the gateway's to deal with.

use std::sync::Arc;
use std::time::Duration;

use klbr_core::event::{EventKey, NewEvent};
use klbr_core::runtime::{AdmitError, AgentHandle};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::discord::Inner;
use crate::intake::{Heard, Offer};
use crate::kept::Session;
use crate::world::World;

/// Dispatches that wait for admission, at most.
pub(crate) const QUEUE: usize = 4_096;
/// Dispatches that are admitted at once, at most.
const AT_ONCE: usize = 512;
/// How long changes are gathered before they are kept.
const GATHER: Duration = Duration::from_millis(300);

/// What a shard was told by one dispatch.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) shard: u32,
    pub(crate) sequence: u64,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// A session began.
    Began(Session),
    /// Something was heard.
    Heard(Heard),
}

/// The agent has stopped: nothing more is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Admits what comes, until the agent stops or nothing more can come.
pub(crate) async fn run(inner: &Inner, handle: &AgentHandle, mut items: mpsc::Receiver<Item>) -> Stopped {
    let mut batch = Vec::new();
    // What comes while one batch becomes durable is the next one.
    while items.recv_many(&mut batch, AT_ONCE).await > 0 {
        if admit(inner, handle, &batch).await.is_err() {
            return Stopped;
        }
        let mut world = inner.world();
        batch.drain(..).for_each(|item| pass(&mut world, item));
        drop(world);
        inner.changes.notify_one();
    }
    Stopped
}

/// Makes what was heard durable, however long the store fails.
async fn admit(inner: &Inner, handle: &AgentHandle, batch: &[Item]) -> Result<(), Stopped> {
    let heard = || {
        batch.iter().filter_map(|item| match &item.what {
            What::Heard(heard) => Some(heard),
            What::Began(_) => None,
        })
    };
    let offers: Vec<&Offer> = heard().flat_map(|heard| &heard.offers).collect();
    let mut backoff = Backoff::default();
    loop {
        let admitted = match keep_new_places(inner, heard()).await {
            Ok(()) => offer(handle, &offers).await,
            Err(error) => Err(error),
        };
        match admitted {
            Ok(()) => return Ok(()),
            Err(AdmitError::Stopped) => return Err(Stopped),
            Err(error) => {
                tracing::warn!(%error, "what Discord told could not be made durable: trying again");
                sleep(backoff.next()).await;
            }
        }
    }
}

/// Keeps the conversations in which something is heard first: what is said next in a place that only this process
/// knows of would be missed after a crash.
async fn keep_new_places(inner: &Inner, heard: impl Iterator<Item = &Heard>) -> Result<(), AdmitError> {
    let spoken = heard.filter(|heard| !heard.offers.is_empty()).filter_map(|heard| heard.passes);
    let channels: Vec<_> = spoken.map(|(channel, _)| channel).collect();
    let is_fresh = || {
        let world = inner.world();
        channels.iter().any(|channel| world.is_fresh(*channel))
    };
    match is_fresh() && !keep_now(inner).await && is_fresh() {
        true => Err(AdmitError::Store("a new conversation could not be kept".to_owned())),
        false => Ok(()),
    }
}

/// Admits everything in its order; returns once it is durable. What an earlier try has admitted already is known by
/// its name.
pub(crate) async fn offer(handle: &AgentHandle, offers: &[&Offer]) -> Result<(), AdmitError> {
    let mut events = Vec::new();
    for offer in offers {
        if let Some(older) = &offer.only_after {
            // It is judged by what was admitted before it, so that has to be over.
            admit_all(handle, std::mem::take(&mut events)).await?;
            let key = EventKey { instance: offer.event.source.instance.clone(), external_id: older.clone() };
            let known = handle.store().find(handle.agent(), &[key]).await;
            let known = known.map_err(|error| AdmitError::Store(error.to_string()))?;
            if known.iter().all(Option::is_none) {
                continue;
            }
        }
        events.push(offer.event.clone());
    }
    admit_all(handle, events).await
}

async fn admit_all(handle: &AgentHandle, events: Vec<NewEvent>) -> Result<(), AdmitError> {
    let names: Vec<Arc<str>> = events.iter().map(|event| event.external_id.clone()).collect();
    for (answer, external_id) in handle.admit_all(events).await.into_iter().zip(names) {
        match answer {
            Ok(_) => {}
            Err(AdmitError::Invalid(error)) => {
                // It would be refused each time it is offered.
                tracing::error!(%external_id, %error, "an event no agent can take");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Moves the cursors over what is durable now.
fn pass(world: &mut World, item: Item) {
    match item.what {
        What::Began(session) => world.set_session(item.shard, Some(session)),
        What::Heard(heard) => {
            if let Some((channel, message)) = heard.passes {
                world.passed(channel, message);
            }
        }
    }
    world.admitted(item.shard, item.sequence);
}

/// Keeps what has changed, a little later than it did: what is lost with the process is only told or fetched again.
pub(crate) async fn keep(inner: &Inner) {
    loop {
        inner.changes.notified().await;
        sleep(GATHER).await;
        keep_now(inner).await;
    }
}

/// Keeps what has changed up to now; whether that is durable.
pub(crate) async fn keep_now(inner: &Inner) -> bool {
    // One after the other, so that what another one has taken is kept when this one returns.
    let _turn = inner.keeping.lock().await;
    let changed = inner.world().take_changed();
    let kept = inner.kept.keep(&changed).await;
    match &kept {
        Ok(()) => inner.world().kept(&changed),
        Err(error) => {
            tracing::warn!(%error, "the adapter's cursors could not be kept: trying again");
            inner.world().put_back(&changed);
            inner.changes.notify_one();
        }
    }
    kept.is_ok()
}
