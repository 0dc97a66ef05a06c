//! The questions that were decided lately: what a candidate for policy is tried on. Can be lost.

use std::collections::{BTreeMap, VecDeque};

use super::Agent;
use crate::policy::{Answer, Asked, Question, Slot};

/// The newest of each slot.
#[derive(Debug, Default)]
pub(super) struct Lately(BTreeMap<Slot, VecDeque<Asked>>);

impl Agent {
    /// Takes a decision down, as far as the configuration wants that.
    pub(super) fn note_asked(&mut self, question: &Question, answer: &Answer) {
        let most = self.config.questions_kept;
        if most == 0 {
            return;
        }
        let of_slot = self.live.lately.0.entry(question.slot()).or_default();
        of_slot.push_back(Asked { question: question.clone(), answer: answer.clone() });
        while of_slot.len() > most {
            of_slot.pop_front();
        }
    }

    /// Takes down what is not asked of anybody, because nobody owns its slot.
    pub(super) fn note_default(&mut self, question: &Question) {
        self.note_asked(question, &question.default_answer());
    }

    /// Hands out the questions that were decided since the last time.
    pub fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.live.lately.0).into_values().flatten().collect()
    }
}
