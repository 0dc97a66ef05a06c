//! The heartbeat of a process that has nothing to do: whether it would hear a call if there were one.
//!
//! It is asked on the thread on which calls run, and only while none is out: a call has a deadline of its own.

use std::time::Duration;

use tokio::time::Instant;

/// How a process is felt for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    /// How long it may be idle before it is asked.
    pub(crate) every: Duration,
    /// How long it may take to answer.
    pub(crate) patience: Duration,
}

/// What is to be done when the pulse's time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Ask, with this number.
    Ask(u64),
    /// It has not answered.
    Missed,
    /// Nothing.
    Rest,
}

/// One process's heartbeat.
#[derive(Debug)]
pub(crate) struct Heart {
    pulse: Pulse,
    number: u64,
    is_asked: bool,
    at: Instant,
}

impl Heart {
    pub(crate) fn new(now: Instant, pulse: Pulse) -> Self {
        Heart { pulse, number: 0, is_asked: false, at: now + pulse.every }
    }

    /// When it is to be looked at next.
    pub(crate) fn due(&self) -> Instant {
        self.at
    }

    /// Its time has come.
    pub(crate) fn beat(&mut self, now: Instant, is_idle: bool) -> Beat {
        if now < self.at {
            return Beat::Rest;
        }
        if self.is_asked {
            return Beat::Missed;
        }
        if !is_idle {
            self.at = now + self.pulse.every;
            return Beat::Rest;
        }
        (self.number, self.is_asked, self.at) = (self.number + 1, true, now + self.pulse.patience);
        Beat::Ask(self.number)
    }

    /// It answered a beat.
    pub(crate) fn answered(&mut self, now: Instant, number: u64) {
        if self.is_asked && number == self.number {
            (self.is_asked, self.at) = (false, now + self.pulse.every);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_only_when_idle_and_missed_only_when_asked() {
        let (every, patience) = (Duration::from_secs(5), Duration::from_secs(3));
        let mut now = Instant::now();
        let mut heart = Heart::new(now, Pulse { every, patience });
        assert_eq!(heart.beat(now, true), Beat::Rest);
        now += every;
        assert_eq!(heart.beat(now, false), Beat::Rest, "a call is out");
        now += every;
        assert_eq!(heart.beat(now, true), Beat::Ask(1));
        heart.answered(now, 7);
        heart.answered(now, 1);
        now += every;
        assert_eq!(heart.beat(now, true), Beat::Ask(2));
        heart.answered(now, 1);
        assert_eq!(heart.due(), now + patience, "an older answer is none");
        assert_eq!(heart.beat(now + patience, false), Beat::Missed);
    }
}
