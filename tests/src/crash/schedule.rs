//! When each daemon of a home is killed, and what its client says meanwhile.

use std::time::Duration;

use klbr_core::runtime::probe::Point;

/// Records since the last checkpoint from which a daemon is to stand still where the next one comes up, which is after
/// 2,000: soon enough that no daemon before it writes one.
const CHECKPOINT_COMES_UP: u64 = 1_850;

/// The kills of one home.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    pub(super) home: u64,
    pub(super) lives: usize,
    pub(super) rng: fastrand::Rng,
    next_point: usize,
    randoms: usize,
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
        Schedule { seed, home, lives, rng, next_point, randoms: 0, checkpoints: 0 }
    }

    /// The kill of life `life`, when there are so many records.
    pub(super) fn kill(&mut self, life: usize, records: u64) -> Kill {
        // Killed there, it was not kept, and comes up again at once: its share is had in a row.
        if records >= CHECKPOINT_COMES_UP
            && self.checkpoints < (self.lives * 2 / 3).div_ceil(Point::ALL.len())
        {
            self.checkpoints += 1;
            return Kill::At(Point::CheckpointBeforeWrite, 1);
        }
        if self.randoms * 3 <= life {
            self.randoms += 1;
            let moment = Duration::from_millis(self.rng.u64(0..700));
            return if self.rng.bool() { Kill::After(moment) } else { Kill::AfterReady(moment) };
        }
        loop {
            let point = Point::ALL[self.next_point % Point::ALL.len()];
            self.next_point += 1;
            if point != Point::CheckpointBeforeWrite {
                return Kill::At(point, self.rng.u32(1..=3));
            }
        }
    }

    /// The point was not reached: a checkpoint has been written since, and the next is far away.
    pub(super) fn unreached(&mut self, point: Point) {
        if point == Point::CheckpointBeforeWrite {
            self.checkpoints = usize::MAX;
        }
    }
}
