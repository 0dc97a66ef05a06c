//! The machine: what an agent does with what arrives.
//!
//! Sans I/O: inputs with the time in, records and commands out. Every family of transitions has its own
//! file; this one owns the way in and the way out.

mod admit;
mod asked;
mod attention;
mod calls;
mod cells;
mod compact;
mod control;
mod decide;
mod frame;
mod inner;
mod interrupt;
mod live;
mod observe;
mod open;
mod prompt;
mod render;
mod sampling;
mod wait;
mod yielding;

use std::sync::Arc;

pub use wait::{MAX_WAIT, wait_tool};

use crate::config::Config;
use crate::context::Answer;
use crate::ids::{Fence, Seq};
use crate::input::{Command, Input, Step};
use crate::ledger::Ledger;
use crate::record::{CallResult, Record, Stamped};
use crate::state::{FoldError, Phase, Stage, State};
use crate::time::Timestamp;

use live::{CompactionAsked, Live};

/// More moves than any one input can lead to; past it, something would go round for ever.
const MAX_MOVES: u32 = 100_000;

/// One agent: its durable state, and what only this process knows of it.
#[derive(Debug)]
pub struct Agent {
    config: Arc<Config>,
    state: State,
    live: Live,
    step: Step,
}

/// A history that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A record does not follow from the ones before it.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// A checkpoint cannot be read; the records without it can.
    #[error("the checkpoint cannot be read")]
    Checkpoint(#[source] serde_json::Error),
}

impl Agent {
    /// A new agent, or one restored from everything that was kept of it.
    ///
    /// The first input must be [`Input::Recovered`].
    ///
    /// # Errors
    ///
    /// Fails when the checkpoint or a record cannot be read.
    pub fn restore(
        config: Arc<Config>,
        checkpoint: Option<&[u8]>,
        records: &[Stamped],
    ) -> Result<Self, RestoreError> {
        let mut state = match checkpoint {
            Some(bytes) => serde_json::from_slice(bytes).map_err(RestoreError::Checkpoint)?,
            None => State::new(),
        };
        for record in records {
            state.apply(record)?;
        }
        Ok(Agent { config, state, live: Live::default(), step: Step::default() })
    }

