//! Dispatch: what the machine asks for becomes tasks. Nothing is here before its records are committed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::{Arrival, Driver};
use crate::action::{Attempt, Delivery, FailureKind, Outcome};
use crate::context::prefix::Facts;
use crate::ids::{ActionId, Epoch, EventId, Fence};
use crate::input::{Command, Input};
use crate::model::{Failure, Request};
use crate::policy::{HookFailure, Question};
use crate::runtime::actions::Actions;
use crate::runtime::model::{Model, Piece};
use crate::runtime::tool::CallContext;
use crate::time::{Human, Timestamp};

impl Driver {
    pub(super) fn dispatch(&mut self, command: Command) {
        match command {
            Command::Acknowledge { ticket, event } => {
                if let Some(ticket) = self.tickets.remove(&ticket) {
                    ticket.acknowledge(event);
                }
            }
            Command::Answer { ticket, answered } => {
                if let Some(caller) = self.callers.remove(&ticket) {
                    // It may have gone; what it called was done all the same.
                    let _ = caller.send(*answered);
                }
            }
            Command::Load { fence, events } => self.load(fence, events),
            Command::Sample { fence, request } => self.sample(fence, *request),
            Command::DropSampling { fence } | Command::Cancel { fence, .. } => self.tasks.abort(fence),
            Command::Act { fence, attempt } => self.act(fence, attempt, Mode::Make),
            Command::Deliver { fence, delivery } => self.deliver(fence, delivery, Mode::Make),
            Command::Reconcile { fence, delivery: Some(delivery), .. } => {
                self.deliver(fence, delivery, Mode::Reconcile);
            }
            Command::Reconcile { fence, attempt, delivery: None } => {
                self.act(fence, attempt, Mode::Reconcile)
            }
            Command::Decide { fence, epoch, question, deadline } => {
                self.decide(fence, epoch, question, deadline)
            }
            Command::Activate { epoch, manifest } => {
                if let Some(policy) = &self.ports.policy {
                    policy.activated(epoch, manifest);
                }
            }
        }
    }

    fn load(&mut self, fence: Fence, events: Vec<EventId>) {
        let (store, agent) = (self.ports.store.clone(), self.ports.config.agent.clone());
        let arrivals = self.tasks.arrivals();
        let surroundings = self.ports.surroundings.clone();
        let on_panic = Input::Loaded { fence, bodies: Vec::new(), facts: Box::default() };
        self.tasks.spawn(fence, on_panic, async move {
            let loaded = async {
                let bodies = store.bodies(&agent, &events).await?;
                let mut facts = match surroundings {
                    Some(surroundings) => surroundings.facts().await,
                    None => Facts::default(),
                };
                let pinned = store.pinned(&agent).await?.into_iter();
                facts.memory = pinned.map(|memory| (memory.id, memory.text.to_string())).collect();
                Ok((bodies, Box::new(facts)))
            };
            let arrival = match loaded.await {
                Ok((bodies, facts)) => Arrival::Input(Input::Loaded { fence, bodies, facts }),
                Err(error) => Arrival::StoreFailed(error),
            };
            send(&arrivals, arrival).await;
        });
    }

    fn sample(&mut self, fence: Fence, request: Request) {
        let arrivals = self.tasks.arrivals();
        let model = self.ports.model.clone();
        let failure = Failure::Malformed("the model's adapter panicked".to_owned());
        self.tasks.spawn(fence, Input::SamplingFailed { fence, failure }, async move {
            let end = stream(&*model, fence, request, &arrivals).await;
            send(&arrivals, Arrival::Input(end)).await;
        });
    }

    fn act(&mut self, fence: Fence, attempt: Attempt, mode: Mode) {
        let tool = self.ports.tools.get(&attempt.name).cloned();
        let at = self.ports.clock.now();
        let (agent, store) = (self.ports.config.agent.clone(), self.ports.store.clone());
        let (action, deadline, name) = (attempt.action, attempt.deadline, attempt.name.clone());
        let actions = Actions::new(self.ports.config.clone(), attempt.action, fence, self.tasks.arrivals());
        let context = CallContext::new(agent, attempt, at, store, actions);
        self.attempt(fence, action, &name.clone(), deadline, async move {
            match (tool, mode) {
                (Some(tool), Mode::Make) => tool.call(context).await,
                (Some(tool), Mode::Reconcile) => tool.reconcile(context).await,
                (None, _) => gone(&name, mode),
            }
        });
    }

