//! What a summary does to the transcript.

use std::sync::Arc;

use super::{Compaction, State};
use crate::model::Message;
use crate::record::BreakCause;

impl State {
    /// Swaps the front of the transcript for its summary; the open turn's frames follow it verbatim (`C-PFX-2`).
    pub(super) fn swap_for_summary(
        &mut self,
        covers: usize,
        prompt: &Arc<str>,
        summary: &Arc<str>,
    ) -> Result<(), &'static str> {
        let old = self.transcript.messages();
        if covers > old.len() {
            return Err("it covers more than there is");
        }
        let mut messages = vec![
            Message::User { text: prompt.clone(), starts_turn: true },
            Message::Assistant(crate::model::AssistantMessage {
                text: summary.clone(),
                ..Default::default()
            }),
        ];
        let first = self.turn().map_or(covers, |turn| turn.first_message.min(covers));
        // The open turn's frames, and whatever stands after the range: one message of the user's at most.
        let (mut texts, mut rest) = (Vec::new(), &old[covers..]);
        for message in &old[first..covers] {
            if let Message::User { text, .. } = message {
                texts.push(&**text);
            }
        }
        while let [Message::User { text, .. }, others @ ..] = rest {
            texts.push(text);
            rest = others;
        }
        if !texts.is_empty() {
            messages.push(Message::User { text: texts.join("\n\n").into(), starts_turn: true });
        }
        messages.extend_from_slice(rest);
        // The summary and the request for it: a provider has said the one to the other.
        self.transcript.replace(messages, 2);
        let old_first = self.turn().map(|turn| turn.first_message);
        if let (Some(old_first), Ok(turn)) = (old_first, self.turn_mut()) {
            turn.first_message = if old_first < covers { 2 } else { 2 + old_first - covers };
        }
        // Between two steps every result that was given stands in front of the range's end.
        if let Some(last) = self.hygiene.last() {
            self.hygiene.compacted(last);
        }
        self.prefix.renew(BreakCause::Compaction);
        self.compaction = Compaction::default();
        self.still_open.clear();
        self.batches.clear();
        Ok(())
    }
}
