//! What reaches an agent, and what an agent then wants done.

use std::sync::Arc;
use std::time::Duration;

use crate::action::{Answered, Attempt, Delivery, Outcome};
use crate::context::prefix::Facts;
use crate::event::{Body, NewEvent};
use crate::ids::{ActionId, Epoch, EventId, Fence};
use crate::model::{Delta, Failure, Request, Sampled};
use crate::policy::{Answer, HookFailure, Observed, Question};
use crate::record::Stamped;
use crate::time::Timestamp;

/// Something that arrived. Answers carry the fence of the command that they answer; an answer to a
/// superseded command changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An event is to be admitted; the runtime has made sure that its key is new.
    Admit {
        /// Comes back in [`Command::Acknowledge`].
        ticket: u64,
        /// The event.
        event: NewEvent,
    },
    /// What [`Command::Load`] asked for.
    Loaded {
        /// The command's fence.
        fence: Fence,
        /// The bodies, in the order in which they were asked for.
        bodies: Vec<Body>,
        /// What the prompt and the notes are made from, as it is now; the date is the machine's own business.
        facts: Box<Facts>,
    },
    /// A piece of a reply.
    Delta {
        /// The sampling's fence.
        fence: Fence,
        /// The piece.
        delta: Delta,
    },
    /// A reply is whole.
    Sampled {
        /// The sampling's fence.
        fence: Fence,
        /// The reply.
        sampled: Sampled,
    },
    /// There will be no reply.
    SamplingFailed {
        /// The sampling's fence.
        fence: Fence,
        /// Why.
        failure: Failure,
    },
    /// An attempt has come to its end.
    Settled {
        /// The attempt's fence.
        fence: Fence,
        /// The action.
        action: ActionId,
        /// What it came to.
        outcome: Outcome,
    },
    /// An attempt under way calls another action.
    Called {
        /// Comes back in [`Command::Answer`], once.
        ticket: u64,
        /// The fence of the attempt that calls; one that is superseded is refused.
        fence: Fence,
        /// The action that calls.
        caller: ActionId,
        /// The name of the action that is called.
        name: Arc<str>,
        /// Its arguments.
        arguments: Arc<str>,
    },
    /// A slot's owner has answered, or cannot.
    Decided {
        /// The question's fence.
        fence: Fence,
        /// The answer.
        answer: Result<Answer, HookFailure>,
        /// How long it took.
        elapsed: Duration,
    },
    /// An observer has dealt with records.
    Observed {
        /// How far it has come, and what it wants done.
        observed: Box<Observed>,
    },
    /// The host has found out which model answers. Requests under way stay what they are; the next turn is made
    /// with it.
    ModelFound {
        /// Its name at the provider.
        model: Arc<str>,
        /// Its context in tokens, reply included; as it was taken to be when it is none.
        context_tokens: Option<u64>,
    },
    /// The deadline that [`Agent::next_deadline`](crate::input) named has come.
    Deadline,
    /// The process began anew: the agent was restored, or is new.
    Recovered,
    /// The process is about to end in order: samplings are dropped, what can be cancelled is, nothing begins.
    Shutdown,
}

/// Something that may be done once the records in front of it are committed.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Tell whoever asked that the event is admitted.
    Acknowledge {
        /// The admission's ticket.
        ticket: u64,
        /// The event's id.
        event: EventId,
    },
    /// Load what a frame or a prefix is made from.
    Load {
        /// Fence of the answer.
        fence: Fence,
        /// The events whose bodies are wanted.
        events: Vec<EventId>,
    },
    /// Sample the model.
    Sample {
        /// Fence of the answers.
        fence: Fence,
        /// The request.
        request: Box<Request>,
    },
    /// Drop a sampling: close its connection at once.
    DropSampling {
        /// The sampling's fence.
        fence: Fence,
    },
    /// Make an attempt of an action.
    Act {
        /// Fence of the answer.
        fence: Fence,
        /// The attempt.
        attempt: Attempt,
    },
    /// Say something.
    Deliver {
        /// Fence of the answer.
        fence: Fence,
        /// What to say.
        delivery: Delivery,
    },
    /// Find out how an attempt ended that an earlier process made.
    Reconcile {
        /// Fence of the answer.
        fence: Fence,
        /// The attempt.
        attempt: Attempt,
        /// The delivery that the attempt made, if it was one.
        delivery: Option<Delivery>,
    },
    /// Kill a running attempt with everything that it started.
    Cancel {
        /// The attempt's fence.
        fence: Fence,
        /// The action.
        action: ActionId,
    },
    /// Tell a running action what became of a call that it made. Nobody may be there to hear it.
    Answer {
        /// The call's ticket.
        ticket: u64,
        /// What it is answered.
        answered: Box<Answered>,
    },
    /// Tell the owner of slots what is in force from now on.
    Activate {
        /// The epoch.
        epoch: Epoch,
        /// What names the policy; none when no slot has an owner any more.
        manifest: Option<Arc<str>>,
    },
    /// Ask a slot's owner.
    Decide {
        /// Fence of the answer.
        fence: Fence,
        /// What is in force for it.
        epoch: Epoch,
        /// The question.
        question: Question,
        /// When the answer comes too late.
        deadline: Timestamp,
    },
}

/// What must become durable together, and what may then be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The records, in order.
    pub records: Vec<Stamped>,
    /// The bodies of the events that they admit.
    pub bodies: Vec<(EventId, Body)>,
    /// What may be done once all of it is committed, in order.
    pub commands: Vec<Command>,
}
