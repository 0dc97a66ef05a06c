//! Plans: what happens in the world, drawn from a seed.

use fastrand::Rng;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The operator says something.
    Say,
    /// The operator commands: interrupt, stop, reset, compact, soul, or a decision about a held effect.
    Command(u8),
    /// Something comes from outside: directed or ambient, in one of a few conversations, or a job's report.
    Outside(u8),
    /// A command that is out is answered; the number chooses which and how.
    Answer(u64),
    /// A piece of a reply comes.
    Piece(u64),
    /// A command that was superseded is answered all the same.
    Late(u64),
    /// An observer reports, through some record and with some wishes.
    Report(u64),
    /// Time goes on, in milliseconds.
    Pass(u32),
    /// Time goes on to what is due next.
    Due,
    /// The clock is set back, in milliseconds.
    SetBack(u32),
    /// The process dies: before the next commit, after it, or between steps; restored from the number's choice
    /// of checkpoint.
    Crash(u64),
    /// The next commit fails.
    FailCommit,
    /// A mode, a memory or an instruction file is changed by the person.
    Set(u8),
}

/// Everything that happens in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the details are drawn from.
    pub seed: u64,
    /// What happens, in order.
    pub ops: Vec<Op>,
}

impl Plan {
    /// The plan that a seed makes.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let length = rng.usize(20..220);
        Plan { seed, ops: (0..length).map(|_| op(&mut rng)).collect() }
    }
}

fn op(rng: &mut Rng) -> Op {
    match rng.u32(0..100) {
        0..8 => Op::Say,
        8..12 => Op::Command(rng.u8(0..14)),
        12..24 => Op::Outside(rng.u8(..)),
        24..62 => Op::Answer(rng.u64(..)),
        62..68 => Op::Piece(rng.u64(..)),
        68..71 => Op::Late(rng.u64(..)),
        71..73 => Op::Report(rng.u64(..)),
        73..80 => Op::Pass(rng.u32(0..20_000)),
        80..90 => Op::Due,
        90..92 => Op::SetBack(rng.u32(0..100_000)),
        92..97 => Op::Crash(rng.u64(..)),
        97 => Op::FailCommit,
        _ => Op::Set(rng.u8(..)),
    }
}
