//! How often sessions may begin.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep_until};
use twilight_gateway::queue::Queue;

/// The distance that Discord asks for between two sessions of one group of shards.
const APART: Duration = Duration::from_secs(5);

/// Lets sessions begin no faster than Discord allows. Clones share what they know.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// How many shards may begin at once.
    groups: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// When the next session of each group may begin.
    next: HashMap<u64, Instant>,
    /// How many may begin until the reset; unknown when it is none.
    left: Option<u64>,
    reset: Instant,
}

impl Gate {
    pub(super) fn new(groups: u64, left: Option<u64>, reset: Duration) -> Self {
        let state = State { next: HashMap::new(), left, reset: Instant::now() + reset };
        Gate { groups: groups.max(1), state: Arc::new(Mutex::new(state)) }
    }

    /// Waits until a session of a shard may begin, and counts it.
    pub(super) async fn pass(&self, shard: u32) {
        let group = u64::from(shard) % self.groups;
        let mut state = self.state.lock().await;
        if state.left == Some(0) {
            tracing::warn!("no more sessions may begin today: waiting for Discord's reset");
            sleep_until(state.reset).await;
            state.left = None;
        }
        if let Some(next) = state.next.get(&group) {
            sleep_until(*next).await;
        }
        state.next.insert(group, Instant::now() + APART);
        state.left = state.left.map(|left| left.saturating_sub(1));
    }

    /// Takes back the last pass of a shard, whose connection never came so far as to begin a session.
    pub(super) async fn give_back(&self, shard: u32) {
        let mut state = self.state.lock().await;
        state.next.remove(&(u64::from(shard) % self.groups));
        state.left = state.left.map(|left| left + 1);
    }
}

/// A shard's own queue, which lets it in at once: the [`Gate`] stands before its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now;

impl Queue for Now {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (pass, passed) = oneshot::channel();
        // The shard holds the other end.
        let _ = pass.send(());
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sessions_of_one_group_begin_five_seconds_apart() {
        let gate = Gate::new(2, Some(2), Duration::from_secs(100));
        let start = Instant::now();
        gate.pass(0).await;
        gate.pass(1).await;
        assert_eq!(start.elapsed(), Duration::ZERO, "two groups");
        gate.pass(2).await;
        assert!(start.elapsed() >= Duration::from_secs(100), "only two were left until the reset");
        let start = Instant::now();
        gate.pass(0).await;
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        gate.give_back(0).await;
        gate.pass(2).await;
        assert_eq!(start.elapsed(), Duration::from_secs(5), "one that did not begin does not count");
    }
}
