//! The clock port: the only place that reads the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use crate::time::Timestamp;

/// Tells the time, and waits for it.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The wall-clock time.
    fn now(&self) -> Timestamp;

    /// Returns at `due` or shortly before; the caller looks at [`Clock::now`] again.
    async fn sleep_until(&self, due: Timestamp);
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// How long a sleep relies on the monotonic clock before the wall clock is looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the clock port is where the time is read")]
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep_until(&self, due: Timestamp) {
        tokio::time::sleep(due.since(self.now()).min(LONGEST_SLEEP)).await;
    }
}