    fn deliver(&mut self, fence: Fence, delivery: Delivery, mode: Mode) {
        let channel = self.ports.channels.get(delivery.channel()).cloned();
        let attempt = delivery.attempt();
        let (action, deadline, name) = (attempt.action, attempt.deadline, attempt.name.clone());
        self.attempt(fence, action, &name.clone(), deadline, async move {
            match (channel, mode) {
                (Some(channel), Mode::Make) => channel.deliver(delivery).await,
                (Some(channel), Mode::Reconcile) => channel.reconcile(delivery).await,
                (None, _) => gone(&name, mode),
            }
        });
    }

    /// Runs an attempt to its outcome, bounded by its deadline.
    fn attempt(
        &mut self,
        fence: Fence,
        action: ActionId,
        name: &str,
        deadline: Timestamp,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) {
        let arrivals = self.tasks.arrivals();
        let budget = deadline.since(self.ports.clock.now());
        let late = late(budget, self.ports.config.action(name).is_some_and(|spec| spec.cancellable));
        let panicked = Outcome::unknown("The action's code panicked. Whether it did anything is not known.");
        let on_panic = Input::Settled { fence, action, outcome: panicked };
        self.tasks.spawn(fence, on_panic, async move {
            let outcome = tokio::time::timeout(budget, work).await.unwrap_or(late);
            send(&arrivals, Arrival::Input(Input::Settled { fence, action, outcome })).await;
        });
    }

    fn decide(&mut self, fence: Fence, epoch: Epoch, question: Question, deadline: Timestamp) {
        let arrivals = self.tasks.arrivals();
        let policy = self.ports.policy.clone();
        let clock = self.ports.clock.clone();
        let asked = clock.now();
        let unavailable = |reason: &str| HookFailure::Unavailable { reason: reason.into() };
        let on_panic =
            Input::Decided { fence, answer: Err(unavailable("the hook panicked")), elapsed: Duration::ZERO };
        self.tasks.spawn(fence, on_panic, async move {
            let answer = match policy {
                Some(policy) => tokio::time::timeout(deadline.since(asked), policy.decide(epoch, question))
                    .await
                    .unwrap_or(Err(HookFailure::Deadline)),
                None => Err(unavailable("nobody owns the slot")),
            };
            let elapsed = clock.now().since(asked);
            send(&arrivals, Arrival::Input(Input::Decided { fence, answer, elapsed })).await;
        });
    }
}

/// Whether an attempt is made, or only asked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Make,
    Reconcile,
}

/// An attempt of something that this process does not have any more.
fn gone(name: &Arc<str>, mode: Mode) -> Outcome {
    match mode {
        Mode::Make => {
            Outcome::failed(FailureKind::Invalid, format!("Not run: {name} is not available any more."))
        }
        Mode::Reconcile => {
            Outcome::unknown(format!("{name} is not available any more; how it ended is not known."))
        }
    }
}

/// What an attempt comes to that its deadline ended: what cannot be cancelled may have happened.
fn late(budget: Duration, cancellable: bool) -> Outcome {
    let budget = Human(budget);
    match cancellable {
        true => Outcome::failed(FailureKind::TimedOut, format!("Stopped: it took longer than {budget}.")),
        false => Outcome::unknown(format!("No answer within {budget}. Whether it happened is not known.")),
    }
}

/// Streams one reply; answers with what ends it.
async fn stream(
    model: &dyn Model,
    fence: Fence,
    request: Request,
    arrivals: &mpsc::Sender<Arrival>,
) -> Input {
    let mut reply = match model.sample(request).await {
        Ok(reply) => reply,
        Err(failure) => return Input::SamplingFailed { fence, failure },
    };
    while let Some(piece) = reply.next().await {
        match piece {
            Ok(Piece::Delta(delta)) => send(arrivals, Arrival::Input(Input::Delta { fence, delta })).await,
            Ok(Piece::Finished(sampled)) => return Input::Sampled { fence, sampled },
            Err(failure) => return Input::SamplingFailed { fence, failure },
        }
    }
    let failure = Failure::Disconnected("the reply ended before it was whole".to_owned());
    Input::SamplingFailed { fence, failure }
}

async fn send(arrivals: &mpsc::Sender<Arrival>, arrival: Arrival) {
    // The driver is gone only when nothing matters any more.
    let _ = arrivals.send(arrival).await;
}
