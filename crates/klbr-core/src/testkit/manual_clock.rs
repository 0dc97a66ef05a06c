//! A clock that moves only when it is told to.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::runtime::clock::Clock;
use crate::time::Timestamp;

/// A clock whose hand a test moves.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        ManualClock { now: watch::Sender::new(now) }
    }

    /// Moves the hand; whoever sleeps until then or before wakes up.
    pub fn advance(&self, by: std::time::Duration) {
        self.now.send_modify(|now| *now = *now + by);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    async fn sleep_until(&self, due: Timestamp) {
        // The clock outlives whoever holds it, so that it cannot have been dropped.
        let _ = self.now.subscribe().wait_for(|now| *now >= due).await;
    }
}
