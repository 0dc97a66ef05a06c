//! Catch-up: what was said while nobody listened (`B-DIS-10`).
//!
//! Owns the fetching of messages after the durable cursor of each conversation that may have missed some. They go the
//! way of everything else that is heard; a repeat is known by its name.

use std::time::Duration;

use klbr_core::runtime::{AdmitError, AgentHandle};
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::discord::Inner;
use crate::http::{Failure, PAGE, Page};
use crate::id::ChannelId;
use crate::intake::{Heard, Offer, is_private};
use crate::pump::{Stopped, offer};

/// How long one page may take, rate limits included.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long guilds have to say which channels have anything new, before every channel is asked.
const SETTLE: Duration = Duration::from_secs(1);

/// What came of fetching from one channel.
enum Caught {
    /// Nothing is missed any more, or nothing can be fetched.
    Up,
    /// It could not be fetched for now.
    NotYet,
}

/// Fetches what may have been missed, whenever something may have been, until the agent stops.
pub(crate) async fn run(inner: &Inner, handle: &AgentHandle) -> Stopped {
    let mut backoff = Backoff::default();
    loop {
        let (private, others): (Vec<ChannelId>, Vec<ChannelId>) = {
            let world = inner.world();
            let is_dm = |channel: &ChannelId| world.place(*channel).is_some_and(is_private);
            world.open_places().into_iter().partition(is_dm)
        };
        if private.is_empty() && others.is_empty() {
            backoff.reset();
            inner.gaps.notified().await;
            continue;
        }
        let mut is_over = true;
        for channel in private {
            match catch_up(inner, handle, channel).await {
                Ok(caught) => is_over &= matches!(caught, Caught::Up),
                Err(Stopped) => return Stopped,
            }
        }
        if !others.is_empty() {
            sleep(SETTLE).await;
        }
        for channel in others {
            match catch_up(inner, handle, channel).await {
                Ok(caught) => is_over &= matches!(caught, Caught::Up),
                Err(Stopped) => return Stopped,
            }
        }
        if !is_over {
            sleep(backoff.next()).await;
        }
    }
}

/// Fetches everything after a channel's cursor, page by page, and moves the cursor over each.
async fn catch_up(inner: &Inner, handle: &AgentHandle, channel: ChannelId) -> Result<Caught, Stopped> {
    let mut count = 0;
    loop {
        let place = inner.world().place(channel).cloned();
        // It may be gone by now, or have been told that it missed nothing.
        let open = place.filter(|place| place.is_open);
        let Some((after, gap)) = open.and_then(|place| Some((place.after?, place.gaps))) else {
            return Ok(Caught::Up);
        };
        let page = Page::After(after);
        let fetched = match inner.http.messages(channel, page, PAGE, Instant::now() + PATIENCE).await {
            Ok(fetched) => fetched,
            Err(failure @ Failure::Refused { .. }) => {
                tracing::warn!(%channel, %failure, "missed messages cannot be fetched: they are passed over");
                filled(inner, channel, gap);
                return Ok(Caught::Up);
            }
            Err(failure) => {
                tracing::warn!(%channel, %failure, "missed messages cannot be fetched yet");
                return Ok(Caught::NotYet);
            }
        };
        let last = fetched.messages.last().map(|message| message.id);
        count += fetched.messages.len();
        let heard: Vec<Heard> = {
            let (mut world, intake) = (inner.world(), inner.intake());
            fetched.messages.iter().map(|message| intake.message(&mut world, message)).collect()
        };
        let offers: Vec<&Offer> = heard.iter().flat_map(|heard| &heard.offers).collect();
        match offer(handle, &offers).await {
            Ok(()) => {}
            Err(AdmitError::Stopped) => return Err(Stopped),
            Err(error) => {
                tracing::warn!(%channel, %error, "fetched messages could not be made durable yet");
                return Ok(Caught::NotYet);
            }
        }
        match last {
            Some(last) if fetched.is_full && last > after => {
                inner.world().fetched(channel, last);
                inner.changes.notify_one();
            }
            last => {
                if let Some(last) = last {
                    inner.world().fetched(channel, last);
                }
                filled(inner, channel, gap);
                tracing::info!(%channel, count, "caught up");
                return Ok(Caught::Up);
            }
        }
    }
}

fn filled(inner: &Inner, channel: ChannelId, gap: u32) {
    inner.world().filled(channel, gap);
    inner.changes.notify_one();
}
