//! The stamps that processes of one machine may compare.
//!
//! Owns the reading of the machine's monotonic clock. Refuses to turn a stamp into anything but a distance to another.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment, comparable across processes of the same machine since its last boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub mono_ns: u64,
    /// The wall clock, in nanoseconds since 1970; for people, never for a distance.
    pub wall_ns: u64,
}

impl Stamp {
    /// Reads both clocks.
    pub fn now() -> Stamp {
        let mono = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Stamp {
            mono_ns: mono.tv_sec as u64 * 1_000_000_000 + mono.tv_nsec as u64,
            wall_ns: wall.as_nanos() as u64,
        }
    }

    /// How long after `earlier` this was; zero if it was not after it.
    pub fn since(self, earlier: Stamp) -> Duration {
        Duration::from_nanos(self.mono_ns.saturating_sub(earlier.mono_ns))
    }
}
