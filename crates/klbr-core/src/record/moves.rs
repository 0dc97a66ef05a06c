//! What a record does to the ledger, and what its kind is called.

use super::Record;
use crate::ids::EventId;
use crate::ledger::Fate;

impl Record {
    /// What it does to the ledger, in order.
    pub fn moves(&self) -> Vec<Move> {
        let all = |events: &[EventId], fate| events.iter().map(|&event| Move::One(event, fate)).collect();
        match self {
            Record::Admitted { event, held } => {
                vec![Move::One(event.id, if *held { Fate::Held } else { Fate::Waiting })]
            }
            Record::Reprioritised { event, .. } => vec![Move::One(*event, Fate::Waiting)],
            Record::Consumed { event } => vec![Move::One(*event, Fate::Consumed)],
            Record::Declined { event } => vec![Move::One(*event, Fate::Withdrawn)],
            Record::Folded { events } => all(events, Fate::Folded),
            Record::Withdrawn { events } => all(events, Fate::Withdrawn),
            Record::FrameMade { events, .. } => all(events, Fate::Framed),
            Record::DeadLettered { frame: Some(_), .. } => vec![Move::Framed(Fate::DeadLettered)],
            Record::TurnEnded { returned, .. } => {
                let mut moves = vec![Move::Framed(Fate::Shown)];
                moves.extend(all(returned, Fate::Waiting));
                moves
            }
            Record::DeadLettered { frame: None, .. }
            | Record::Aliased { .. }
            | Record::Marked { .. }
            | Record::PrefixMade { .. }
            | Record::SoulChanged { .. }
            | Record::Activated { .. }
            | Record::Reset
            | Record::CompactionWanted
            | Record::CompactionRequested { .. }
            | Record::Compacted { .. }
            | Record::CompactionFailed { .. }
            | Record::TurnStarted { .. }
            | Record::Nudged { .. }
            | Record::StepRequested { .. }
            | Record::PrefixBroken { .. }
            | Record::StepRetried { .. }
            | Record::StepSampled { .. }
            | Record::SamplingFailed { .. }
            | Record::SamplingAborted { .. }
            | Record::Called { .. }
            | Record::Intended { .. }
            | Record::Held { .. }
            | Record::Attempted { .. }
            | Record::Ended { .. }
            | Record::Yielded { .. }
            | Record::Settled { .. }
            | Record::Detached { .. }
            | Record::Receipt { .. }
            | Record::WaitEntered { .. }
            | Record::WaitEnded { .. }
            | Record::Decided { .. }
            | Record::ObserverAdvanced { .. }
            | Record::Scheduled { .. }
            | Record::ScheduleKept { .. }
            | Record::LateDropped { .. }
            | Record::ClockHeld { .. }
            | Record::Recovered => Vec::new(),
        }
    }

    /// The record's kind, as it is kept.
    pub fn kind(&self) -> &'static str {
        match self {
            Record::Admitted { .. } => "admitted",
            Record::Aliased { .. } => "aliased",
            Record::Reprioritised { .. } => "reprioritised",
            Record::Consumed { .. } => "consumed",
            Record::Declined { .. } => "declined",
            Record::Folded { .. } => "folded",
            Record::Withdrawn { .. } => "withdrawn",
            Record::Marked { .. } => "marked",
            Record::PrefixMade { .. } => "prefix_made",
            Record::SoulChanged { .. } => "soul_changed",
            Record::Activated { .. } => "activated",
            Record::Reset => "reset",
            Record::CompactionWanted => "compaction_wanted",
            Record::CompactionRequested { .. } => "compaction_requested",
            Record::Compacted { .. } => "compacted",
            Record::CompactionFailed { .. } => "compaction_failed",
            Record::FrameMade { .. } => "frame_made",
            Record::TurnStarted { .. } => "turn_started",
            Record::Nudged { .. } => "nudged",
            Record::StepRequested { .. } => "step_requested",
            Record::PrefixBroken { .. } => "prefix_broken",
            Record::StepRetried { .. } => "step_retried",
            Record::StepSampled { .. } => "step_sampled",
            Record::SamplingFailed { .. } => "sampling_failed",
            Record::SamplingAborted { .. } => "sampling_aborted",
            Record::Called { .. } => "called",
            Record::Intended { .. } => "intended",
            Record::Held { .. } => "held",
            Record::Attempted { .. } => "attempted",
            Record::Ended { .. } => "ended",
            Record::Yielded { .. } => "yielded",
            Record::Settled { .. } => "settled",
            Record::Detached { .. } => "detached",
            Record::Receipt { .. } => "receipt",
            Record::WaitEntered { .. } => "wait_entered",
            Record::WaitEnded { .. } => "wait_ended",
            Record::TurnEnded { .. } => "turn_ended",
            Record::DeadLettered { .. } => "dead_lettered",
            Record::Decided { .. } => "decided",
            Record::ObserverAdvanced { .. } => "observer_advanced",
            Record::Scheduled { .. } => "scheduled",
            Record::ScheduleKept { .. } => "schedule_kept",
            Record::LateDropped { .. } => "late_dropped",
            Record::ClockHeld { .. } => "clock_held",
            Record::Recovered => "recovered",
        }
    }
}

/// What one record does to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// One event has this fate now.
    One(EventId, Fate),
    /// Every event that is framed has this fate now.
    Framed(Fate),
}
