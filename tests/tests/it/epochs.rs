//! No action is ever judged by two epochs, and what is decided is what runs: whatever the order in which activations,
//! reviews, holds, the operator's decisions, preemptions and crashes come.
//!
//! The machine is fed by hand. The judge sees what a runtime sees: records that were committed, and commands. It builds
//! the question anew from what is to be run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use klbr_core::action::{ActionSpec, Attempt, Class, FailureKind, Outcome, Resource, Role};
use klbr_core::agent::{Agent, wait_tool};
use klbr_core::config::{ChannelSettings, Config};
use klbr_core::context::prefix::Facts;
use klbr_core::event::{Body, Control, NewEvent, Priority, Source, SourceKind};
use klbr_core::hash::Hash;
use klbr_core::ids::{ActionId, Epoch, EventId, Fence, TurnId};
use klbr_core::input::{Command, Input};
use klbr_core::model::{RawCall, Sampled, ToolDefinition};
use klbr_core::policy::{Activation, Answer, Bindings, HookFailure, Question, Review, Slot, Verdict};
use klbr_core::record::{Record, Stamped};
use klbr_core::time::Timestamp;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config as Settings, TestCaseError, TestRunner};

const SLOTS: [Slot; 3] = [Slot::ActionReview, Slot::DeliveryReview, Slot::DeliveryFormat];
const NAMES: [&str; 4] = ["look", "process", "chat_send", "local_send"];

/// One thing that happens.
#[derive(Clone, Debug)]
enum Op {
    Say,
    Hear,
    /// The model asks for these actions.
    Reply(Vec<u8>),
    /// A question that is out is answered.
    Decide(Index, u8),
    /// A question that was answered, or given up, is answered with "allow" all the same.
    DecideLate(Index),
    /// An attempt that is out ends.
    Settle(Index, bool),
    /// A policy comes in force that owns these slots.
    Activate {
        slots: u8,
        now: bool,
    },
    /// The operator decides about something that is held.
    Resolve(Index, bool),
    Command(u8),
    Pass(u16),
    /// The process dies; with `true` in the midst of the next thing, which is not committed.
    Crash(bool),
}

fn op() -> impl Strategy<Value = Op> {
    let slots = 0u8..8;
    prop_oneof![
        3 => Just(Op::Say),
        1 => Just(Op::Hear),
        6 => prop::collection::vec(0u8..4, 0..4).prop_map(Op::Reply),
        8 => (any::<Index>(), 0u8..6).prop_map(|(which, answer)| Op::Decide(which, answer)),
        1 => any::<Index>().prop_map(Op::DecideLate),
        4 => (any::<Index>(), any::<bool>()).prop_map(|(which, ok)| Op::Settle(which, ok)),
        3 => (slots, prop::bool::weighted(0.3)).prop_map(|(slots, now)| Op::Activate { slots, now }),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(which, allow)| Op::Resolve(which, allow)),
        1 => (0u8..4).prop_map(Op::Command),
        1 => (0u16..1000).prop_map(Op::Pass),
        1 => any::<bool>().prop_map(Op::Crash),
    ]
}

/// What all runs together came to, so that none of it is true of nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    questions: u32,
    ran: u32,
    denied: u32,
    held: u32,
    resolved: u32,
    formatted: u32,
    late: u32,
    /// Activations while a question of a running turn was out.
    beneath: u32,
    /// Questions asked under an epoch that was no longer the newest.
    older: u32,
}

#[derive(Default)]
struct Judge {
    bound: BTreeMap<Epoch, BTreeSet<Slot>>,
    newest: Epoch,
    turns: BTreeMap<TurnId, Epoch>,
    running: Option<TurnId>,
    /// What the model wrote, and what policy made of it.
    asked_for: BTreeMap<ActionId, BTreeSet<Arc<str>>>,
    /// Under which epochs an action was judged.
    judged: BTreeMap<ActionId, BTreeSet<Epoch>>,
    /// The answers that were given to a question, by its hash.
    given: BTreeMap<Hash, Vec<Answer>>,
    allowed: BTreeSet<Hash>,
    held: BTreeMap<ActionId, (Arc<str>, Arc<str>)>,
    /// What is held and was reviewed, by its question.
    resolved: BTreeSet<ActionId>,
    seen: Seen,
}

