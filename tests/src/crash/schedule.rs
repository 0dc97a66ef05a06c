//! When each daemon of a home is killed, and what its client says meanwhile.

use std::time::Duration;

use klbr_core::runtime::probe::Point;

use super::World;

/// Records since the last checkpoint from which a daemon is to stand still where the next one comes up, which is after
/// 2,000: soon enough that no daemon before it writes one.
const CHECKPOINT_COMES_UP: u64 = 1_850;

/// The kills of one home.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) world: World,
    pub(super) seed: u64,
    pub(super) home: u64,
    pub(super) lives: usize,
    pub(super) rng: fastrand::Rng,
    places: Vec<Place>,
    next_place: usize,
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
    /// At the n-th passing of a place.
    At(Place, u32),
}

/// Where a daemon is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where it stands still itself.
    Point(Point),
    /// While Discord does not answer it.
    Held(Held),
}

/// What Discord holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A message that was asked for, before it is made.
    Asked,
    /// The answer to one that was made: created and unacknowledged.
    Made,
    /// A channel's history.
    History,
}

impl Held {
    const ALL: [Held; 3] = [Held::Asked, Held::Made, Held::History];
}

impl Place {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Place::Point(point) => point.as_str(),
            Place::Held(Held::Asked) => "message-asked-for-and-held",
            Place::Held(Held::Made) => "message-made-and-unacknowledged",
            Place::Held(Held::History) => "history-asked-for-and-held",
        }
    }
}

impl Schedule {
    pub(super) fn new(world: World, seed: u64, home: u64, lives: usize) -> Schedule {
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ home.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut rng = fastrand::Rng::with_seed(mixed);
        let points = Point::ALL.into_iter().filter(|point| *point != Point::CheckpointBeforeWrite);
        let mut places: Vec<Place> = points.map(Place::Point).collect();
        let mut checkpoints = 0;
        if world == World::Discord {
            places.extend(Held::ALL.map(Place::Held));
            // What the matrix is about here comes twice in a round.
            places.push(Place::Held(Held::Made));
            checkpoints = usize::MAX;
        }
        let next_place = rng.usize(..places.len());
        Schedule { world, seed, home, lives, rng, places, next_place, randoms: 0, checkpoints }
    }

    /// The kill of life `life`, when there are so many records.
    pub(super) fn kill(&mut self, life: usize, records: u64) -> Kill {
        // Killed there, it was not kept, and comes up again at once: its share is had in a row.
        if records >= CHECKPOINT_COMES_UP
            && self.checkpoints < (self.lives * 2 / 3).div_ceil(Point::ALL.len())
        {
            self.checkpoints += 1;
            return Kill::At(Place::Point(Point::CheckpointBeforeWrite), 1);
        }
        if self.randoms * 3 <= life {
            self.randoms += 1;
            let moment = Duration::from_millis(self.rng.u64(0..700));
            return if self.rng.bool() { Kill::After(moment) } else { Kill::AfterReady(moment) };
        }
        let place = self.places[self.next_place % self.places.len()];
        self.next_place += 1;
        Kill::At(place, self.rng.u32(1..=3))
    }

    /// The place was not reached: a checkpoint has been written since, and the next is far away.
    pub(super) fn unreached(&mut self, place: Place) {
        if place == Place::Point(Point::CheckpointBeforeWrite) {
            self.checkpoints = usize::MAX;
        }
    }
}