    /// The state after the last record, for a checkpoint. Only valid once every polled step is committed.
    pub fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&self.state).expect("the state has only string and integer keys")
    }

    /// Takes in something that arrived at `now`.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        self.tell_time(now);
        match input {
            Input::Admit { ticket, event } => self.handle_admit(ticket, event),
            Input::Loaded { fence, bodies, facts } => self.handle_loaded(fence, bodies, *facts),
            Input::Delta { fence, delta } => self.handle_delta(fence, &delta),
            Input::Sampled { fence, sampled } => self.handle_sampled(fence, sampled),
            Input::SamplingFailed { fence, failure } => self.handle_sampling_failed(fence, failure),
            Input::Settled { fence, action, outcome } => self.handle_settled(fence, action, outcome),
            Input::Called { ticket, fence, caller, name, arguments } => {
                self.handle_called(ticket, fence, caller, name, arguments);
            }
            Input::Decided { fence, answer, elapsed } => self.handle_decided(fence, answer, elapsed),
            Input::Observed { observed } => self.handle_observed(*observed),
            Input::ModelFound { model, context_tokens } => self.handle_model_found(&model, context_tokens),
            Input::Deadline => {}
            Input::Recovered => self.handle_recovered(),
            Input::Shutdown => self.handle_shutdown(),
        }
        self.expire_decisions();
        let mut moves = 0_u32;
        while self.advance() {
            moves += 1;
            assert!(moves < MAX_MOVES, "the machine does not come to rest: {:?}", self.status());
        }
    }

    /// What must now become durable, and what may then be done; none when there is nothing.
    ///
    /// Steps come in order. The commands of one may be carried out when its records are committed.
    pub fn poll(&mut self) -> Option<Step> {
        let step = std::mem::take(&mut self.step);
        (!step.records.is_empty() || !step.commands.is_empty()).then_some(step)
    }

    /// When [`Input::Deadline`] is due, if nothing arrives before.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let phase = match &self.state.phase {
            Phase::Resting { .. } => self.live.idle_at,
            Phase::Waiting(wait) => Some(wait.until),
            Phase::Turn(turn) => match &turn.stage {
                Stage::Sampling { retry_at, .. } => *retry_at,
                Stage::Due | Stage::Acting { .. } => None,
            },
        };
        let batch = self.state.turn().is_none().then(|| self.live.batch_due()).flatten();
        // What is due and has not been done waits for something else, which will bring it about.
        let ahead = |due: &Timestamp| *due > self.live.now;
        let ageing = self.next_to_age().map(|(due, _)| due);
        [
            phase,
            batch,
            ageing,
            self.next_scheduled(),
            self.live.decision_deadline(),
            self.live.compaction_retry,
        ]
        .into_iter()
        .flatten()
        .filter(ahead)
        .min()
    }

    /// The number of the last record.
    pub fn seq(&self) -> Seq {
        self.state.seq
    }

    /// Whether a sampling with this fence is out whose pieces an operator may watch.
    pub fn shows(&self, fence: Fence) -> bool {
        self.live.sampling.as_ref().is_some_and(|sampling| sampling.fence == fence && !sampling.summary)
    }

    /// Whether no turn runs.
    pub fn is_between_turns(&self) -> bool {
        self.state.turn().is_none()
    }

    /// Whether attempts are out whose outcome is worth waiting for.
    pub fn has_running_attempts(&self) -> bool {
        !self.live.actions.is_empty()
    }

    /// The ledger after the last record.
    pub fn ledger(&self) -> Ledger {
        self.state.ledger
    }

    /// The state after the last record.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Does the most urgent thing that can be done now; false when there is nothing.
    fn advance(&mut self) -> bool {
        if self.live.stopping {
            return false;
        }
        if self.take_control() || self.preempt() || self.take_schedule() || self.age_attention() {
            return true;
        }
        match self.state.phase {
            Phase::Turn(_) => self.advance_turn(),
            Phase::Resting { .. } | Phase::Waiting(_) => self.advance_rest(),
        }
    }

    fn advance_turn(&mut self) -> bool {
        let Phase::Turn(turn) = &self.state.phase else { return false };
        match turn.stage {
            Stage::Due => self.advance_due(),
            Stage::Sampling { .. } => self.advance_sampling(),
            Stage::Acting { .. } => self.advance_calls(),
        }
    }

    fn handle_recovered(&mut self) {
        if self.state.seq.0 > 0 {
            self.record(Record::Recovered);
        }
        self.check_tools();
        if self.state.bound.is_some() {
            let (epoch, manifest) = (self.state.epoch, self.state.manifest.clone());
            self.command(Command::Activate { epoch, manifest });
        }
        self.recover_open_effects();
        let held: Vec<_> = self.state.inbox.held().cloned().collect();
        for header in held {
            self.ask_about(&header);
        }
    }

    fn handle_model_found(&mut self, model: &Arc<str>, context_tokens: Option<u64>) {
        Arc::make_mut(&mut self.config).model_found(model, context_tokens);
        // What was small enough for the context as it was taken to be may not be for this one.
        self.live.compaction = CompactionAsked::default();
    }

    /// Moves time on. It never goes back: a clock set back holds it still, and that is recorded (`C-TIME`).
    fn tell_time(&mut self, now: Timestamp) {
        let held = now < self.live.now || now < self.state.now;
        if held && !self.live.clock_held && self.state.now.since(now).as_millis() > 1000 {
            self.record(Record::ClockHeld { observed: now });
        }
        self.live.clock_held = held;
        self.live.now = self.live.now.max(self.state.now).max(now);
    }

    fn now(&self) -> Timestamp {
        self.live.now
    }

    /// Makes something a fact: folds it in, and hands it out to be committed.
    fn record(&mut self, record: Record) {
        let stamped = Stamped { seq: self.state.seq.next(), at: self.live.now.max(self.state.now), record };
        let folded = self.state.apply(&stamped);
        debug_assert!(folded.is_ok(), "{folded:?}");
        self.step.records.push(stamped);
    }

    fn command(&mut self, command: Command) {
        self.step.commands.push(command);
    }

    fn fence(&mut self) -> Fence {
        self.live.last_fence = self.live.last_fence.next();
        self.live.last_fence
    }

    /// Records that an answer came too late to count.
    fn drop_late(&mut self, what: impl Into<Arc<str>>) {
        self.record(Record::LateDropped { what: what.into() });
    }

    /// Shapes an answer as it is inserted now; every result of an agent has its own number, for ever.
    fn result(&self, answer: &Answer) -> CallResult {
        let hygiene = &self.state.hygiene;
        hygiene.plan(hygiene.next_id(), answer, &self.config.results).into()
    }
}
