//! The world: what the machine's commands lead to, and what happens to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use klbr_core::action::{
    ActionSpec, Attempt, Class, Delivery, FailureKind, Outcome as End, Resource, Role, Sent,
};
use klbr_core::agent::{Agent, wait_tool};
use klbr_core::attention::mark_tool;
use klbr_core::config::{ChannelSettings, Config, Toolset};
use klbr_core::context;
use klbr_core::context::prefix::Facts;
use klbr_core::event::{Body, Conversation, NewEvent, Priority};
use klbr_core::ids::{EventId, Fence};
use klbr_core::input::{Command, Input};
use klbr_core::model::{Delta, Failure, Request, ToolDefinition};
use klbr_core::policy::{Answer, HookFailure, Question, Slot, Verdict};
use klbr_core::record::Stamped;
use klbr_core::time::Timestamp;

use super::Outcome;
use super::actors::{Line, control, line, outside, report, tame_reply, wild_reply};
use super::judge::Judge;
use super::plan::{Op, Plan};

/// What stands in everything that is private; no delivery may ever contain it.
pub(super) const CANARY: &str = "canary-7f3a";

pub(super) struct World {
    rng: Rng,
    ops: Vec<Op>,
    config: Arc<Config>,
    agent: Agent,
    now: Timestamp,
    kept: Vec<Stamped>,
    bodies: BTreeMap<EventId, Body>,
    checkpoints: Vec<(usize, Vec<u8>)>,
    out: Vec<Command>,
    superseded: Vec<Command>,
    tickets: BTreeSet<u64>,
    /// Calls of cells that are not answered.
    asked: BTreeSet<u64>,
    last_ticket: u64,
    crash: Crash,
    fail_commit: bool,
    tame: bool,
    /// How often the one file was changed, by whomever.
    version: u64,
    /// What the host knows beside the conversation.
    facts: Facts,
    judge: Judge,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Crash {
    No,
    BeforeCommit,
    AfterCommit,
}

impl World {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut rng = Rng::with_seed(plan.seed ^ 0x5eed);
        let config = Arc::new(config(&mut rng));
        let agent = Agent::restore(config.clone(), None, &[]).expect("nothing is easy to fold");
        World {
            rng,
            ops: plan.ops.clone(),
            config,
            agent,
            now: Timestamp(1_800_000_000_000),
            kept: Vec::new(),
            bodies: BTreeMap::new(),
            checkpoints: Vec::new(),
            out: Vec::new(),
            superseded: Vec::new(),
            tickets: BTreeSet::new(),
            asked: BTreeSet::new(),
            last_ticket: 0,
            crash: Crash::No,
            fail_commit: false,
            tame: false,
            version: 0,
            facts: Facts { memory: vec![(1, "pinned".to_owned())], ..Facts::default() },
            judge: Judge::default(),
            outcome: Outcome::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<Outcome, String> {
        self.handle(Input::Recovered)?;
        for op in std::mem::take(&mut self.ops) {
            self.happen(op)?;
        }
        self.settle_down()?;
        Ok(self.outcome)
    }

    fn happen(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Say => self
                .admit(|n| NewEvent::operator(format!("say:{n}"), format!("operator words {n} </operator>"))),
            Op::Command(which) => {
                let held = self.agent.status().open_effects.iter().find(|e| e.held).map(|e| e.action);
                self.admit(|n| NewEvent::control(format!("control:{n}"), control(which, held)))
            }
            Op::Outside(which) => self.admit(|n| outside(which, n)),
            Op::Answer(choice) => {
                if self.out.is_empty() {
                    return Ok(());
                }
                let command = self.out.remove(choice as usize % self.out.len());
                self.answer(command, choice)
            }
            Op::Piece(choice) => {
                let fences: Vec<Fence> = self.out.iter().filter_map(sampling_fence).collect();
                let Some(fence) = fences.get(choice as usize % fences.len().max(1)) else { return Ok(()) };
                let delta = match choice % 3 {
                    0 => Delta::Think(format!("thinking {CANARY}")),
                    1 => Delta::CallStarted { name: "local_send".to_owned() },
                    _ => Delta::Scratch(format!("piece {CANARY} ")),
                };
                self.handle(Input::Delta { fence: *fence, delta })
            }
            Op::Late(choice) => {
                if self.superseded.is_empty() {
                    return Ok(());
                }
                let command = self.superseded.remove(choice as usize % self.superseded.len());
                self.answer(command, choice)
            }
            Op::Report(choice) => {
                let observed = report(choice, self.agent.seq(), self.now);
                self.handle(Input::Observed { observed: Box::new(observed) })
            }
            Op::Pass(millis) => {
                self.now = Timestamp(self.now.0 + i64::from(millis));
                self.version += u64::from(millis % 8 == 0);
                self.handle(Input::Deadline)
            }
            Op::Due => {
                if let Some(due) = self.agent.next_deadline() {
                    self.now = self.now.max(due);
                }
                self.handle(Input::Deadline)
            }
            Op::SetBack(millis) => {
                self.now = Timestamp(self.now.0 - i64::from(millis));
                Ok(())
            }
            Op::Crash(choice) => match choice % 3 {
                0 => self.restart(choice),
                1 => {
                    self.crash = Crash::BeforeCommit;
                    Ok(())
                }
                _ => {
                    self.crash = Crash::AfterCommit;
                    Ok(())
                }
            },
            Op::FailCommit => {
                self.fail_commit = true;
                Ok(())
            }
            Op::Set(which) => {
                self.set(which);
                Ok(())
            }
        }
    }

