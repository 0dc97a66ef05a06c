//! The machine's world while a trace runs: an operator, files, and replies that are written down.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use klbr_core::action::{ActionSpec, Attempt, Class, FailureKind, Outcome, Resource, Role};
use klbr_core::agent::{Agent, wait_tool};
use klbr_core::config::Config;
use klbr_core::context::prefix::{Facts, Topic};
use klbr_core::context::{Answer, Change, Content, Read};
use klbr_core::event::{Body, Control, NewEvent};
use klbr_core::ids::EventId;
use klbr_core::input::{Command, Input};
use klbr_core::model::{Failure, Finish, Message, RawCall, Request, Sampled, ToolDefinition, Usage};
use klbr_core::record::Record;
use klbr_core::time::Timestamp;
use serde_json::Value;

use super::{Prompt, Purpose, Reply, Report, Sent, Trace};

/// Results that a naive prompt keeps.
const KEPT: usize = 3;

pub(super) struct World<'t> {
    trace: &'t Trace,
    prompt: Prompt,
    agent: Agent,
    now: Timestamp,
    bodies: BTreeMap<EventId, Body>,
    files: BTreeMap<String, Vec<String>>,
    out: VecDeque<Command>,
    replies: VecDeque<&'t Reply>,
    summary: Option<&'t str>,
    facts: Facts,
    /// Nothing was sent since the last prefix was made.
    is_fresh: bool,
    report: Report,
}