fn review(action: ActionId, name: &str, arguments: &Arc<str>) -> Review {
    let hash = Hash::of(format!("{name}\0{arguments}").as_bytes()).to_string().into();
    Review { action, name: name.into(), arguments: arguments.clone(), hash }
}

fn of(question: &Question) -> Hash {
    Hash::of(&serde_json::to_vec(question).unwrap())
}

fn is_delivery(name: &str) -> bool {
    name.ends_with("_send")
}

impl Judge {
    fn recorded(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::Activated { epoch, bound, .. } => {
                self.bound.insert(*epoch, bound.keys().copied().collect());
                self.newest = *epoch;
            }
            Record::SoulChanged { epoch, .. } => {
                let same = self.bound.get(&self.newest).cloned().unwrap_or_default();
                self.bound.insert(*epoch, same);
                self.newest = *epoch;
            }
            Record::TurnStarted { turn, epoch, .. } => {
                if *epoch != self.newest {
                    return Err(format!("{turn} begins under {epoch}, and {} is in force", self.newest));
                }
                self.turns.insert(*turn, *epoch);
                self.running = Some(*turn);
            }
            Record::TurnEnded { .. } => self.running = None,
            Record::Intended { action, epoch, .. } if self.turns.get(&action.step.turn) != Some(epoch) => {
                return Err(format!("{action} is intended under {epoch}, which is not its turn's"));
            }
            Record::Held { action, name, arguments, .. } => {
                self.held.insert(*action, (name.clone(), arguments.clone()));
                self.seen.held += 1;
            }
            Record::Decided { question, answer: Some(answer), failure: None, .. } => {
                if !self.given.get(question).is_some_and(|given| given.contains(answer)) {
                    return Err(format!("{answer:?} is recorded, and nobody gave it"));
                }
                match answer {
                    Answer::Verdict(Verdict::Allow) => drop(self.allowed.insert(*question)),
                    Answer::Verdict(Verdict::Deny { .. }) => self.seen.denied += 1,
                    _ => {}
                }
            }
            Record::LateDropped { what } if &**what == "a decision" => self.seen.late += 1,
            _ => {}
        }
        Ok(())
    }

    fn asked(&mut self, epoch: Epoch, question: &Question) -> Result<(), String> {
        let (Question::ActionReview(of) | Question::DeliveryReview(of) | Question::DeliveryFormat(of)) =
            question
        else {
            return Err(format!("{question:?} was asked, which nobody owns"));
        };
        self.seen.questions += 1;
        self.seen.older += u32::from(epoch != self.newest);
        if review(of.action, &of.name, &of.arguments).hash != of.hash {
            return Err(format!("{of:?} is not of its hash"));
        }
        if !self.bound[&epoch].contains(&question.slot()) {
            return Err(format!("{epoch} does not own {}", question.slot().as_str()));
        }
        if self.turns.get(&of.action.step.turn) != Some(&epoch) || self.running != Some(of.action.step.turn) {
            return Err(format!("{} is judged under {epoch}, which is not its turn's", of.action));
        }
        let epochs = self.judged.entry(of.action).or_default();
        epochs.insert(epoch);
        if epochs.len() > 1 {
            return Err(format!("{} was judged under {epochs:?}", of.action));
        }
        Ok(())
    }

    fn runs(&mut self, attempt: &Attempt) -> Result<(), String> {
        let Attempt { action, name, arguments, number, .. } = attempt;
        self.seen.ran += 1;
        if !self.asked_for.get(action).is_some_and(|known| known.contains(arguments)) {
            return Err(format!("{action} runs with {arguments}, which neither model nor policy wrote"));
        }
        if self.resolved.contains(action) {
            return match self.held.get(action) {
                Some(held) if *held == (name.clone(), arguments.clone()) => Ok(()),
                held => Err(format!("{action} runs with {arguments}, and {held:?} was held")),
            };
        }
        if *number == 1 && self.running != Some(action.step.turn) {
            return Err(format!("{action} begins after its turn"));
        }
        let bound = &self.bound[&self.turns[&action.step.turn]];
        let (slot, question) = match is_delivery(name) {
            true => (Slot::DeliveryReview, Question::DeliveryReview(review(*action, name, arguments))),
            false => (Slot::ActionReview, Question::ActionReview(review(*action, name, arguments))),
        };
        if bound.contains(&slot) && !self.allowed.contains(&of(&question)) {
            return Err(format!("{action} runs with {arguments}, which nobody allowed"));
        }
        Ok(())
    }
}

