//! The driver: the one loop that stands between an agent and the world, and the one place that waits.
//!
//! It feeds the machine, commits what the machine says, and only then does what the machine asks.

mod admission;
mod dispatch;
mod tasks;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot};

use super::actions::Called;
use super::channel::Channel;
use super::clock::Clock;
use super::handle::Request;
use super::model::Model;
use super::policy::Policy;
use super::probe::{Point, Probe};
use super::store::{Checkpoint, Commit, Store, StoreError};
use super::surroundings::Surroundings;
use super::tool::AnyTool;
use crate::action::Answered;
use crate::agent::{Agent, RestoreError};
use crate::config::Config;
use crate::ids::Seq;
use crate::input::{Input, Step};
use crate::record::{Record, Stamped};
use crate::update::Update;

use admission::Ticket;
use tasks::Tasks;

/// Most requests that one commit takes in.
const MAX_BATCH: usize = 1024;

/// Records after which a checkpoint is kept, when the agent has time for it.
const CHECKPOINT_EVERY: u64 = 2_000;

/// How long an orderly stop waits for attempts that cannot be cancelled.
const DRAIN: Duration = Duration::from_secs(3);

/// How long a failed store is left alone before the state is restored from it.
const RESTORE_PAUSE: Duration = Duration::from_millis(500);

/// What an agent is driven with.
pub(super) struct Ports {
    pub(super) config: Arc<Config>,
    pub(super) store: Arc<dyn Store>,
    pub(super) model: Arc<dyn Model>,
    pub(super) tools: HashMap<Arc<str>, Arc<dyn AnyTool>>,
    pub(super) channels: HashMap<Arc<str>, Arc<dyn Channel>>,
    pub(super) policy: Option<Arc<dyn Policy>>,
    pub(super) surroundings: Option<Arc<dyn Surroundings>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) probe: Option<Arc<dyn Probe>>,
}

/// Why an agent could not be started, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What its store holds cannot be read.
    #[error("the agent's history cannot be read")]
    Restore(#[from] RestoreError),
}

/// What reaches the driver from its own tasks.
pub(super) enum Arrival {
    /// Something for the machine.
    Input(Input),
    /// A running action calls another one.
    Called(Box<Called>),
    /// The store could not be read.
    StoreFailed(StoreError),
}

pub(super) struct Driver {
    ports: Ports,
    agent: Agent,
    requests: mpsc::Receiver<Request>,
    arrivals: mpsc::Receiver<Arrival>,
    tasks: Tasks,
    updates: broadcast::Sender<Arc<Update>>,
    tickets: HashMap<u64, Ticket>,
    /// Running actions that wait for the answer to a call of theirs.
    callers: HashMap<u64, oneshot::Sender<Answered>>,
    last_ticket: u64,
    checkpointed: Seq,
    /// Why the store cannot be written, while that is so (`C-REC-4`).
    poison: Option<String>,
    stopping: Option<oneshot::Sender<()>>,
}

impl Driver {
    /// Restores the agent.
    pub(super) async fn restore(
        ports: Ports,
        requests: mpsc::Receiver<Request>,
        updates: broadcast::Sender<Arc<Update>>,
    ) -> Result<Self, RunError> {
        let (agent, checkpointed) = restore(&ports).await?;
        let (sender, arrivals) = mpsc::channel(1024);
        Ok(Driver {
            ports,
            agent,
            requests,
            arrivals,
            tasks: Tasks::new(sender),
            updates,
            tickets: HashMap::new(),
            callers: HashMap::new(),
            last_ticket: 0,
            checkpointed,
            poison: None,
            stopping: None,
        })
    }

    /// Drives the agent until it is told to stop or nobody holds a handle any more.
    pub(super) async fn run(mut self) {
        self.handle(Input::Recovered);
        let mut requests = Vec::new();
        let mut arrivals = Vec::new();
        while self.stopping.is_none() {
            self.flush().await;
            if self.poison.is_some() {
                self.wait_for_store().await;
                continue;
            }
            let deadline = self.agent.next_deadline();
            let clock = self.ports.clock.clone();
            tokio::select! {
                biased;
                count = self.requests.recv_many(&mut requests, MAX_BATCH) => {
                    if count == 0 {
                        break;
                    }
                    self.take_requests(requests.drain(..)).await;
                }
                _ = self.arrivals.recv_many(&mut arrivals, MAX_BATCH) => {
                    arrivals.drain(..).for_each(|arrival| self.take_arrival(arrival));
                }
                Some(input) = self.tasks.next_panic() => self.handle(input),
                () = sleep(&*clock, deadline), if deadline.is_some() => {
                    if deadline.is_some_and(|due| due <= clock.now()) {
                        self.handle(Input::Deadline);
                    }
                }
            }
        }
        self.stop().await;
    }