impl<'t> World<'t> {
    pub(super) fn new(trace: &'t Trace, prompt: Prompt) -> Self {
        let agent = Agent::restore(Arc::new(config(trace)), None, &[]).expect("nothing is easy to fold");
        World {
            trace,
            prompt,
            agent,
            now: Timestamp(1_800_000_000_000),
            bodies: BTreeMap::new(),
            files: trace.files.clone(),
            out: VecDeque::new(),
            replies: VecDeque::new(),
            summary: None,
            facts: Facts::default(),
            is_fresh: true,
            report: Report::default(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut ask: impl AsyncFnMut(Request) -> Result<Usage, Failure>,
    ) -> Result<Report, String> {
        self.handle(Input::Recovered);
        for (n, turn) in self.trace.turns.iter().enumerate() {
            self.now = Timestamp(self.now.0 + 90_000);
            self.replies = turn.steps.iter().collect();
            if let Some((mode, text)) = &turn.mode {
                self.facts.mode.clone_from(mode);
                self.facts.mode_text.clone_from(text);
            }
            self.report.interrupts += u64::from(turn.interrupt);
            self.admit(NewEvent::operator(format!("say:{n}"), turn.say.as_str()));
            self.settle(&mut ask, turn.interrupt).await?;
            if let Some(summary) = &turn.compact {
                self.summary = Some(summary);
                self.admit(NewEvent::control(format!("compact:{n}"), Control::Compact));
                self.settle(&mut ask, false).await?;
                if self.summary.is_some() {
                    return Err(format!("turn {n}: no summary was asked for"));
                }
            }
            self.report.turns += 1;
        }
        Ok(self.report)
    }

    fn admit(&mut self, event: NewEvent) {
        self.handle(Input::Admit { ticket: 0, event });
    }

    fn handle(&mut self, input: Input) {
        self.agent.handle(self.now, input);
        while let Some(step) = self.agent.poll() {
            for stamped in &step.records {
                match &stamped.record {
                    Record::PrefixMade { cause, .. } => {
                        self.report.causes.push(*cause);
                        self.is_fresh = true;
                    }
                    Record::PrefixBroken { .. } => self.report.undeclared += 1,
                    Record::FrameMade { told: Some(told), .. } => {
                        self.report.modes += u64::from(told.topics.contains(&Topic::Mode));
                    }
                    _ => {}
                }
            }
            self.bodies.extend(step.bodies);
            self.out.extend(step.commands);
        }
    }

    /// Answers everything that is asked until nothing is.
    async fn settle(
        &mut self,
        ask: &mut impl AsyncFnMut(Request) -> Result<Usage, Failure>,
        mut interrupt: bool,
    ) -> Result<(), String> {
        while let Some(command) = self.out.pop_front() {
            let input = match command {
                Command::Load { fence, events } => {
                    let bodies = events.iter().filter_map(|event| self.bodies.get(event).cloned()).collect();
                    Input::Loaded { fence, bodies, facts: Box::new(self.facts.clone()) }
                }
                Command::Sample { fence, request } => {
                    let usage = self.count(*request, ask).await?;
                    if std::mem::take(&mut interrupt) {
                        self.replies.clear();
                        self.admit(NewEvent::control(format!("interrupt:{}", self.now), Control::Interrupt));
                        continue;
                    }
                    Input::Sampled { fence, sampled: self.reply(usage)? }
                }
                Command::Act { fence, attempt } => {
                    let outcome = self.act(&attempt);
                    Input::Settled { fence, action: attempt.action, outcome }
                }
                Command::Deliver { fence, delivery } => {
                    Input::Settled { fence, action: delivery.action(), outcome: Outcome::confirmed("Sent.") }
                }
                Command::Acknowledge { .. }
                | Command::DropSampling { .. }
                | Command::Cancel { .. }
                | Command::Activate { .. }
                | Command::Answer { .. } => {
                    continue;
                }
                Command::Reconcile { .. } | Command::Decide { .. } => {
                    return Err("the trace has no crash and no policy".to_owned());
                }
            };
            self.handle(input);
        }
        Ok(())
    }

    async fn count(
        &mut self,
        mut request: Request,
        ask: &mut impl AsyncFnMut(Request) -> Result<Usage, Failure>,
    ) -> Result<Usage, String> {
        let purpose = match (std::mem::take(&mut self.is_fresh), self.agent.status().compacting) {
            (_, true) => Purpose::Summary,
            (true, false) => Purpose::Fresh,
            (false, false) => Purpose::Step,
        };
        if self.prompt == Prompt::Naive {
            request.system = format!("It is {}.\n\n{}", self.now, request.system).into();
            let results = request.messages.iter_mut().rev().filter_map(|message| match message {
                Message::Tool { text, .. } => Some(text),
                Message::User { .. } | Message::Assistant(_) => None,
            });
            results.skip(KEPT).for_each(|text| *text = "[old result removed]".into());
        }
        request.parameters.max_output_tokens = Some(1);
        let usage = ask(request).await.map_err(|failure| failure.to_string())?;
        self.report.sent.push(Sent { purpose, usage });
        Ok(usage)
    }

    fn reply(&mut self, usage: Usage) -> Result<Sampled, String> {
        if self.agent.status().compacting {
            let text = self.summary.take().ok_or("a summary was asked for")?.to_owned();
            return Ok(Sampled { text, finish: Finish::Stop, usage: Some(usage), ..Sampled::default() });
        }
        let reply = self.replies.pop_front().ok_or("the trace has no reply left for this turn")?;
        let call = |(name, arguments): &(String, Value)| RawCall {
            id: None,
            name: name.clone(),
            arguments: arguments.to_string(),
        };
        Ok(Sampled {
            text: reply.text.clone(),
            reasoning: reply.think.clone(),
            calls: reply.calls.iter().map(call).collect(),
            finish: Finish::ToolCalls,
            usage: Some(usage),
        })
    }

    fn act(&mut self, attempt: &Attempt) -> Outcome {
        let arguments: Value = serde_json::from_str(&attempt.arguments).unwrap_or_default();
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let path = text("path");
        let content = |lines: &[String]| Content::of((lines.join("\n") + "\n").as_bytes());
        let file = format!("/project/{path}");
        match (&*attempt.name, self.files.get_mut(&path)) {
            ("read", Some(lines)) => Outcome::answered(Answer::Read(Read {
                path,
                file,
                content: content(lines),
                offset: None,
                limit: None,
            })),
            ("edit", Some(lines)) => {
                let before = content(lines);
                if let Err(unseen) = attempt.seen.check_change(&file, Some(before.hash())) {
                    return Outcome::failed(FailureKind::Refused, unseen.to_string());
                }
                let line = arguments["line"].as_u64().unwrap_or(1).clamp(1, lines.len() as u64) as usize;
                lines[line - 1] = text("text");
                let after = Some(content(lines));
                Outcome::answered(Answer::Change(Change {
                    path,
                    file,
                    before: Some(before),
                    after,
                    note: None,
                }))
            }
            ("list", _) => Outcome::confirmed(self.files.keys().cloned().collect::<Vec<_>>().join("\n")),
            _ => Outcome::confirmed(format!("$ {}\nok, 3 passed\n", text("command"))),
        }
    }
}

fn config(trace: &Trace) -> Config {
    let mut config = Config::new("trace".parse().expect("a name"), "tiny");
    config.soul = trace.soul.as_str().into();
    config.context_tokens = 1_000_000;
    let spec = |name: &str, role, properties: Value| ActionSpec {
        tool: ToolDefinition {
            name: name.to_owned(),
            description: format!("The action {name} of the project."),
            parameters: serde_json::json!({ "type": "object", "properties": properties }),
        },
        role,
        class: Class::Idempotent,
        cancellable: true,
        resource: Resource::Argument("path".into()),
        deadline: Duration::from_secs(60),
    };
    let string = || serde_json::json!({ "type": "string" });
    config.actions = vec![
        spec(
            "local_send",
            Role::Delivery { channel: "local".into() },
            serde_json::json!({ "content": string() }),
        ),
        wait_tool(),
        spec("read", Role::Ordinary, serde_json::json!({ "path": string() })),
        spec("edit", Role::Ordinary, serde_json::json!({ "path": string(), "text": string() })),
        spec("list", Role::Ordinary, serde_json::json!({ "path": string() })),
        spec("run", Role::Ordinary, serde_json::json!({ "command": string() })),
    ];
    config
}