struct World {
    agent: Agent,
    config: Arc<Config>,
    kept: Vec<Stamped>,
    bodies: Vec<(EventId, Body)>,
    out: Vec<Command>,
    answered: Vec<(Fence, Hash)>,
    now: Timestamp,
    made: u64,
    dies_in_the_midst: bool,
    judge: Judge,
}

fn action(name: &str, class: Class, cancellable: bool) -> ActionSpec {
    let parameters = serde_json::json!({ "type": "object" });
    let role = match name.strip_suffix("_send") {
        Some(channel) => Role::Delivery { channel: channel.into() },
        None => Role::Ordinary,
    };
    ActionSpec {
        tool: ToolDefinition { name: name.to_owned(), description: String::new(), parameters },
        role,
        class,
        cancellable,
        resource: Resource::None,
        deadline: Duration::from_secs(60),
    }
}

impl World {
    fn new() -> Self {
        let mut config = Config::new("ada".parse().unwrap(), "m");
        config.context_tokens = 4_000_000;
        config.channels.insert("chat".into(), ChannelSettings::default());
        config.actions = vec![
            action("local_send", Class::Idempotent, false),
            action("chat_send", Class::Irreversible, false),
            wait_tool(),
            action("look", Class::Pure, true),
            action("process", Class::Irreversible, true),
        ];
        config.bound = Bindings::from([(Slot::ActionReview, Duration::from_millis(300))]);
        let config = Arc::new(config);
        let agent = Agent::restore(config.clone(), None, &[]).unwrap();
        let first = Epoch::default().next();
        let bound = BTreeMap::from([(first, config.bound.keys().copied().collect())]);
        World {
            agent,
            config,
            kept: Vec::new(),
            bodies: Vec::new(),
            out: Vec::new(),
            answered: Vec::new(),
            now: Timestamp(1_762_300_800_000),
            made: 0,
            dies_in_the_midst: false,
            judge: Judge { bound, newest: first, ..Judge::default() },
        }
    }

    fn handle(&mut self, input: Input) -> Result<(), String> {
        self.agent.handle(self.now, input);
        if std::mem::take(&mut self.dies_in_the_midst) {
            return self.begin_anew();
        }
        while let Some(step) = self.agent.poll() {
            for stamped in &step.records {
                if let Record::StepSampled { step, message, .. } = &stamped.record {
                    for (call, number) in message.calls.iter().zip(1..) {
                        self.judge
                            .asked_for
                            .entry(step.action(number))
                            .or_default()
                            .insert(call.arguments.clone());
                    }
                }
                self.judge.recorded(&stamped.record)?;
            }
            self.kept.extend(step.records);
            self.bodies.extend(step.bodies);
            for command in step.commands {
                match &command {
                    Command::Load { fence, events } => {
                        let body =
                            |id: &EventId| self.bodies.iter().find(|(i, _)| i == id).unwrap().1.clone();
                        let (fence, bodies) = (*fence, events.iter().map(body).collect());
                        let facts = Box::new(Facts::default());
                        self.agent.handle(self.now, Input::Loaded { fence, bodies, facts });
                        continue;
                    }
                    Command::Decide { epoch, question, .. } => self.judge.asked(*epoch, question)?,
                    Command::Act { attempt, .. } => self.judge.runs(attempt)?,
                    Command::Deliver { delivery, .. } => self.judge.runs(delivery.attempt())?,
                    Command::DropSampling { .. }
                    | Command::Acknowledge { .. }
                    | Command::Activate { .. }
                    | Command::Answer { .. }
                    | Command::Cancel { .. } => continue,
                    Command::Sample { .. } | Command::Reconcile { .. } => {}
                }
                self.out.push(command);
            }
        }
        Ok(())
    }

