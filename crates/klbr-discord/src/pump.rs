//! The pump: what was heard becomes durable, many at once and in order (`B-DIS-3`).
//!
//! Owns the queue between the gateway and admission, and everything that moves a cursor: only what was admitted, or let
//! pass, is passed. Refuses to hold the gateway up: a full queue is the gateway's to deal with.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use klbr_core::event::EventKey;
use klbr_core::runtime::{AdmitError, AgentHandle};
use tokio::sync::mpsc;
use tokio::task::unconstrained;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::discord::Inner;
use crate::intake::{Heard, Offer};
use crate::kept::Session;

/// Dispatches that wait for admission, at most.
pub(crate) const QUEUE: usize = 4_096;
/// Dispatches that are being admitted at once.
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
    /// A session began; what came before it may have been missed.
    Began(Session),
    /// Something was heard.
    Heard(Heard),
}

/// The agent has stopped: nothing more is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Admits what comes, until the agent stops or nothing more can come.
pub(crate) async fn run(inner: &Inner, handle: &AgentHandle, mut items: mpsc::Receiver<Item>) -> Stopped {
    let mut under_way = FuturesOrdered::new();
    let mut is_over = false;
    while !(is_over && under_way.is_empty()) {
        tokio::select! {
            item = items.recv(), if !is_over && under_way.len() < AT_ONCE => match item {
                Some(item) if must_wait(&item) => {
                    // It is judged by what was admitted before it, so that has to be over.
                    while let Some((item, result)) = under_way.next().await {
                        if settle(inner, handle, item, result).await.is_err() {
                            return Stopped;
                        }
                    }
                    let result = admit(inner, handle, &item).await;
                    if settle(inner, handle, item, result).await.is_err() {
                        return Stopped;
                    }
                }
                Some(item) => under_way.push_back(async move {
                    let result = admit(inner, handle, &item).await;
                    (item, result)
                }),
                None => is_over = true,
            },
            Some((item, result)) = under_way.next() => {
                if settle(inner, handle, item, result).await.is_err() {
                    return Stopped;
                }
            }
        }
    }
    Stopped
}

/// Admits what was fetched, in order; returns once it is durable.
pub(crate) async fn admit_fetched(handle: &AgentHandle, heard: Vec<Heard>) -> Result<(), AdmitError> {
    let mut left: VecDeque<Heard> = heard.into();
    let mut under_way = FuturesOrdered::new();
    loop {
        while under_way.len() < AT_ONCE
            && let Some(heard) = left.pop_front()
        {
            under_way.push_back(async move { offer_all(handle, &heard.offers).await });
        }
        match under_way.next().await {
            Some(result) => result?,
            None => return Ok(()),
        }
    }
}

fn must_wait(item: &Item) -> bool {
    match &item.what {
        What::Began(_) => true,
        What::Heard(heard) => heard.offers.iter().any(|offer| offer.only_after.is_some()),
    }
}

async fn admit(inner: &Inner, handle: &AgentHandle, item: &Item) -> Result<(), AdmitError> {
    match &item.what {
        What::Began(_) => Ok(()),
        What::Heard(heard) => {
            // What is said next in a place that only this process knows of would be missed after a crash.
            if let Some((channel, _)) = heard.passes.filter(|_| !heard.offers.is_empty())
                && inner.world().is_fresh(channel)
                && !keep_now(inner).await
                && inner.world().is_fresh(channel)
            {
                return Err(AdmitError::Store("a new conversation could not be kept".to_owned()));
            }
            offer_all(handle, &heard.offers).await
        }
    }
}

async fn offer_all(handle: &AgentHandle, offers: &[Offer]) -> Result<(), AdmitError> {
    for offer in offers {
        if let Some(older) = &offer.only_after {
            let key = EventKey { instance: offer.event.source.instance.clone(), external_id: older.clone() };
            let known = handle.store().find(handle.agent(), &[key]).await;
            let known = known.map_err(|error| AdmitError::Store(error.to_string()))?;
            if known.iter().all(Option::is_none) {
                continue;
            }
        }
        // Without this, what is offered at once may be deferred by the runtime and then go in the other order.
        match unconstrained(handle.admit(offer.event.clone())).await {
            Ok(_) => {}
            Err(AdmitError::Invalid(error)) => {
                // It would be refused each time it is offered.
                tracing::error!(external_id = %offer.event.external_id, %error, "an event no agent can take");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Brings one item to its end, however long the store fails, and moves the cursors over it.
async fn settle(
    inner: &Inner,
    handle: &AgentHandle,
    item: Item,
    mut result: Result<(), AdmitError>,
) -> Result<(), Stopped> {
    let mut backoff = Backoff::default();
    while let Err(error) = result {
        if matches!(error, AdmitError::Stopped) {
            return Err(Stopped);
        }
        tracing::warn!(%error, "what Discord told could not be made durable: trying again");
        sleep(backoff.next()).await;
        result = admit(inner, handle, &item).await;
    }
    let mut world = inner.world();
    match item.what {
        What::Began(session) => {
            world.begin(item.shard, session);
            inner.gaps.notify_one();
        }
        What::Heard(heard) => {
            if let Some((channel, message)) = heard.passes {
                world.passed(channel, message);
            }
        }
    }
    world.admitted(item.shard, item.sequence);
    drop(world);
    inner.changes.notify_one();
    Ok(())
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