    fn handle(&mut self, input: Input) {
        self.agent.handle(self.ports.clock.now(), input);
    }

    fn take_arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Input(Input::Delta { fence, delta }) => {
                if self.agent.shows(fence) {
                    let update = Update::live(self.ports.clock.now(), delta.clone());
                    // Nobody listening is no failure.
                    let _ = self.updates.send(Arc::new(update));
                }
                self.handle(Input::Delta { fence, delta });
            }
            Arrival::Input(input) => {
                if matches!(input, Input::Settled { .. }) {
                    self.pass(Point::OutcomeBeforeCommit);
                }
                self.handle(input);
            }
            Arrival::Called(called) => {
                let Called { caller, fence, name, arguments, reply } = *called;
                self.last_ticket += 1;
                let ticket = self.last_ticket;
                self.callers.insert(ticket, reply);
                self.handle(Input::Called { ticket, fence, caller, name, arguments });
            }
            Arrival::StoreFailed(error) => self.poison(&error),
        }
    }

    /// Commits what the machine has said, then does what it asks, until it asks for nothing more.
    async fn flush(&mut self) {
        while let Some(step) = self.agent.poll() {
            if self.poison.is_some() {
                return;
            }
            let Step { records, bodies, commands } = step;
            if !records.is_empty() {
                self.pass_before(&records);
                let commit =
                    Commit { agent: self.ports.config.agent.clone(), records: records.clone(), bodies };
                if let Err(error) = self.ports.store.commit(commit).await {
                    return self.poison(&error);
                }
                self.pass_after(&records);
                for update in records.iter().filter_map(Update::from_record) {
                    // Nobody listening is no failure.
                    let _ = self.updates.send(Arc::new(update));
                }
            }
            for command in commands {
                self.dispatch(command);
            }
            self.checkpoint_if_due();
        }
    }

    fn checkpoint_if_due(&mut self) {
        let seq = self.agent.seq();
        let behind = seq.0 - self.checkpointed.0;
        let has_time = self.agent.is_between_turns();
        if behind < CHECKPOINT_EVERY || (!has_time && behind < 10 * CHECKPOINT_EVERY) {
            return;
        }
        self.pass(Point::CheckpointBeforeWrite);
        self.checkpointed = seq;
        let checkpoint = Checkpoint { seq, bytes: self.agent.snapshot() };
        let (store, agent) = (self.ports.store.clone(), self.ports.config.agent.clone());
        self.tasks.spawn_aside(async move {
            // A checkpoint is a cache: without it a restart folds more records.
            if let Err(error) = store.checkpoint(&agent, checkpoint).await {
                tracing::warn!(%agent, %error, "a checkpoint could not be kept");
            }
        });
    }

    /// A failed commit makes what is in memory worthless: nothing more is done on its account.
    fn poison(&mut self, error: &StoreError) {
        tracing::error!(agent = %self.ports.config.agent, %error, "the store failed; the agent stands still");
        self.poison = Some(error.to_string());
        self.tasks.abort_all();
        self.callers.clear();
        for (_, ticket) in self.tickets.drain() {
            ticket.refuse(&error.to_string());
        }
    }

    /// Refuses admissions until the state can be restored from the store.
    async fn wait_for_store(&mut self) {
        let clock = self.ports.clock.clone();
        let pause = clock.now() + RESTORE_PAUSE;
        let mut requests = Vec::new();
        while clock.now() < pause && self.stopping.is_none() {
            tokio::select! {
                count = self.requests.recv_many(&mut requests, MAX_BATCH) => {
                    if count == 0 {
                        return;
                    }
                    self.take_requests(requests.drain(..)).await;
                }
                () = clock.sleep_until(pause) => {}
            }
        }
        match restore(&self.ports).await {
            Ok((agent, checkpointed)) => {
                tracing::info!(agent = %self.ports.config.agent, "restored from the store");
                while self.arrivals.try_recv().is_ok() {}
                self.agent = agent;
                self.checkpointed = checkpointed;
                self.poison = None;
                self.handle(Input::Recovered);
            }
            Err(error) => tracing::warn!(agent = %self.ports.config.agent, %error, "still not restored"),
        }
    }

    /// Stops in order: what can be cancelled is, the rest gets a moment, and all of it is committed.
    async fn stop(&mut self) {
        self.handle(Input::Shutdown);
        self.flush().await;
        let clock = self.ports.clock.clone();
        let until = clock.now() + DRAIN;
        while self.agent.has_running_attempts() && clock.now() < until && self.poison.is_none() {
            tokio::select! {
                Some(arrival) = self.arrivals.recv() => self.take_arrival(arrival),
                () = clock.sleep_until(until) => {}
            }
            self.flush().await;
        }
        self.tasks.abort_all();
        if self.poison.is_none() && self.agent.seq() > self.checkpointed {
            let checkpoint = Checkpoint { seq: self.agent.seq(), bytes: self.agent.snapshot() };
            if let Err(error) = self.ports.store.checkpoint(&self.ports.config.agent, checkpoint).await {
                tracing::warn!(agent = %self.ports.config.agent, %error, "the last checkpoint could not be kept");
            }
        }
        self.requests.close();
        if let Some(reply) = self.stopping.take() {
            // Whoever asked may have gone.
            let _ = reply.send(());
        }
    }

    fn pass(&self, point: Point) {
        if let Some(probe) = &self.ports.probe {
            probe.reached(point);
        }
    }

    fn pass_before(&self, records: &[Stamped]) {
        if self.ports.probe.is_none() {
            return;
        }
        for stamped in records {
            match stamped.record {
                Record::Admitted { .. } => self.pass(Point::AdmitBeforeCommit),
                Record::FrameMade { .. } => self.pass(Point::FrameBeforeCommit),
                Record::StepSampled { .. } => self.pass(Point::ReplyBeforeCommit),
                Record::WaitEntered { .. } => self.pass(Point::WaitBeforeCommit),
                Record::WaitEnded { .. } => self.pass(Point::WaitEndBeforeCommit),
                _ => {}
            }
        }
    }

    fn pass_after(&self, records: &[Stamped]) {
        if self.ports.probe.is_none() {
            return;
        }
        for stamped in records {
            match stamped.record {
                Record::Admitted { .. } => self.pass(Point::AdmitBeforeAcknowledge),
                Record::StepRequested { .. } => self.pass(Point::RequestBeforeSend),
                Record::StepSampled { .. } => self.pass(Point::ReplyAfterCommit),
                Record::Attempted { .. } => self.pass(Point::AttemptBeforeDispatch),
                Record::Settled { .. } => self.pass(Point::OutcomeAfterCommit),
                Record::WaitEntered { .. } => self.pass(Point::WaitAfterCommit),
                Record::TurnEnded { .. } => self.pass(Point::TurnEndAfterCommit),
                _ => {}
            }
        }
    }
}

async fn sleep(clock: &dyn Clock, deadline: Option<crate::time::Timestamp>) {
    if let Some(due) = deadline {
        clock.sleep_until(due).await;
    }
}

/// Reads the agent back; a checkpoint that cannot be read is passed over for the records themselves.
async fn restore(ports: &Ports) -> Result<(Agent, Seq), RunError> {
    let kept = ports.store.load(&ports.config.agent).await?;
    let Some(checkpoint) = kept.checkpoint else {
        return Ok((Agent::restore(ports.config.clone(), None, &kept.records)?, Seq(0)));
    };
    match Agent::restore(ports.config.clone(), Some(&checkpoint.bytes), &kept.records) {
        Ok(agent) => Ok((agent, checkpoint.seq)),
        Err(error) => {
            tracing::warn!(agent = %ports.config.agent, %error, "the checkpoint is passed over");
            let records = ports.store.records(&ports.config.agent, Seq(0), usize::MAX).await?;
            Ok((Agent::restore(ports.config.clone(), None, &records)?, Seq(0)))
        }
    }
}