    fn begin_anew(&mut self) -> Result<(), String> {
        self.out.clear();
        self.answered.clear();
        self.agent = Agent::restore(self.config.clone(), None, &self.kept).unwrap();
        self.handle(Input::Recovered)
    }

    fn admit(&mut self, event: impl FnOnce(String) -> NewEvent) -> Result<(), String> {
        self.made += 1;
        let event = event(format!("k{}", self.made));
        self.handle(Input::Admit { ticket: self.made, event })
    }

    fn control(&mut self, control: Control) -> Result<(), String> {
        self.admit(|key| NewEvent::control(key, control))
    }

    /// One of the commands that are out and wanted.
    fn pick(&mut self, which: &Index, wanted: fn(&Command) -> bool) -> Option<Command> {
        let places: Vec<usize> =
            self.out.iter().enumerate().filter(|(_, command)| wanted(command)).map(|(at, _)| at).collect();
        (!places.is_empty()).then(|| self.out.remove(places[which.index(places.len())]))
    }

    fn apply(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Say => self.admit(|key| NewEvent::operator(key, "go on")),
            Op::Hear => self.admit(|key| {
                let source = Source::new(SourceKind::Channel, "chat");
                NewEvent::external(source, key, Priority::Directed, Body::text("hello"))
                    .in_conversation("room")
            }),
            Op::Reply(calls) => self.reply(calls),
            Op::Decide(which, answer) => self.decide(which, *answer),
            Op::DecideLate(which) => self.decide_late(which),
            Op::Settle(which, ok) => self.settle(which, *ok),
            Op::Activate { slots, now } => {
                let is_asked = self.out.iter().any(|command| matches!(command, Command::Decide { .. }));
                self.judge.seen.beneath += u32::from(is_asked && self.judge.running.is_some());
                let slots = SLOTS.iter().enumerate().filter(|(bit, _)| slots >> bit & 1 == 1);
                let slots = slots.map(|(_, slot)| (*slot, 300)).collect();
                let manifest = Some(format!("{}", self.made).into());
                self.control(Control::Activate(Box::new(Activation {
                    manifest,
                    slots,
                    now: *now,
                    ..Activation::default()
                })))
            }
            Op::Resolve(which, allow) => {
                let held: Vec<ActionId> = self.judge.held.keys().copied().collect();
                if held.is_empty() {
                    return Ok(());
                }
                let action = held[which.index(held.len())];
                if *allow {
                    self.judge.seen.resolved += 1;
                    self.judge.resolved.insert(action);
                }
                self.control(Control::Resolve { action, allow: *allow })
            }
            Op::Command(which) => self.control(match which {
                0 => Control::Interrupt,
                1 => Control::Stop,
                2 => Control::Reset,
                _ => Control::Soul { text: "You are somebody else.".into() },
            }),
            Op::Pass(millis) => {
                self.now = self.now + Duration::from_millis(u64::from(*millis));
                self.handle(Input::Deadline)
            }
            Op::Crash(true) => {
                self.dies_in_the_midst = true;
                Ok(())
            }
            Op::Crash(false) => self.begin_anew(),
        }
    }

    fn reply(&mut self, calls: &[u8]) -> Result<(), String> {
        let newest = self.out.iter().rposition(|command| matches!(command, Command::Sample { .. }));
        let Some(Command::Sample { fence, .. }) = newest.map(|at| self.out.remove(at)) else { return Ok(()) };
        let call = |which: &u8| {
            self.made += 1;
            let name = NAMES[usize::from(*which)].to_owned();
            RawCall { id: None, name, arguments: format!(r#"{{"content":"{}"}}"#, self.made) }
        };
        let calls = calls.iter().map(call).collect();
        self.handle(Input::Sampled { fence, sampled: Sampled { calls, ..Sampled::default() } })
    }

    fn decide(&mut self, which: &Index, answer: u8) -> Result<(), String> {
        let question = self.pick(which, |command| matches!(command, Command::Decide { .. }));
        let Some(Command::Decide { fence, question, .. }) = question else { return Ok(()) };
        let answer = match (&question, answer) {
            (_, 0) => Err(HookFailure::Deadline),
            (_, 1) => Ok(Answer::Yes(true)),
            (Question::DeliveryFormat(review), 2..4) => {
                self.judge.seen.formatted += 1;
                let worded: Arc<str> = review.arguments.replace("content\":\"", "content\":\"worded ").into();
                self.judge.asked_for.entry(review.action).or_default().insert(worded.clone());
                Ok(Answer::Text(Some(worded)))
            }
            (Question::DeliveryFormat(_), _) => Ok(Answer::Text(None)),
            (_, 2) => Ok(Answer::Verdict(Verdict::Deny { reason: "no".into() })),
            (_, 3) => Ok(Answer::Verdict(Verdict::Hold { reason: "ask".into() })),
            _ => Ok(Answer::Verdict(Verdict::Allow)),
        };
        if let Ok(answer) = &answer {
            self.judge.given.entry(of(&question)).or_default().push(answer.clone());
        }
        self.answered.push((fence, of(&question)));
        self.handle(Input::Decided { fence, answer, elapsed: Duration::from_millis(1) })
    }

    fn decide_late(&mut self, which: &Index) -> Result<(), String> {
        if self.answered.is_empty() {
            return Ok(());
        }
        // Nothing is noted as given: a record of it is a fault.
        let (fence, _) = self.answered[which.index(self.answered.len())];
        let is_out =
            |command: &Command| matches!(command, Command::Decide { fence: out, .. } if *out == fence);
        if self.out.iter().any(is_out) {
            return Ok(());
        }
        let answer = Ok(Answer::Verdict(Verdict::Allow));
        self.handle(Input::Decided { fence, answer, elapsed: Duration::from_millis(1) })
    }

    fn settle(&mut self, which: &Index, ok: bool) -> Result<(), String> {
        let attempt = self.pick(which, |command| {
            matches!(command, Command::Act { .. } | Command::Deliver { .. } | Command::Reconcile { .. })
        });
        let (fence, action) = match attempt {
            Some(Command::Act { fence, attempt } | Command::Reconcile { fence, attempt, .. }) => {
                (fence, attempt.action)
            }
            Some(Command::Deliver { fence, delivery }) => (fence, delivery.action()),
            _ => return Ok(()),
        };
        let outcome = match ok {
            true => Outcome::confirmed("done"),
            false => Outcome::failed(FailureKind::TimedOut, "late"),
        };
        self.handle(Input::Settled { fence, action, outcome })
    }
}

#[test]
fn no_action_is_judged_by_two_epochs_and_what_was_decided_is_what_runs() {
    let cases = std::env::var("KLBR_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400);
    let mut runner = TestRunner::new(Settings { cases, failure_persistence: None, ..Settings::default() });
    let total = RefCell::new(Seen::default());
    let run = |ops: Vec<Op>| {
        let mut world = World::new();
        let mut begin = world.handle(Input::Recovered);
        for op in &ops {
            begin = begin.and_then(|()| world.apply(op));
        }
        begin.map_err(TestCaseError::fail)?;
        prop_assert!(world.agent.ledger().balances(), "{}", world.agent.ledger());
        let (mut total, seen) = (total.borrow_mut(), world.judge.seen);
        total.questions += seen.questions;
        total.ran += seen.ran;
        total.denied += seen.denied;
        total.held += seen.held;
        total.resolved += seen.resolved;
        total.formatted += seen.formatted;
        total.late += seen.late;
        total.beneath += seen.beneath;
        total.older += seen.older;
        Ok(())
    };
    if let Err(failure) = runner.run(&prop::collection::vec(op(), 0..120), run) {
        panic!("{failure}");
    }
    let seen = *total.borrow();
    println!("{cases} runs: {seen:?}");
    let Seen { questions, ran, denied, held, resolved, formatted, late, beneath, older } = seen;
    let least = [questions, ran, denied, held, resolved, formatted, late, beneath, older].into_iter().min();
    assert!(least > Some(cases / 20), "something hardly ever happened: {seen:?}");
}
