//! Standing still at a named point, for proofs that kill the process exactly there (`C-PRF-1`).
//!
//! `KLBR_PAUSE_AT=<point>[:n]` makes the daemon stop for ever at the n-th passing (1 when absent) of a
//! [`Point`]: it writes `{"paused":"<point>"}` as one line to stderr, and the agent's loop never goes on. The
//! rest of the process lives on as it would in front of a hanging disk. Meant for tests; there is no way on
//! but a kill.

use std::io::Write as _;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use klbr_core::runtime::probe::{Point, Probe};

/// Where to stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The point.
    pub point: Point,
    /// At which of its passings, from 1.
    pub passing: u32,
}

impl Pause {
    /// What a text must be to be one.
    pub(crate) fn expected() -> String {
        format!("a point, or point:n; the points are {}", Point::ALL.map(Point::as_str).join(", "))
    }
}

/// A text that names no point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {}", Pause::expected())]
pub struct NoSuchPoint {
    text: String,
}

impl FromStr for Pause {
    type Err = NoSuchPoint;

    fn from_str(text: &str) -> Result<Self, NoSuchPoint> {
        let error = || NoSuchPoint { text: text.to_owned() };
        let (name, passing) = match text.split_once(':') {
            Some((name, n)) => (name, n.parse().ok().filter(|n| *n > 0).ok_or_else(error)?),
            None => (text, 1),
        };
        let point = Point::ALL.into_iter().find(|point| point.as_str() == name).ok_or_else(error)?;
        Ok(Pause { point, passing })
    }
}

/// The probe that stands still.
pub(crate) struct StandStill {
    at: Pause,
    passed: AtomicU32,
}

impl StandStill {
    pub(crate) fn new(at: Pause) -> Self {
        StandStill { at, passed: AtomicU32::new(0) }
    }
}

impl Probe for StandStill {
    fn reached(&self, point: Point) {
        if point != self.at.point || self.passed.fetch_add(1, Ordering::Relaxed) + 1 != self.at.passing {
            return;
        }
        // Whoever reads it may be gone; the process stands still all the same.
        let _ = writeln!(std::io::stderr(), "{{\"paused\":\"{}\"}}", point.as_str());
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_by_name_and_passing() {
        for point in Point::ALL {
            assert_eq!(point.as_str().parse(), Ok(Pause { point, passing: 1 }));
        }
        let third = Pause { point: Point::WaitAfterCommit, passing: 3 };
        assert_eq!("wait-after-commit:3".parse(), Ok(third));
        for text in ["", "nowhere", "wait-after-commit:0", "wait-after-commit:x"] {
            assert!(text.parse::<Pause>().unwrap_err().to_string().contains("admit-before-commit"), "{text}");
        }
    }
}
