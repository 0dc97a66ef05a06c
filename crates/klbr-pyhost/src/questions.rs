//! The questions that an agent was asked lately, and what was in force: what a candidate is tried on.
//!
//! A bounded journal of files in the agent's folder, one for each slot. Not the ledger: losing it loses nothing but a
//! look back.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use klbr_core::policy::{Asked, Slot};

use crate::files::{self, Lasting};
use crate::typegen::all_slots;

/// The most that is kept of one slot.
const KEPT: usize = 32;

/// A question that is longer, in bytes of its JSON, is not kept.
const LONGEST: usize = 64 * 1024;

/// The questions of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Questions {
    folder: PathBuf,
}

impl Questions {
    /// Those in the folder of an agent.
    pub fn new(agent: &Path) -> Self {
        Questions { folder: agent.join("asked") }
    }

    fn path(&self, slot: Slot) -> PathBuf {
        self.folder.join(format!("{}.jsonl", slot.as_str()))
    }

    /// Adds some; each slot keeps its newest. Blocks.
    ///
    /// # Errors
    ///
    /// Fails as the disk fails.
    pub fn add(&self, asked: Vec<Asked>) -> io::Result<()> {
        let mut lines: BTreeMap<Slot, Vec<String>> = BTreeMap::new();
        for one in asked {
            let line = serde_json::to_string(&one).map_err(io::Error::other)?;
            if line.len() <= LONGEST {
                lines.entry(one.question.slot()).or_default().push(line);
            }
        }
        for (slot, new) in lines {
            let path = self.path(slot);
            let old = fs::read_to_string(&path).unwrap_or_default();
            let all: Vec<&str> = old.lines().chain(new.iter().map(String::as_str)).collect();
            let newest = &all[all.len().saturating_sub(KEPT)..];
            let text = newest.join("\n") + "\n";
            files::write_whole(&path, text.as_bytes(), Lasting::AsItComes)?;
        }
        Ok(())
    }

    /// The newest of each slot, at most `limit`, the oldest first. What cannot be read is passed over. Blocks.
    pub fn read(&self, limit: usize) -> Vec<Asked> {
        let mut asked = Vec::new();
        for slot in all_slots() {
            let text = fs::read_to_string(self.path(slot)).unwrap_or_default();
            let of_slot: Vec<Asked> =
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            asked.extend(of_slot[of_slot.len().saturating_sub(limit)..].iter().cloned());
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use klbr_core::policy::Question;

    use super::*;

    #[test]
    fn each_slot_keeps_its_newest_and_a_torn_line_is_passed_over() {
        let agent = tempfile::tempdir().unwrap();
        let questions = Questions::new(agent.path());
        assert_eq!(questions.read(9), []);
        let asked = |question: Question| Asked { answer: question.default_answer(), question };
        let wake = |waiting| asked(Question::Wake { waiting, configured: true });
        questions.add((0..20).map(wake).collect()).unwrap();
        let long = "x".repeat(LONGEST);
        let prompt = |text: &str| asked(Question::CompactPrompt { text: text.into() });
        let more = (20..40).map(wake).chain([prompt("x"), prompt(&long)]).collect();
        questions.add(more).unwrap();
        assert_eq!(questions.read(3), [wake(37), wake(38), wake(39), prompt("x")]);
        assert_eq!(questions.read(99).len(), KEPT + 1);
        fs::write(agent.path().join("asked/compact.prompt.jsonl"), "{\"question\":\n").unwrap();
        assert_eq!(questions.read(99).len(), KEPT);
    }
}
