//! Nudges: what the harness itself says to the model, and when an idle agent is woken.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message that the harness itself makes, marked as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NudgeKind {
    /// The turn was addressed, has text and said nothing to that audience (`C-YLD-5`).
    Delivery,
    /// A turn that nobody asked for ended in text with neither wait nor mark.
    Silence,
    /// Nothing has happened for a while.
    Idle,
    /// A limit was reached; one more reply is taken (`C-YLD-6`).
    WrapUp,
    /// The conversation was summarised in the middle of a turn that no frame opened.
    Continue,
}

/// How long after the `yields`-th turn in a row without a wait an idle turn comes (`C-YLD-4`).
pub fn idle_delay(yields: u32) -> Duration {
    match yields {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs(30u64 << (n - 2).min(10)).min(Duration::from_secs(600)),
    }
}

/// What the built-in nudges say.
pub(crate) fn nudge_text(kind: NudgeKind, detail: &str) -> String {
    match kind {
        NudgeKind::Delivery => format!(
            "You wrote text, but text is your scratchpad and reached nobody. If you have an answer, \
             call {detail} now; if you have none, wait."
        ),
        NudgeKind::Silence => {
            "Your text reached nobody, and the turn is still open. Send something on purpose, mark what you \
             decided, or wait."
                .to_owned()
        }
        NudgeKind::Idle => format!(
            "Nothing has happened for {detail}. Carry on with something of your own, or wait for what comes."
        ),
        NudgeKind::WrapUp => format!(
            "{detail} Other actions will not be run in this turn any more: say what is done and what is not, \
             where it matters to someone, then wait."
        ),
        NudgeKind::Continue => {
            "The conversation up to here was summarised. Carry on where you were.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_turns_come_at_growing_distances() {
        let seconds: Vec<u64> = (1..9).map(|n| idle_delay(n).as_secs()).collect();
        assert_eq!(seconds, [0, 30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(idle_delay(u32::MAX).as_secs(), 600);
    }
}
