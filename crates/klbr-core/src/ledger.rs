//! The ledger: where every admitted event is, term by term (`C-LEDGER`).
//!
//! Each term is counted from its own records. The sum is a check, never a way to compute a term.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What has become of one admitted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It waits to be shown.
    Waiting,
    /// A policy decision about it is outstanding.
    Held,
    /// It stands in the frame of the turn that runs.
    Framed,
    /// It was shown, in a turn that is over.
    Shown,
    /// It was counted in one line instead of being shown.
    Folded,
    /// Its source took it back before it was shown, or policy did not keep it.
    Withdrawn,
    /// It was a command and has been carried out.
    Consumed,
    /// The provider refused the message that showed it, for good.
    DeadLettered,
}

impl Fate {
    /// Every fate, in the order of the sum.
    pub const ALL: [Fate; 8] = [
        Fate::Waiting,
        Fate::Held,
        Fate::Framed,
        Fate::Shown,
        Fate::Folded,
        Fate::Withdrawn,
        Fate::Consumed,
        Fate::DeadLettered,
    ];

    /// The fate in one word, as the store and the API write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Waiting => "waiting",
            Fate::Held => "held",
            Fate::Framed => "framed",
            Fate::Shown => "shown",
            Fate::Folded => "folded",
            Fate::Withdrawn => "withdrawn",
            Fate::Consumed => "consumed",
            Fate::DeadLettered => "dead_lettered",
        }
    }
}

/// The counts of one agent's ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Every event that was ever acknowledged.
    pub admitted: u64,
    /// Waiting to be shown.
    pub waiting: u64,
    /// With a policy decision outstanding.
    pub held: u64,
    /// In the frame of the turn that runs.
    pub framed: u64,
    /// Shown, in a turn that is over.
    pub shown: u64,
    /// Counted in one line.
    pub folded: u64,
    /// Taken back by the source.
    pub withdrawn: u64,
    /// Commands carried out.
    pub consumed: u64,
    /// Refused by the provider for good.
    pub dead_lettered: u64,
}

impl Ledger {
    /// The count of one fate, to be set or read.
    pub fn term(&mut self, fate: Fate) -> &mut u64 {
        match fate {
            Fate::Waiting => &mut self.waiting,
            Fate::Held => &mut self.held,
            Fate::Framed => &mut self.framed,
            Fate::Shown => &mut self.shown,
            Fate::Folded => &mut self.folded,
            Fate::Withdrawn => &mut self.withdrawn,
            Fate::Consumed => &mut self.consumed,
            Fate::DeadLettered => &mut self.dead_lettered,
        }
    }

    /// Whether every admitted event is accounted for exactly once.
    pub fn balances(&self) -> bool {
        let mut copy = *self;
        self.admitted == Fate::ALL.iter().map(|&fate| *copy.term(fate)).sum::<u64>()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        write!(f, "admitted {} {}", self.admitted, if self.balances() { "=" } else { "≠" })?;
        for (n, fate) in Fate::ALL.into_iter().enumerate() {
            write!(f, "{} {} {}", if n == 0 { "" } else { " +" }, fate.as_str(), copy.term(fate))?;
        }
        Ok(())
    }
}
