//! Compaction: the one deliberate break of the transcript, lossless behind it (`C-PFX-2`).

use std::sync::Arc;

use super::Agent;
use super::live::{CompactionAsked, Then};
use super::render;
use crate::context::stub;
use crate::input::Command;
use crate::model::{Failure, Message, Parameters, Sampled, Usage};
use crate::policy::{Question, Slot};
use crate::record::Record;
use crate::state::Phase;

/// Tries of one summary before it is given up, or the last resort is taken.
const MAX_ATTEMPTS: u32 = 3;

/// Fewer messages are no summary's worth.
const MIN_COVERED: usize = 3;

/// What the request for a summary says, unless policy says otherwise.
const PROMPT: &str = "The conversation so far is about to be replaced by a summary, because it takes up most of \
your context. Write that summary now, as plain text and without calling anything. Keep what you will need: who is \
who and what each of them wants, what was promised and to whom, what is under way and where it stands, what was \
decided and why, what was learnt, names, numbers and paths exactly as they are, and what you meant to do next. \
Leave out what is settled and will not matter again. Nothing is lost: all of it stays in your history, and \
history_search finds it.";

impl Agent {
    /// At a boundary: asks for a summary when one is wanted, or when the budget says so.
    pub(super) fn advance_summary(&mut self) -> bool {
        if let Some(request) = &self.state.compaction.requested {
            if self.live.sampling.is_some() {
                return false;
            }
            let (covers, prompt, model) = (request.covers, request.prompt.clone(), request.model.clone());
            self.sample_summary(covers, prompt, model);
            return true;
        }
        let asked = [Then::Compact, Then::Keep, Then::AskForSummary];
        let busy = asked.into_iter().any(|one| self.live.is_asking(one));
        if busy || self.live.loading.is_some() {
            return false;
        }
        if self.serves_operator() {
            // The operator's turn runs on the reserve; only what would not fit at all is swapped first.
            let full = self.does_not_fit() && self.can_summarise();
            if full {
                self.last_resort("the next request would not have fit");
            }
            return full;
        }
        if self.state.compaction.wanted {
            if !self.can_summarise() {
                self.record(Record::CompactionFailed {
                    why: "there is too little to summarise".into(),
                    again: false,
                });
                return true;
            }
            if self.live.compaction_retry.is_some_and(|due| due > self.now()) {
                return false;
            }
            self.live.compaction_retry = None;
            let turns = self.cuts().len() as u32;
            if turns > 0 && self.live.keep.is_none() && self.is_bound(Slot::CompactKeep) {
                let messages = self.coverable() as u32;
                self.ask(Question::CompactKeep { messages, turns }, Then::Keep);
                return true;
            }
            self.ask(Question::CompactPrompt { text: PROMPT.into() }, Then::AskForSummary);
            return true;
        }
        self.watch_budget()
    }

    /// Asks policy whether the conversation has grown too large, once for each length it has.
    fn watch_budget(&mut self) -> bool {
        let transcript = &self.state.transcript;
        let length = transcript.messages().len();
        let used = transcript.tokens(0);
        let threshold = self.usable_tokens() / 4 * 3;
        let looked = self.live.compaction == CompactionAsked::At(length);
        let small = transcript.bytes() < self.state.compaction.not_before_bytes;
        if looked || small || used < threshold.min(self.usable_tokens() / 2) || !self.can_summarise() {
            return false;
        }
        self.live.compaction = CompactionAsked::At(length);
        self.ask(Question::CompactWhen { used, threshold }, Then::Compact);
        true
    }

    pub(super) fn want_compaction(&mut self) {
        self.record(Record::CompactionWanted);
    }

    /// Whether there is a front of the transcript that a summary could stand for.
    pub(super) fn can_summarise(&self) -> bool {
        self.coverable() >= MIN_COVERED
    }

    /// How many messages a summary made now would stand for. A wait's call has no result yet, so that the turn that
    /// waits stays as it is, and where it needs what comes before it, everything does.
    fn coverable(&self) -> usize {
        match self.state.phase {
            Phase::Waiting(_) => {
                let transcript = &self.state.transcript;
                let opening = transcript.last_opening();
                if stub::are_whole(results(&transcript.messages()[opening..])) { opening } else { 0 }
            }
            Phase::Resting { .. } | Phase::Turn(_) => self.state.transcript.answered_len(),
        }
    }

    /// Where a range could end so that the turns behind it stay as they are, the shortest rest first. Nothing that
    /// stays names what would be gone.
    fn cuts(&self) -> Vec<usize> {
        let (messages, covers) = (self.state.transcript.messages(), self.coverable());
        let opens = |at: &usize| matches!(messages[*at], Message::User { starts_turn: true, .. });
        let cuts = (MIN_COVERED..covers).rev().filter(opens);
        let is_whole = |at: &usize| stub::are_whole(results(&messages[*at..]));
        cuts.take_while(is_whole).collect()
    }

    /// Whether the operator waits for the turn that runs.
    fn serves_operator(&self) -> bool {
        self.state.turn().is_some_and(|turn| {
            turn.events.iter().any(|header| header.source.kind == crate::event::SourceKind::Operator)
        })
    }

