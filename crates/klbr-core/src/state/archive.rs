//! What each summary stands for, found again in the records: the messages to the byte.
//!
//! Owns the walk over a life's records. Refuses to keep more than one range at a time: a life is long.

use super::{FoldError, State};
use crate::ids::Seq;
use crate::model::Message;
use crate::record::{Record, Stamped};
use crate::time::Timestamp;

/// A reader of a life's records, from the first on.
#[derive(Debug)]
pub struct Archive {
    state: State,
    /// The summary that the transcript begins with.
    standing: Option<u64>,
    since: Timestamp,
}

/// The range of a transcript that one summary stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The summary's number, from 1.
    pub number: u64,
    /// The record that swapped it in.
    pub seq: Seq,
    /// When the range began.
    pub since: Timestamp,
    /// When it was summarised.
    pub at: Timestamp,
    /// The summary that the range itself begins with, if it does: the edge to what lies before.
    pub parent: Option<u64>,
    /// The messages, as they were sent.
    pub messages: Vec<Message>,
    /// Whether their hash is the one that was recorded.
    pub is_intact: bool,
}

impl Default for Archive {
    fn default() -> Self {
        Self::new()
    }
}

impl Archive {
    /// Before the first record.
    pub fn new() -> Self {
        Archive { state: State::new(), standing: None, since: Timestamp(0) }
    }

    /// Takes the next record in, and answers with what it summarised, if it did.
    ///
    /// # Errors
    ///
    /// Fails when the record does not follow the ones before it.
    pub fn read(&mut self, stamped: &Stamped) -> Result<Option<Covered>, FoldError> {
        if self.state.seq == Seq(0) {
            self.since = stamped.at;
        }
        let covered = match &stamped.record {
            Record::Compacted { covers, covered, .. } => {
                let transcript = &self.state.transcript;
                let messages = transcript.messages().get(..*covers).unwrap_or_default().to_vec();
                let is_intact = transcript.chain_over(*covers) == *covered && messages.len() == *covers;
                Some((messages, is_intact))
            }
            _ => None,
        };
        self.state.apply(stamped)?;
        if matches!(stamped.record, Record::Reset) {
            self.standing = None;
            self.since = stamped.at;
        }
        Ok(covered.map(|(messages, is_intact)| {
            let number = self.state.summaries;
            let parent = self.standing.replace(number);
            let since = std::mem::replace(&mut self.since, stamped.at);
            Covered { number, seq: stamped.seq, since, at: stamped.at, parent, messages, is_intact }
        }))
    }
}
