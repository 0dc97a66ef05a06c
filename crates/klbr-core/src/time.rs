//! Wall-clock instants as the core keeps them (`C-TIME`). The core is told the time; it never asks.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// UTC milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// How much later this is than `earlier`; zero when it is not later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Duration) -> Timestamp {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(millis))
    }
}

/// RFC 3339 in UTC with seconds, such as `2026-11-05T14:03:20Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0.div_euclid(1000)) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// A duration as people read it: `850ms`, `42s`, `3m 05s`, `2h 00m`.
#[derive(Clone, Copy, Debug)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0 => write!(f, "{}ms", self.0.as_millis()),
            1..60 => write!(f, "{seconds}s"),
            60..3600 => write!(f, "{}m {:02}s", seconds / 60, seconds % 60),
            _ => write!(f, "{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_print_in_utc_and_durations_for_people() {
        assert_eq!(Timestamp(1_762_351_400_999).to_string(), "2025-11-05T14:03:20Z");
        let human = |millis| Human(Duration::from_millis(millis)).to_string();
        assert_eq!(
            [human(0), human(999), human(42_900), human(185_000), human(7_200_000)],
            ["0ms", "999ms", "42s", "3m 05s", "2h 00m"]
        );
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp(i64::MAX) + Duration::from_secs(1), Timestamp(i64::MAX));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
