//! When each daemon of a home is killed, and what its client says meanwhile.

use std::time::Duration;

use klbr_core::runtime::probe::Point;

/// Records since the last checkpoint from which the next one comes up.
const CHECKPOINT_COMES_UP: u64 = 2_000;

/// The kills of one home.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    pub(super) home: u64,
    pub(super) lives: usize,
    pub(super) rng: fastrand::Rng,
    next_point: usize,
    checkpoints: usize,
}

/// A kill.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kill {
    /// So long after the process was started.
    After(Duration),
    /// So long after it was ready.
    AfterReady(Duration),
    /// At the n-th passing of a point.
    At(Point, u32),
}

impl Schedule {
    pub(super) fn new(seed: u64, home: u64, lives: usize) -> Schedule {
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ home.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut rng = fastrand::Rng::with_seed(mixed);
        let next_point = rng.usize(..Point::ALL.len());
        Schedule { seed, home, lives, rng, next_point, checkpoints: 0 }
    }

    /// The kill of life `life`, when so many records stand after the last checkpoint.
    pub(super) fn kill(&mut self, life: usize, records: u64) -> Kill {
        if life.is_multiple_of(3) {
            let millis = self.rng.u64(0..700);
            return match self.rng.bool() {
                true => Kill::After(Duration::from_millis(millis)),
                false => Kill::AfterReady(Duration::from_millis(millis)),
            };
        }
        // Killed there, it was not kept, and comes up again: until its share is reached.
        let share = (self.lives * 2 / 3).div_ceil(Point::ALL.len());
        if records >= CHECKPOINT_COMES_UP && self.checkpoints < share {
            self.checkpoints += 1;
            return Kill::At(Point::CheckpointBeforeWrite, 1);
        }
        loop {
            let point = Point::ALL[self.next_point % Point::ALL.len()];
            self.next_point += 1;
            if point != Point::CheckpointBeforeWrite {
                return Kill::At(point, self.rng.u32(1..=3));
            }
        }
    }
}
