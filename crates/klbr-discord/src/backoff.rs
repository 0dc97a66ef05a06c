//! Growing distances between tries, so that nothing is ever asked in a hot loop.

use std::time::Duration;

/// The first distance.
const FIRST: Duration = Duration::from_millis(250);
/// The longest distance.
const LONGEST: Duration = Duration::from_secs(60);

/// Doubles from a quarter of a second to a minute, each time with jitter.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Backoff(FIRST)
    }
}

impl Backoff {
    /// The next distance.
    pub(crate) fn next(&mut self) -> Duration {
        let now = self.0.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.0 = (self.0 * 2).min(LONGEST);
        now
    }

    /// Begins again: a connection has proven itself.
    pub(crate) fn reset(&mut self) {
        *self = Backoff::default();
    }

    /// Discord asks for one to five seconds after it has called a session invalid.
    pub(crate) fn at_least_a_second(&mut self) {
        self.0 = self.0.max(Duration::from_secs(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_grow_to_a_bound_and_begin_again() {
        let mut backoff = Backoff::default();
        for _ in 0..20 {
            let next = backoff.next();
            assert!(next >= FIRST / 2 && next <= LONGEST);
        }
        assert!(backoff.next() >= LONGEST / 2);
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