    /// The context less what the reply needs.
    fn usable_tokens(&self) -> u64 {
        let learnt = self.state.transcript.limit(&self.model_at_hand());
        let context = learnt.unwrap_or(u64::MAX).min(self.config.context_tokens);
        let reply = self.config.max_output_tokens.map_or(context / 8, u64::from);
        context.saturating_sub(reply.min(context / 2))
    }

    /// Whether the next request would not fit, by the estimate or because the provider has just said so.
    fn does_not_fit(&self) -> bool {
        self.state.compaction.overflowed || self.state.transcript.tokens(0) > self.usable_tokens()
    }

    pub(super) fn request_summary(&mut self, prompt: Arc<str>) {
        let keep = self.live.keep.take().unwrap_or(0) as usize;
        let cut = keep.checked_sub(1).and_then(|newest| self.cuts().get(newest).copied());
        let covers = cut.unwrap_or_else(|| self.coverable());
        let prompt = render::instructions(&prompt);
        let model = self.state.transcript.model.clone().unwrap_or_else(|| self.config.model.clone());
        self.record(Record::CompactionRequested {
            attempt: self.state.compaction.attempts + 1,
            covers,
            prompt: prompt.clone(),
            model: model.clone(),
        });
        self.sample_summary(covers, prompt, model);
    }

    fn sample_summary(&mut self, covers: usize, prompt: Arc<str>, model: Arc<str>) {
        // As the last turn asked, whatever is configured since: a template may write the effort in front.
        let transcript = &self.state.transcript;
        let effort = transcript.model.as_ref().map_or(&self.config.effort, |_| &transcript.effort).clone();
        let parameters =
            Parameters { effort, max_output_tokens: self.config.max_output_tokens, ..Parameters::default() };
        self.sample(model, parameters, Some((covers, prompt)));
    }

    /// Takes a summary, if the reply is one. Calls in it are not run (`C-YLD-6`).
    pub(super) fn take_summary(&mut self, sampled: &Sampled) {
        let Some(request) = self.state.compaction.requested.clone() else { return };
        let text = sampled.text.trim();
        if text.is_empty() {
            return self.give_up_or_retry("the summary was empty", false);
        }
        let summary = self.with_reads(text);
        if summary.len() + request.prompt.len() >= self.state.transcript.bytes_of(request.covers) {
            return self.give_up_or_retry("the summary was longer than what it stands for", false);
        }
        self.swap(request.covers, request.prompt, summary, Some(request.model), sampled.usage);
    }

    pub(super) fn summary_failed(&mut self, failure: &Failure) {
        let must = matches!(failure, Failure::ContextOverflow { .. });
        self.give_up_or_retry(&failure.to_string(), must);
    }

    /// Another try at the next boundary, a bounded number of times; then the last resort if nothing else
    /// fits, else the transcript stays as it is until it has grown.
    fn give_up_or_retry(&mut self, why: &str, must: bool) {
        let attempts = self.state.compaction.attempts;
        let again = !must && attempts < MAX_ATTEMPTS;
        self.record(Record::CompactionFailed { why: why.into(), again });
        if again {
            self.live.compaction_retry =
                Some(self.now() + self.config.limits.backoff_first.saturating_mul(1 << attempts.min(6)));
        } else if must || self.does_not_fit() {
            self.last_resort(why);
        }
    }

    /// Drops a request for a summary; nothing changes, and it is tried again at the next boundary.
    pub(super) fn abandon_summary(&mut self, why: &str) {
        if let Some(sampling) = self.live.sampling.take_if(|sampling| sampling.summary) {
            self.command(Command::DropSampling { fence: sampling.fence });
        }
        self.record(Record::CompactionFailed { why: why.into(), again: true });
    }

    /// Takes the front of the transcript out without a summary, and says so.
    fn last_resort(&mut self, why: &str) {
        let covers = self.coverable();
        let text = format!(
            "{covers} messages stood here and no longer fit; no summary of them could be made ({why}). All of \
             them are kept: history_search, history_expand and recall find them."
        );
        let summary = self.with_reads(&text);
        self.swap(covers, render::instructions(PROMPT), summary, None, None);
    }

    /// A summary with what the harness adds: how to see what it stands for, and the reads among it.
    fn with_reads(&self, summary: &str) -> Arc<str> {
        let number = self.state.summaries + 1;
        let mut text = format!(
            "{summary}\n\n(Summary {number}: history_expand shows every message that it stands for.)"
        );
        let hygiene = &self.state.hygiene;
        if let Some(table) = hygiene.last().and_then(|last| hygiene.table(last, &self.config.results)) {
            text.push_str("\n\n");
            text.push_str(&table);
        }
        text.into()
    }

    fn swap(
        &mut self,
        covers: usize,
        prompt: Arc<str>,
        summary: Arc<str>,
        model: Option<Arc<str>>,
        usage: Option<Usage>,
    ) {
        debug_assert!(covers <= self.coverable(), "what has no answer yet is not summarised");
        let covered = self.state.transcript.chain_over(covers);
        let number = self.state.summaries + 1;
        self.record(Record::Compacted { number, covers, covered, prompt, summary, model, usage });
    }
}

/// The results among messages.
fn results(messages: &[Message]) -> impl Iterator<Item = &str> + Clone {
    messages.iter().filter_map(|message| match message {
        Message::Tool { text, .. } => Some(&**text),
        Message::User { .. } | Message::Assistant(_) => None,
    })
}
