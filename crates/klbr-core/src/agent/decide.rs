//! Decisions: a question goes to the slot's owner if there is one, else to the built-in default.
//!
//! Nothing here waits: a bound slot's answer is an input like any other, and admission, preemption and
//! shutdown go on without it.

use std::time::Duration;

use super::Agent;
use super::live::{Batch, Judged, Pending, Plan, Purpose, Then};
use crate::hash::Hash;
use crate::ids::{Epoch, Fence};
use crate::input::Command;
use crate::policy::{Answer, Bindings, HookFailure, Question, Slot, Verdict};
use crate::record::Record;
use crate::time::Timestamp;

impl Agent {
    /// Asks a question; the answer, whenever it comes, goes to `then`.
    pub(super) fn ask(&mut self, question: Question, then: Then) {
        let (epoch, bound) = self.in_force(question.slot());
        let Some(&budget) = bound.get(&question.slot()) else {
            let answer = question.default_answer();
            self.note_asked(&question, &answer);
            return self.decided(then, answer);
        };
        let fence = self.fence();
        let asked = self.now();
        let deadline = asked + budget;
        self.command(Command::Decide { fence, epoch, question: question.clone(), deadline });
        self.live.deciding.insert(fence, Pending { question, then, asked, deadline });
    }

    /// Whether a slot has an owner.
    pub(super) fn is_bound(&self, slot: Slot) -> bool {
        self.in_force(slot).1.contains_key(&slot)
    }

    /// What a question of this slot is decided under: a turn keeps what it began with, so that no action is
    /// judged by two epochs.
    fn in_force(&self, slot: Slot) -> (Epoch, &Bindings) {
        let (epoch, bound) = match self.state.turn().filter(|_| slot.is_of_a_turn()) {
            Some(turn) => (turn.epoch, &turn.bound),
            None => (self.state.epoch, &self.state.bound),
        };
        (epoch, bound.as_deref().unwrap_or(&self.config.bound))
    }

    pub(super) fn handle_decided(
        &mut self,
        fence: Fence,
        answer: Result<Answer, HookFailure>,
        elapsed: Duration,
    ) {
        match self.live.deciding.remove(&fence) {
            Some(pending) => self.settle_decision(pending, answer, elapsed),
            None => self.drop_late("a decision"),
        }
    }

    /// Decides by default, or holds, what its owner has not decided in time.
    pub(super) fn expire_decisions(&mut self) {
        let now = self.now();
        let due = |deadline: Timestamp| deadline <= now;
        while let Some(fence) =
            self.live.deciding.iter().find(|(_, pending)| due(pending.deadline)).map(|(fence, _)| *fence)
        {
            if let Some(pending) = self.live.deciding.remove(&fence) {
                let elapsed = now.since(pending.asked);
                self.settle_decision(pending, Err(HookFailure::Deadline), elapsed);
            }
        }
    }

    fn settle_decision(&mut self, pending: Pending, answer: Result<Answer, HookFailure>, elapsed: Duration) {
        let Pending { question, then, .. } = pending;
        let checked = answer.and_then(|answer| match question.check(&answer) {
            Ok(()) => Ok(answer),
            Err(reason) => Err(HookFailure::Invalid { reason: reason.into() }),
        });
        let (answer, failure) = match checked {
            Ok(answer) => (answer, None),
            Err(failure @ HookFailure::Held { .. }) if question.slot() == Slot::DeliveryFormat => {
                let reason = format!("{} could not word it: {failure}", question.slot().as_str());
                (Answer::Verdict(Verdict::Hold { reason: reason.into() }), Some(failure))
            }
            Err(failure) if question.slot().is_required() => {
                let reason = format!("{} could not decide: {failure}", question.slot().as_str());
                (Answer::Verdict(Verdict::Hold { reason: reason.into() }), Some(failure))
            }
            Err(failure) => (question.default_answer(), Some(failure)),
        };
        self.note_asked(&question, &answer);
        let bytes = serde_json::to_vec(&question).expect("a question has only string keys");
        self.record(Record::Decided {
            slot: question.slot(),
            question: Hash::of(&bytes),
            answer: Some(answer.clone()),
            failure,
            elapsed,
        });
        self.decided(then, answer);
    }

    /// Goes on with an answer that has passed its question's check.
    fn decided(&mut self, then: Then, answer: Answer) {
        match (then, answer) {
            (Then::Prioritise(event), Answer::Priority(priority)) => self.prioritise(event, priority),
            (Then::Accept(event), Answer::Yes(accepted)) => self.accept(event, accepted),
            (Then::Word(fence, part), Answer::Text(text)) => self.worded(fence, part, text),
            (Then::Limit, Answer::Count(steps)) => self.live.step_limit = Some(steps),
            (Then::Shape(action), Answer::Text(text)) => self.shape(action, text),
            (Then::Age(event), Answer::Yes(ages)) => self.age(event, ages),
            (Then::DelayBatch, Answer::Delay { millis }) => {
                let oldest = self.oldest_ambient().unwrap_or(self.now());
                self.live.batch = Batch::Until(oldest + Duration::from_millis(millis));
            }
            (Then::Wake, Answer::Yes(wake)) => {
                self.live.batch = if wake { Batch::Wakes } else { Batch::LeftAlone };
            }
            (Then::ScheduleIdle, Answer::Delay { millis }) => {
                self.schedule_idle(Duration::from_millis(millis))
            }
            (Then::Nudge(kind), Answer::Text(text)) => self.nudge(kind, text),
            (Then::Open(cause), Answer::Plan { model, effort }) => {
                self.live.plan = Some(Plan { model, effort });
                self.choose(cause);
            }
            (Then::Select(cause), Answer::Events(events)) => {
                self.live.chosen = Some(events.into_iter().collect());
                self.load(Purpose::Open(cause));
            }
            (Then::Keep, Answer::Count(turns)) => self.live.keep = Some(turns),
            (Then::Format(action), Answer::Text(arguments)) => {
                if let (Some(judged), Some(arguments)) = (self.live.judged.get_mut(&action), arguments) {
                    *judged = Judged { arguments, formatted: true };
                }
            }
            (Then::Review(action) | Then::Format(action), Answer::Verdict(verdict)) => {
                self.judge(action, verdict)
            }
            (Then::Compact, Answer::Yes(true)) => self.want_compaction(),
            (Then::Compact, Answer::Yes(false)) => {}
            (Then::AskForSummary, Answer::Text(Some(prompt))) => self.request_summary(prompt),
            // `Question::check` lets no other pair through.
            (_, _) => {}
        }
    }
}