    /// The person changes something that the model is told of by a note, or by the next prefix.
    fn set(&mut self, which: u8) {
        let text = format!("version {which}");
        match which % 4 {
            0 => {
                self.facts.mode = format!("mode {which}");
                self.facts.mode_text = text;
            }
            1 => self.facts.memory.push((u64::from(which) + 2, text)),
            2 => self.facts.memory.clear(),
            _ => self.facts.instructions = vec![("AGENTS.md".to_owned(), text)],
        }
    }

    fn admit(&mut self, event: impl FnOnce(u64) -> NewEvent) -> Result<(), String> {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        let event = event(ticket);
        event.validate().map_err(|error| error.to_string())?;
        self.tickets.insert(ticket);
        self.handle(Input::Admit { ticket, event })
    }

    /// Feeds the machine, then commits and dispatches what it says, as the runtime does.
    fn handle(&mut self, input: Input) -> Result<(), String> {
        self.agent.handle(self.now, input);
        while let Some(step) = self.agent.poll() {
            if self.crash == Crash::BeforeCommit && !step.records.is_empty() || self.fail_commit {
                self.fail_commit = false;
                return self.restart(step.records.len() as u64);
            }
            self.judge.commit(&step)?;
            self.kept.extend(step.records);
            self.bodies.extend(step.bodies);
            if self.crash == Crash::AfterCommit {
                return self.restart(self.kept.len() as u64);
            }
            for command in step.commands {
                self.dispatch(command)?;
            }
            self.judge.state(&self.agent)?;
            if self.rng.u8(..) < 20 {
                self.checkpoints.push((self.kept.len(), self.agent.snapshot()));
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, command: Command) -> Result<(), String> {
        self.judge.command(&command, &self.agent)?;
        let supersede = |world: &mut World, fence: Fence| {
            let out = std::mem::take(&mut world.out);
            let (gone, kept) = out.into_iter().partition(|command| fence_of(command) == Some(fence));
            world.out = kept;
            world.superseded.extend::<Vec<Command>>(gone);
        };
        match command {
            Command::Acknowledge { ticket, event } => {
                if !self.tickets.remove(&ticket) {
                    return Err(format!("ticket {ticket} was acknowledged twice"));
                }
                self.outcome.admitted += 1;
                self.judge.acknowledged(event)?;
            }
            Command::Answer { ticket, .. } => {
                if !self.asked.remove(&ticket) {
                    return Err(format!("the call {ticket} was answered twice"));
                }
            }
            Command::DropSampling { fence } => supersede(self, fence),
            Command::Cancel { fence, .. } => supersede(self, fence),
            Command::Activate { .. } => {}
            Command::Sample { .. } => {
                self.outcome.requests += 1;
                self.out.push(command);
            }
            Command::Load { .. }
            | Command::Act { .. }
            | Command::Deliver { .. }
            | Command::Reconcile { .. }
            | Command::Decide { .. } => self.out.push(command),
        }
        Ok(())
    }

    /// The process dies and begins anew from what was kept, with or without a checkpoint.
    fn restart(&mut self, choice: u64) -> Result<(), String> {
        self.outcome.crashes += 1;
        self.crash = Crash::No;
        for command in std::mem::take(&mut self.out) {
            // What was under way may or may not have happened.
            if let (Command::Act { attempt, .. }, true) = (&command, self.rng.bool()) {
                self.judge.performed(attempt.action, &attempt.name)?;
            }
            if let (Command::Deliver { delivery, .. }, true) = (&command, self.rng.bool()) {
                self.judge.performed(delivery.action(), &delivery.attempt().name)?;
            }
        }
        self.superseded.clear();
        self.tickets.clear();
        self.asked.clear();
        let usable: Vec<&(usize, Vec<u8>)> = self.checkpoints.iter().collect();
        let from = usable.get(choice as usize % (usable.len() + 1));
        let (checkpoint, skip) = from.map_or((None, 0), |(seq, bytes)| (Some(bytes.as_slice()), *seq));
        self.agent = Agent::restore(self.config.clone(), checkpoint, &self.kept[skip..])
            .map_err(|error| format!("a restart failed: {error}"))?;
        self.judge.restored(&self.agent, &self.config, &self.kept)?;
        self.handle(Input::Recovered)
    }

    /// The world calms down: the model behaves, everything is answered, and nothing may be left over.
    fn settle_down(&mut self) -> Result<(), String> {
        self.tame = true;
        self.crash = Crash::No;
        self.fail_commit = false;
        self.now = self.now.max(self.agent.next_deadline().unwrap_or(self.now));
        for round in 0..600_u64 {
            if let Some(command) = (!self.out.is_empty()).then(|| self.out.remove(0)) {
                self.answer(command, round)?;
                continue;
            }
            if self.agent.is_between_turns() && self.is_calm(round) {
                if let Some(ticket) = self.asked.first() {
                    return Err(format!("the call {ticket} was never answered"));
                }
                self.outcome.records = self.kept.len() as u64;
                self.outcome.turns = self.judge.turns();
                self.outcome.inner = self.judge.inner();
                return self.judge.end(&self.agent.status());
            }
            self.now = match self.agent.next_deadline() {
                Some(due) => due.max(Timestamp(self.now.0 + 1)),
                None => Timestamp(self.now.0 + 1000),
            };
            self.handle(Input::Deadline)?;
        }
        Err(format!("it never calms down: {:?} {:?}", self.agent.waiting(10), self.agent.status()))
    }

    /// Whether nothing is left to be shown. Chatter that policy left alone, and receipts that wake nobody,
    /// wait for company, for ever if need be.
    fn is_calm(&self, round: u64) -> bool {
        let ledger = self.agent.ledger();
        let only_ambient = || self.agent.waiting(usize::MAX).iter().all(|w| w.priority == Priority::Ambient);
        ledger.framed == 0 && ledger.held == 0 && (ledger.waiting == 0 || (round > 300 && only_ambient()))
    }

    fn answer(&mut self, command: Command, choice: u64) -> Result<(), String> {
        let input = match command {
            Command::Load { fence, events } => {
                let body =
                    |event: &EventId| self.bodies.get(event).cloned().ok_or(format!("{event} has no body"));
                let bodies = events.iter().map(body).collect::<Result<_, _>>()?;
                Input::Loaded { fence, bodies, facts: Box::new(self.facts.clone()) }
            }
            Command::Sample { fence, request } => self.sampled(fence, &request, choice),
            Command::Act { fence, attempt } if &*attempt.name == "cell" && !self.tame => {
                self.cell(fence, attempt, choice)?
            }
            Command::Act { fence, attempt } => self.acted(fence, &attempt, choice)?,
            Command::Deliver { fence, delivery } => self.delivered(fence, &delivery, choice)?,
            Command::Reconcile { fence, attempt, .. } => {
                let outcome = match self.judge.was_performed(attempt.action)
                    && (self.tame || choice.is_multiple_of(2))
                {
                    true => End::confirmed("it was done"),
                    false if choice.is_multiple_of(3) => End::unknown("nobody knows"),
                    false if self.judge.was_performed(attempt.action) => End::unknown("nobody knows"),
                    false => End::failed(FailureKind::Refused, "it was not done"),
                };
                Input::Settled { fence, action: attempt.action, outcome }
            }
            Command::Decide { fence, question, .. } => Input::Decided {
                fence,
                answer: self.decision(&question, choice),
                elapsed: Duration::from_millis(3),
            },
            Command::Acknowledge { .. }
            | Command::Answer { .. }
            | Command::DropSampling { .. }
            | Command::Cancel { .. }
            | Command::Activate { .. } => {
                return Ok(());
            }
        };
        self.handle(input)
    }

    /// A cell goes on by a line. What it has called is answered whether it goes on or not.
    fn cell(&mut self, fence: Fence, attempt: Attempt, choice: u64) -> Result<Input, String> {
        match line(choice / 5) {
            Line::Calls(name, arguments) => {
                self.last_ticket += 1;
                let (ticket, caller) = (self.last_ticket, attempt.action);
                self.asked.insert(ticket);
                self.out.push(Command::Act { fence, attempt });
                Ok(Input::Called { ticket, fence, caller, name: name.into(), arguments: arguments.into() })
            }
            Line::Waits(arguments) => {
                self.judge.performed(attempt.action, &attempt.name)?;
                let outcome = End::waits("as far as the cell came", arguments);
                Ok(Input::Settled { fence, action: attempt.action, outcome })
            }
            Line::Ends => self.acted(fence, &attempt, choice),
        }
    }

    fn acted(&mut self, fence: Fence, attempt: &Attempt, choice: u64) -> Result<Input, String> {
        self.judge.performed(attempt.action, &attempt.name)?;
        let outcome = match (&*attempt.name, self.outcome_of(choice)) {
            ("look", outcome) if outcome.end.is_confirmed() => self.look(choice),
            ("change", outcome) if outcome.end.is_confirmed() => self.change(attempt),
            ("list", outcome) if outcome.end.is_confirmed() => {
                End::confirmed(format!("a {}", self.version / 4))
            }
            (_, outcome) => outcome,
        };
        Ok(Input::Settled { fence, action: attempt.action, outcome })
    }

    /// A read of some lines of the file as it is.
    fn look(&mut self, choice: u64) -> End {
        let text = file(self.version);
        self.judge.file(&text);
        let (offset, limit) = match choice % 4 {
            0 => (None, None),
            1 => (Some(choice % 30), Some(choice / 7 % 30)),
            2 => (Some(5), Some(10)),
            _ => (Some(choice % 40), None),
        };
        let content = context::Content::of(text.as_bytes());
        let read = context::Read { path: "a".into(), file: "/p/a".into(), content, offset, limit };
        End::answered(context::Answer::Read(read))
    }

    /// A change of the file, when the agent knows it as it is.
    fn change(&mut self, attempt: &Attempt) -> End {
        let before = context::Content::of(file(self.version).as_bytes());
        if let Err(unseen) = attempt.seen.check_change("/p/a", Some(before.hash())) {
            return End::failed(FailureKind::Refused, unseen.to_string());
        }
        self.version += 1;
        let after = context::Content::of(file(self.version).as_bytes());
        End::answered(context::Answer::Change(context::Change {
            path: "a".into(),
            file: "/p/a".into(),
            before: Some(before),
            after: Some(after),
            note: None,
        }))
    }

    fn delivered(&mut self, fence: Fence, delivery: &Delivery, choice: u64) -> Result<Input, String> {
        self.judge.performed(delivery.action(), &delivery.attempt().name)?;
        let mut outcome = self.outcome_of(choice);
        if outcome.end.is_confirmed() && delivery.channel() == "chat" && !choice.is_multiple_of(3) {
            let frame = &delivery.attempt().frame;
            let elsewhere =
                Conversation { instance: "chat".into(), id: format!("room{}", choice % 3).into() };
            let conversation = frame.destination.clone().unwrap_or(elsewhere);
            let reply_to = frame.anchors.first().map(|anchor| anchor.external_id.clone());
            let item = choice.is_multiple_of(5).then(|| format!("msg:{}", choice % 60).into());
            outcome.sent =
                Some(Box::new(Sent { conversation, reply_to, item, messages: vec!["msg:own".into()] }));
        }
        Ok(Input::Settled { fence, action: delivery.action(), outcome })
    }

    fn outcome_of(&self, choice: u64) -> End {
        match choice % 10 {
            0 | 1 if !self.tame => End::failed(FailureKind::Refused, "refused"),
            2 if !self.tame => End::unknown("unknown"),
            _ => End::confirmed(format!("done {}", "x".repeat(choice as usize % 300))),
        }
    }

    fn decision(&self, question: &Question, choice: u64) -> Result<Answer, HookFailure> {
        if self.tame {
            return Ok(question.default_answer());
        }
        match (choice % 6, question) {
            (0..3, Question::ContextSelect { events }) => {
                let some = events.iter().skip(choice as usize % events.len()).step_by(2);
                return Ok(Answer::Events(some.map(|candidate| candidate.event).collect()));
            }
            (0..3, Question::DeliveryTarget { conversations, .. }) => {
                return Ok(Answer::Text(conversations.last().cloned()));
            }
            (0..4, Question::CompactKeep { turns, .. }) => {
                return Ok(Answer::Count(choice as u32 % (turns + 1)));
            }
            _ => {}
        }
        match choice % 6 {
            0 => Err(HookFailure::Unavailable { reason: "gone".into() }),
            1 => Ok(Answer::Yes(true)),
            2 => Ok(Answer::Verdict(Verdict::Hold { reason: "look at it".into() })),
            3 => Ok(Answer::Verdict(Verdict::Deny { reason: "no".into() })),
            4 => Ok(Answer::Text(None)),
            _ => Ok(question.default_answer()),
        }
    }

    fn sampled(&mut self, fence: Fence, request: &Request, choice: u64) -> Input {
        let mut rng = Rng::with_seed(choice);
        if self.tame {
            return Input::Sampled { fence, sampled: tame_reply(request) };
        }
        if rng.u8(..) < 50 {
            let failure = match rng.u8(0..7) {
                0 => Failure::Disconnected("cut".to_owned()),
                1 => Failure::Stalled(Duration::from_secs(9)),
                2 => {
                    Failure::RateLimited { retry_after: Some(Duration::from_secs(2)), message: String::new() }
                }
                3 => Failure::Provider { status: Some(500), retry_after: None, message: String::new() },
                4 => Failure::ContextOverflow { limit: Some(4096), message: String::new() },
                5 => Failure::Refused { status: Some(400), message: "no".to_owned() },
                _ => Failure::Unauthorized { status: 401, message: "key".to_owned() },
            };
            return Input::SamplingFailed { fence, failure };
        }
        Input::Sampled { fence, sampled: wild_reply(&mut rng) }
    }
}

/// The file's content: some versions say the same as earlier ones, some are long.
fn file(version: u64) -> String {
    let version = version % 5;
    let lines = if version == 3 { 900 } else { 20 + version };
    (1..=lines).map(|line| format!("line {line} of version {version}\n")).collect()
}

fn sampling_fence(command: &Command) -> Option<Fence> {
    matches!(command, Command::Sample { .. }).then(|| fence_of(command)).flatten()
}

fn fence_of(command: &Command) -> Option<Fence> {
    match command {
        Command::Load { fence, .. }
        | Command::Sample { fence, .. }
        | Command::DropSampling { fence }
        | Command::Act { fence, .. }
        | Command::Deliver { fence, .. }
        | Command::Reconcile { fence, .. }
        | Command::Cancel { fence, .. }
        | Command::Decide { fence, .. } => Some(*fence),
        Command::Acknowledge { .. } | Command::Answer { .. } | Command::Activate { .. } => None,
    }
}

fn config(rng: &mut Rng) -> Config {
    let mut config = Config::new("sim".parse().expect("a name"), "model");
    config.context_tokens = [3_000, 8_000, 32_000][rng.usize(0..3)];
    config.limits.steps = rng.u32(3..12);
    config.limits.parallel = rng.usize(1..5);
    config.limits.inner_calls = rng.u32(2..20);
    config.toolset = [Toolset::Both, Toolset::Both, Toolset::Python, Toolset::Tools][rng.usize(0..4)];
    if config.toolset != Toolset::Tools {
        // What the prompt tells of cells has to fit too.
        config.context_tokens += 3_000;
    }
    let spec = |name: &str, role, class, cancellable, resource| ActionSpec {
        tool: ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        },
        role,
        class,
        cancellable,
        resource,
        deadline: Duration::from_secs(60),
    };
    let delivery = |channel: &str| Role::Delivery { channel: channel.into() };
    let path = || Resource::Argument("path".into());
    config.actions = vec![
        spec("local_send", delivery("local"), Class::Idempotent, false, Resource::Named("local".into())),
        spec("chat_send", delivery("chat"), Class::Irreversible, false, Resource::None),
        wait_tool(),
        mark_tool("chat_mark", "chat"),
        spec("look", Role::Ordinary, Class::Pure, true, path()),
        spec("change", Role::Ordinary, Class::Reversible, false, path()),
        spec("process", Role::Ordinary, Class::Irreversible, true, Resource::None),
        spec("list", Role::Ordinary, Class::Pure, true, Resource::None),
        spec("cell", Role::Cell, Class::Irreversible, true, Resource::Named("bench".into())),
        spec("absent", Role::Ordinary, Class::Irreversible, true, Resource::None),
    ];
    config.unavailable.insert("absent".into(), "not now".into());
    config.channels.insert("chat".into(), ChannelSettings { alias_prefix: "d".into(), ..Default::default() });
    let slots = [
        Slot::EventPriority,
        Slot::Wake,
        Slot::BatchDelay,
        Slot::Age,
        Slot::EventAccept,
        Slot::Limits,
        Slot::ResultShape,
        Slot::FrameRender,
        Slot::ContextBlocks,
        Slot::Idle,
        Slot::Nudge,
        Slot::Plan,
        Slot::ActionReview,
        Slot::DeliveryReview,
        Slot::DeliveryFormat,
        Slot::CompactWhen,
        Slot::CompactPrompt,
        Slot::CompactKeep,
        Slot::ContextSelect,
        Slot::DeliveryTarget,
    ];
    if rng.bool() {
        for slot in slots {
            if rng.u8(0..3) == 0 {
                config.bound.insert(slot, Duration::from_millis(rng.u64(10..5_000)));
            }
        }
    }
    config
}
