//! The machine, as scripts in and transcripts out. Each rule that a transcript shows is named beside it.

mod activation;
mod attention;
mod choosing;
mod inner;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use klbr_core::action::{ActionSpec, Class, FailureKind, Outcome, Resource, Role};
use klbr_core::agent::{Agent, wait_tool};
use klbr_core::config::{ChannelSettings, Config};
use klbr_core::context::prefix::Facts;
use klbr_core::event::{Body, Control, NewEvent, Priority, Source, SourceKind};
use klbr_core::ids::{ActionId, EventId, Fence};
use klbr_core::input::{Command, Input};
use klbr_core::model::{Delta, Failure, Finish, Message, RawCall, Request, Sampled, ToolDefinition};
use klbr_core::policy::{Answer, HookFailure, Slot, Verdict};
use klbr_core::record::{Record, Stamped};
use klbr_core::time::Timestamp;

/// An agent under a script: everything that it says is written down.
pub(crate) struct Script {
    pub(crate) agent: Agent,
    pub(crate) config: Arc<Config>,
    pub(crate) kept: Vec<Stamped>,
    bodies: Vec<(EventId, Body)>,
    pub(crate) out: Vec<Command>,
    pub(crate) facts: Facts,
    pub(crate) now: Timestamp,
    pub(crate) ticket: u64,
    pub(crate) log: String,
}

pub(crate) fn check(script: impl FnOnce(&mut Script), expected: Expect) {
    check_with(|_| {}, script, expected);
}

pub(crate) fn check_with(
    configure: impl FnOnce(&mut Config),
    script: impl FnOnce(&mut Script),
    expected: Expect,
) {
    let mut run = begun(configure);
    script(&mut run);
    assert!(run.agent.ledger().balances(), "{}", run.agent.ledger());
    expected.assert_eq(&run.log);
}

/// A new agent under a script.
pub(crate) fn begun(configure: impl FnOnce(&mut Config)) -> Script {
    let mut config = Config::new("ada".parse().unwrap(), "m");
    config.channels.insert("chat".into(), ChannelSettings { alias_prefix: "d".into(), ..Default::default() });
    let delivery = |channel: &str| Role::Delivery { channel: channel.into() };
    config.actions = vec![
        action("local_send", delivery("local"), Class::Idempotent, false),
        action("chat_send", delivery("chat"), Class::Irreversible, false),
        wait_tool(),
        action("look", Role::Ordinary, Class::Pure, true),
        action("process", Role::Ordinary, Class::Irreversible, true),
    ];
    configure(&mut config);
    let config = Arc::new(config);
    let agent = Agent::restore(config.clone(), None, &[]).unwrap();
    let mut run = Script {
        agent,
        config,
        kept: Vec::new(),
        bodies: Vec::new(),
        out: Vec::new(),
        facts: Facts::default(),
        now: Timestamp(1_762_300_800_000),
        ticket: 0,
        log: String::new(),
    };
    run.handle(Input::Recovered);
    run
}

pub(crate) fn action(name: &str, role: Role, class: Class, cancellable: bool) -> ActionSpec {
    let parameters = serde_json::json!({ "type": "object" });
    ActionSpec {
        tool: ToolDefinition { name: name.to_owned(), description: String::new(), parameters },
        role,
        class,
        cancellable,
        resource: Resource::None,
        deadline: Duration::from_secs(60),
    }
}

impl Script {
    pub(crate) fn handle(&mut self, input: Input) {
        self.agent.handle(self.now, input);
        while let Some(step) = self.agent.poll() {
            for stamped in &step.records {
                let line = describe(&stamped.record);
                writeln!(self.log, "  {line}").unwrap();
            }
            self.kept.extend(step.records);
            self.bodies.extend(step.bodies);
            for command in step.commands {
                match &command {
                    Command::Load { fence, events } => {
                        let body =
                            |id: &EventId| self.bodies.iter().find(|(i, _)| i == id).unwrap().1.clone();
                        let bodies = events.iter().map(body).collect();
                        let fence = *fence;
                        let facts = Box::new(self.facts.clone());
                        self.agent.handle(self.now, Input::Loaded { fence, bodies, facts });
                        continue;
                    }
                    Command::Acknowledge { .. } => continue,
                    Command::Answer { answered, .. } => {
                        let action = answered.action.map(|action| format!("{action} ")).unwrap_or_default();
                        writeln!(self.log, "  → answer {action}{} {:?}", answered.code(), answered.told)
                            .unwrap();
                        continue;
                    }
                    Command::Sample { .. } => writeln!(self.log, "  → sample").unwrap(),
                    Command::DropSampling { .. } => writeln!(self.log, "  → drop the sampling").unwrap(),
                    Command::Act { attempt, .. } => writeln!(self.log, "  → act {}", attempt.name).unwrap(),
                    Command::Deliver { delivery, .. } => {
                        writeln!(self.log, "  → deliver {}", delivery.attempt().arguments).unwrap();
                    }
                    Command::Reconcile { attempt, .. } => {
                        writeln!(self.log, "  → reconcile {}", attempt.name).unwrap();
                    }
                    Command::Cancel { action, .. } => writeln!(self.log, "  → cancel {action}").unwrap(),
                    Command::Activate { epoch, manifest } => {
                        let manifest = manifest.as_deref().unwrap_or("nothing");
                        writeln!(self.log, "  → {epoch}: {manifest}").unwrap();
                        continue;
                    }
                    Command::Decide { question, .. } => {
                        writeln!(self.log, "  → decide {}", question.slot().as_str()).unwrap();
                    }
                }
                self.out.push(command);
            }
        }
    }

    /// Comes so far without a word of it in the transcript, which then begins with what is looked at.
    pub(crate) fn unlogged(&mut self, beginning: impl FnOnce(&mut Self)) {
        let length = self.log.len();
        beginning(self);
        self.log.truncate(length);
    }

    pub(crate) fn note(&mut self, what: &str) {
        writeln!(self.log, "{what}").unwrap();
    }

    pub(crate) fn admit(&mut self, event: NewEvent) {
        self.ticket += 1;
        self.handle(Input::Admit { ticket: self.ticket, event });
    }

    pub(crate) fn operator(&mut self, text: &str) {
        self.note(&format!("operator: {text}"));
        let key = format!("k{}", self.ticket);
        self.admit(NewEvent::operator(key, text));
    }

    pub(crate) fn control(&mut self, control: Control) {
        self.note(&format!("control: {}", control.verb()));
        let key = format!("k{}", self.ticket);
        self.admit(NewEvent::control(key, control));
    }

    pub(crate) fn chat(&mut self, priority: Priority, room: &str, text: &str) {
        self.note(&format!("chat {room}: {text}"));
        let key = format!("msg:{}", self.ticket);
        let source = Source::new(SourceKind::Channel, "chat");
        self.admit(NewEvent::external(source, key, priority, Body::text(text)).in_conversation(room));
    }

    pub(crate) fn sampling(&mut self) -> Fence {
        let at =
            self.out.iter().rposition(|c| matches!(c, Command::Sample { .. })).expect("a sampling is out");
        let Command::Sample { fence, .. } = self.out.remove(at) else { unreachable!() };
        fence
    }

    pub(crate) fn reply(&mut self, sampled: Sampled) {
        let fence = self.sampling();
        let calls: Vec<&str> = sampled.calls.iter().map(|call| call.name.as_str()).collect();
        self.note(&format!("model: {:?} {}", sampled.text, calls.join(" ")));
        self.handle(Input::Sampled { fence, sampled });
    }

    pub(crate) fn says(&mut self, text: &str, calls: &[(&str, &str)]) {
        let calls = calls
            .iter()
            .map(|(name, arguments)| RawCall {
                id: None,
                name: (*name).into(),
                arguments: (*arguments).into(),
            })
            .collect();
        self.reply(Sampled { text: text.into(), calls, ..Sampled::default() });
    }

    pub(crate) fn fails(&mut self, failure: Failure) {
        let fence = self.sampling();
        self.note(&format!("model fails: {failure}"));
        self.handle(Input::SamplingFailed { fence, failure });
    }

    /// Answers the oldest attempt that is out.
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        self.settle_where(|_| true, outcome);
    }

    /// Answers the oldest attempt that is out of an action like this.
    pub(crate) fn settle_where(&mut self, is_it: impl Fn(ActionId) -> bool, outcome: Outcome) {
        let is_attempt = |c: &Command| match c {
            Command::Act { attempt, .. } | Command::Reconcile { attempt, .. } => is_it(attempt.action),
            Command::Deliver { delivery, .. } => is_it(delivery.action()),
            _ => false,
        };
        let at = self.out.iter().position(is_attempt).expect("an attempt is out");
        let (fence, action) = match self.out.remove(at) {
            Command::Act { fence, attempt } | Command::Reconcile { fence, attempt, .. } => {
                (fence, attempt.action)
            }
            Command::Deliver { fence, delivery } => (fence, delivery.action()),
            other => unreachable!("{other:?}"),
        };
        self.note(&format!("{action} ends: {}", outcome.observation));
        self.handle(Input::Settled { fence, action, outcome });
    }

    pub(crate) fn decide(&mut self, answer: Result<Answer, HookFailure>) {
        let at =
            self.out.iter().position(|c| matches!(c, Command::Decide { .. })).expect("a question is out");
        let Command::Decide { fence, .. } = self.out.remove(at) else { unreachable!() };
        self.note("policy answers");
        self.handle(Input::Decided { fence, answer, elapsed: Duration::from_millis(1) });
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.note(&format!("{seconds} s pass"));
        self.now = self.now + Duration::from_secs(seconds);
        self.handle(Input::Deadline);
    }

    /// Kills the process and begins anew from the records.
    pub(crate) fn crash(&mut self) {
        self.note("crash");
        self.out.clear();
        self.agent = Agent::restore(self.config.clone(), None, &self.kept).unwrap();
        self.handle(Input::Recovered);
    }

    /// The newest request.
    pub(crate) fn request(&self) -> Request {
        let request = |command: &Command| match command {
            Command::Sample { request, .. } => Some(Request::clone(request)),
            _ => None,
        };
        self.out.iter().rev().find_map(request).expect("a sampling is out")
    }

    /// Writes down the messages of the newest request, from `skip` on.
    pub(crate) fn show_request(&mut self, skip: usize) {
        for message in &self.request().messages[skip..] {
            let text = match message {
                Message::User { text, .. } => format!("user: {text}"),
                Message::Assistant(said) => format!("assistant: {} [{} calls]", said.text, said.calls.len()),
                Message::Tool { text, .. } => format!("tool: {text}"),
            };
            writeln!(self.log, "  | {}", text.replace('\n', "\n  |   ")).unwrap();
        }
    }
}

/// One record in one line: its kind, and what a reader of these transcripts needs of it.
fn describe(record: &Record) -> String {
    let detail = match record {
        Record::Admitted { event, .. } => format!("{} {:?}", event.id, event.priority),
        Record::Consumed { event } => event.to_string(),
        Record::Aliased { alias, .. } => alias.to_string(),
        Record::Reprioritised { event, priority } => format!("{event} {priority:?}"),
        Record::FrameMade { frame, events, .. } => {
            let events: Vec<String> = events.iter().map(ToString::to_string).collect();
            format!("{frame} [{}]", events.join(" "))
        }
        Record::Folded { events } | Record::Withdrawn { events } => {
            events.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
        Record::Activated { epoch, manifest, bound, .. } => {
            format!("{epoch} {} binds {}", manifest.as_deref().unwrap_or("nothing"), bound.len())
        }
        Record::ObserverAdvanced { observer, through, .. } => format!("{observer} through {through}"),
        Record::Scheduled { key, .. } | Record::ScheduleKept { key, .. } => key.to_string(),
        Record::Ended { action, end, .. } => format!("{action} {end:?}"),
        Record::Declined { event } => event.to_string(),
        Record::Marked { item, status, action, decider, .. } => {
            format!("{item} {} {} by {decider}", status.as_str(), action.as_str())
        }
        Record::TurnStarted { turn, cause, .. } => format!("{turn} {cause:?}"),
        Record::PrefixMade { generation, cause, .. } => format!("{generation} {cause:?}"),
        Record::Nudged { nudge, .. } => format!("{nudge:?}"),
        Record::StepRequested { step, .. }
        | Record::StepRetried { step }
        | Record::StepSampled { step, .. } => step.to_string(),
        Record::SamplingFailed { step, retry_at, .. } => {
            format!("{step} {}", if retry_at.is_some() { "retried later" } else { "for good" })
        }
        Record::SamplingAborted { text, .. } => format!("{text:?}"),
        Record::Called { action, name, .. } => format!("{action} {name}"),
        Record::Yielded { action, .. } | Record::Intended { action, .. } => action.to_string(),
        Record::Attempted { action, number } => format!("{action} #{number}"),
        Record::Settled { action, end, result, .. } => format!("{action} {end:?} {:?}", result.full),
        Record::Held { action, result, .. } | Record::Detached { action, result } => {
            format!("{action} {:?}", result.full)
        }
        Record::Receipt { action, end, .. } => format!("{action} {end:?}"),
        Record::WaitEntered { action, duration, .. } => format!("{action} {} s", duration.as_secs()),
        Record::WaitEnded { result, .. } => format!("{:?}", result.full),
        Record::TurnEnded { turn, end, returned } => format!("{turn} {end:?} returned {}", returned.len()),
        Record::Decided { slot, failure, .. } => {
            format!("{}{}", slot.as_str(), if failure.is_some() { " by default" } else { "" })
        }
        Record::LateDropped { what } => what.to_string(),
        Record::CompactionFailed { why, again } => format!("{why:?} again {again}"),
        Record::Compacted { covers, .. } => format!("{covers} messages"),
        Record::DeadLettered { messages, .. } => format!("{messages} messages"),
        _ => String::new(),
    };
    format!("{} {detail}", record.kind()).trim_end().to_owned()
}

pub(crate) const WAIT: (&str, &str) = ("wait_and_continue", r#"{"seconds":60}"#);

#[test]
fn an_operator_is_answered_and_the_agent_waits() {
    check(
        |s| {
            s.operator("hi");
            s.show_request(0);
            s.says("", &[("local_send", r#"{"content":"hey"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.pass(60);
            s.show_request(2);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
              | user: <operator id="E1" time="2025-11-05T00:00:00Z">
              |   hi
              |   </operator>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {"content":"hey"}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
            60 s pass
              wait_ended "Waited 1m 00s; nothing came. It is 2025-11-05T00:01:00Z."
              turn_started T2 WaitTimedOut
              step_requested 2.1
              → sample
              | tool: [#0001]
              |   Sent.
              | tool: [#0002]
              |   Waited 1m 00s; nothing came. It is 2025-11-05T00:01:00Z.
        "#]],
    );
}

#[test]
fn text_without_a_delivery_gets_one_nudge_and_is_never_forwarded() {
    // B-SPEECH-3, C-YLD-5: also when a wait was asked for, which is then not entered.
    check(
        |s| {
            s.operator("hi");
            s.says("I should greet them.", &[WAIT]);
            s.show_request(2);
            s.says("Still only thinking.", &[]);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "I should greet them." wait_and_continue
              step_sampled 1.1
              settled 1.1.1 Failed { why: NotRun } "Not waiting: something is to be done first."
              nudged Delivery
              step_requested 1.2
              → sample
              | tool: [#0001]
              |   Not waiting: something is to be done first.
              | user: <nudge>
              |   You wrote text, but text is your scratchpad and reached nobody. If you have an answer, call local_send now; if you have none, wait.
              |   </nudge>
            model: "Still only thinking." 
              step_sampled 1.2
              turn_ended T1 NothingDelivered returned 0
              turn_started T2 Idle
              nudged Idle
              step_requested 2.1
              → sample
        "#]],
    );
}

#[test]
fn an_operator_preempts_a_stream_and_a_late_call_does_not_run() {
    // B-EVENT-2, C-MSG-3.
    check(
        |s| {
            s.operator("one");
            let fence = s.sampling();
            s.handle(Input::Delta { fence, delta: Delta::Scratch("half a th".into()) });
            s.operator("two");
            s.note("the old stream's call comes late");
            let call = RawCall { id: None, name: "process".into(), arguments: "{}".into() };
            s.handle(Input::Sampled { fence, sampled: Sampled { calls: vec![call], ..Sampled::default() } });
            s.show_request(1);
        },
        expect![[r#"
            operator: one
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            operator: two
              admitted E2 Operator
              sampling_aborted "half a th"
              turn_ended T1 Preempted { by: "operator" } returned 0
              → drop the sampling
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            the old stream's call comes late
              late_dropped a reply
              | assistant: half a th [0 calls]
              | user: <interrupted by="operator"/>
              |   <operator id="E2" time="2025-11-05T00:00:00Z">
              |   two
              |   </operator>
        "#]],
    );
}

#[test]
fn preemption_kills_what_can_be_killed_and_detaches_the_rest() {
    // C-EFF-2, C-REC-3: the receipt that comes later is an event, never an edit.
    check(
        |s| {
            s.chat(Priority::Directed, "room", "send it and build it");
            s.says("", &[("chat_send", r#"{"content":"on it"}"#), ("process", "{}")]);
            s.operator("stop that");
            s.settle(Outcome::unknown("the line went dead"));
            s.says("", &[("local_send", r#"{"content":"stopped"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
        },
        expect![[r#"
            chat room: send it and build it
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" chat_send process
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              attempted 1.1.2 #1
              → deliver {"content":"on it"}
              → act process
            operator: stop that
              admitted E2 Operator
              detached 1.1.1 "Begun before the interrupt by operator; the receipt of 1.1.1 follows."
              settled 1.1.2 Failed { why: Cancelled } "Cancelled while it ran: interrupted by operator. What it had done until then is not known."
              turn_ended T1 Preempted { by: "operator" } returned 1
              → cancel 1.1.2
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            1.1.1 ends: the line went dead
              receipt 1.1.1 Unknown
              admitted E3 Directed
            model: "" local_send wait_and_continue
              step_sampled 2.1
              intended 2.1.1
              attempted 2.1.1 #1
              → deliver {"content":"stopped"}
            1.1.2 ends: Sent.
              late_dropped the outcome of 1.1.2: Sent.
        "#]],
    );
}

#[test]
fn unanswered_messages_wait_again_after_preemption_and_are_named_by_reference() {
    // C-FRM-3.
    check(
        |s| {
            s.chat(Priority::Directed, "room", "are you there?");
            s.operator("quick question");
            s.says("", &[("local_send", r#"{"content":"yes?"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.show_request(5);
        },
        expect![[r#"
            chat room: are you there?
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            operator: quick question
              admitted E2 Operator
              sampling_aborted "(interrupted)"
              turn_ended T1 Preempted { by: "operator" } returned 1
              → drop the sampling
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            model: "" local_send wait_and_continue
              step_sampled 2.1
              intended 2.1.1
              attempted 2.1.1 #1
              → deliver {"content":"yes?"}
            2.1.1 ends: Sent.
              settled 2.1.1 Confirmed "Sent."
              wait_entered 2.1.2 60 s
              turn_ended T2 Waits returned 0
              wait_ended "Woken after 0ms by channel chat. It is 2025-11-05T00:00:00Z."
              frame_made F3 [E1]
              turn_started T3 Events
              step_requested 3.1
              → sample
              | tool: [#0002]
              |   Woken after 0ms by channel chat. It is 2025-11-05T00:00:00Z.
              | user: <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E1" ref="msg:0" time="2025-11-05T00:00:00Z" shown="above">still open</message>
              |   </channel>
        "#]],
    );
}

#[test]
fn a_directed_message_ends_a_wait_and_an_ambient_one_gathers() {
    // C-YLD-1, B-WAIT-4, B-DIS-3.
    check(
        |s| {
            s.chat(Priority::Ambient, "room", "chatter");
            s.pass(3);
            s.chat(Priority::Directed, "room", "@ada?");
            s.says("", &[("chat_send", r#"{"content":"here"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.chat(Priority::Ambient, "room", "more chatter");
            s.pass(8);
            s.says("nothing for me", &[]);
        },
        expect![[r#"
            chat room: chatter
              aliased d1
              admitted E1 Ambient
            3 s pass
            chat room: @ada?
              admitted E2 Directed
              prefix_made G1 First
              frame_made F1 [E1 E2]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" chat_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {"content":"here"}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
            chat room: more chatter
              admitted E3 Ambient
            8 s pass
              wait_ended "Woken after 8s by channel chat. It is 2025-11-05T00:00:11Z."
              frame_made F2 [E3]
              turn_started T2 Events
              step_requested 2.1
              → sample
            model: "nothing for me" 
              step_sampled 2.1
              nudged Silence
              step_requested 2.2
              → sample
        "#]],
    );
}

#[test]
fn a_wait_beside_a_failure_is_not_entered_and_nonsense_waits_are_refused() {
    // C-YLD-2, B-WAIT-2.
    check(
        |s| {
            s.operator("hi");
            s.says("", &[WAIT, ("look", "{}"), WAIT]);
            s.settle(Outcome::failed(FailureKind::Refused, "no such file"));
            s.says("", &[("wait_and_continue", r#"{"seconds":-1}"#)]);
            s.says("", &[("no_such", "{}"), ("look", r#"{"path": "#)]);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" wait_and_continue look wait_and_continue
              step_sampled 1.1
              intended 1.1.2
              attempted 1.1.2 #1
              → act look
            1.1.2 ends: no such file
              settled 1.1.2 Failed { why: Refused } "no such file"
              settled 1.1.3 Failed { why: Invalid } "Not waiting: a turn waits once, and another wait stands before this one."
              settled 1.1.1 Failed { why: NotRun } "Not waiting: look beside it did not succeed; see its result."
              step_requested 1.2
              → sample
            model: "" wait_and_continue
              step_sampled 1.2
              settled 1.2.1 Failed { why: Invalid } "Not waiting: seconds is not a time to wait: it has to be at least a millisecond."
              step_requested 1.3
              → sample
            model: "" no_such look
              step_sampled 1.3
              settled 1.3.1 Failed { why: Invalid } "There is no action \"no_such\". There are: local_send, chat_send, wait_and_continue, look, process."
              settled 1.3.2 Failed { why: Invalid } "Not run: the arguments are not a JSON object: EOF while parsing a value at line 1 column 9."
              step_requested 1.4
              → sample
        "#]],
    );
}

#[test]
fn a_crash_between_attempt_and_receipt_repeats_only_what_is_harmless() {
    // C-REC-2, C-EFF-1.
    check(
        |s| {
            s.chat(Priority::Directed, "room", "hello");
            s.says("", &[("local_send", r#"{"content":"a"}"#), ("chat_send", r#"{"content":"b"}"#)]);
            s.crash();
            s.settle(Outcome::unknown("nobody knows"));
            s.settle(Outcome::confirmed("Sent."));
            s.crash();
        },
        expect![[r#"
            chat room: hello
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" local_send chat_send
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              attempted 1.1.2 #1
              → deliver {"content":"a"}
              → deliver {"content":"b"}
            crash
              recovered
              attempted 1.1.1 #2
              → deliver {"content":"a"}
              → reconcile chat_send
            1.1.1 ends: nobody knows
              settled 1.1.1 Unknown "nobody knows"
            1.1.2 ends: Sent.
              settled 1.1.2 Confirmed "Sent."
              step_requested 1.2
              → sample
            crash
              recovered
              step_retried 1.2
              → sample
        "#]],
    );
}

#[test]
fn what_a_crash_cut_off_ends_as_unknown_when_an_interrupt_comes_before_it_was_asked_after() {
    // C-REC-2, C-EFF-2.
    check(
        |s| {
            s.chat(Priority::Directed, "room", "hello");
            s.says("", &[("process", r#"{"command":"a"}"#)]);
            s.crash();
            s.operator("stop that");
        },
        expect![[r#"
            chat room: hello
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" process
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → act process
            crash
              recovered
              → reconcile process
            operator: stop that
              admitted E2 Operator
              settled 1.1.1 Unknown "The process ended while this was under way. Whether it happened is not known. Asking after it was interrupted by operator."
              turn_ended T1 Preempted { by: "operator" } returned 1
              → cancel 1.1.1
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
        "#]],
    );
}

#[test]
fn a_wait_survives_a_crash_and_fires_once() {
    // B-WAIT-3.
    check(
        |s| {
            s.operator("hi");
            s.says("", &[("local_send", r#"{"content":"hey"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.crash();
            s.pass(300);
            s.crash();
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {"content":"hey"}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
            crash
              recovered
            300 s pass
              wait_ended "Waited 5m 00s; nothing came. It is 2025-11-05T00:05:00Z."
              turn_started T2 WaitTimedOut
              step_requested 2.1
              → sample
            crash
              recovered
              step_retried 2.1
              → sample
        "#]],
    );
}

#[test]
fn a_failing_provider_is_retried_with_the_same_request_and_refusals_dead_letter() {
    // B-EVENT-6, C-FRM-3.
    check(
        |s| {
            s.operator("hi");
            s.fails(Failure::Disconnected("cut".into()));
            s.pass(2);
            for _ in 0..3 {
                s.fails(Failure::Refused { status: Some(400), message: "bad image".into() });
                s.pass(60);
            }
            s.operator("again");
            s.show_request(0);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model fails: the provider could not be reached or hung up: cut
              sampling_failed 1.1 retried later
            2 s pass
              step_retried 1.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 1.1 retried later
            60 s pass
              step_retried 1.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 1.1 retried later
            60 s pass
              step_retried 1.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 1.1 for good
              dead_lettered 1 messages
              sampling_aborted "(interrupted)"
              turn_ended T1 Refused returned 0
              prefix_made G2 Refused
              turn_started T2 Idle
              nudged Idle
              step_requested 2.1
              → sample
            60 s pass
            operator: again
              admitted E2 Operator
              sampling_aborted "(interrupted)"
              turn_ended T2 Preempted { by: "operator" } returned 0
              → drop the sampling
              frame_made F2 [E2]
              turn_started T3 Events
              step_requested 3.1
              → sample
              | user: <instructions>
              |   What stood here was refused by the provider and has been taken out: the provider refused the request (HTTP 400): bad image
              |   </instructions>
              | assistant: (interrupted) [0 calls]
              | user: <nudge>
              |   Nothing has happened for 2m 02s. Carry on with something of your own, or wait for what comes.
              |   </nudge>
              | assistant: (interrupted) [0 calls]
              | user: <interrupted by="operator"/>
              |   <operator id="E2" time="2025-11-05T00:03:02Z">
              |   again
              |   </operator>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
        "#]],
    );
}

#[test]
fn idle_turns_come_after_a_yield_without_a_wait() {
    // C-YLD-4, B-EVENT-5.
    check(
        |s| {
            s.operator("hi");
            s.says("", &[("local_send", r#"{"content":"hey"}"#)]);
            s.settle(Outcome::confirmed("Sent."));
            s.says("", &[]);
            s.says("", &[]);
            s.pass(29);
            s.pass(1);
            s.show_request(6);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" local_send
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {"content":"hey"}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              step_requested 1.2
              → sample
            model: "" 
              step_sampled 1.2
              turn_ended T1 Yielded returned 0
              turn_started T2 Idle
              nudged Idle
              step_requested 2.1
              → sample
            model: "" 
              step_sampled 2.1
              turn_ended T2 Yielded returned 0
            29 s pass
            1 s pass
              turn_started T3 Idle
              nudged Idle
              step_requested 3.1
              → sample
              | user: <nudge>
              |   Nothing has happened for 30s. Carry on with something of your own, or wait for what comes.
              |   </nudge>
        "#]],
    );
}

#[test]
fn a_required_review_that_fails_holds_the_action_for_the_operator() {
    check_with(
        |config| {
            config.bound.insert(Slot::DeliveryReview, Duration::from_millis(300));
        },
        |s| {
            s.operator("hi");
            s.says("", &[("local_send", r#"{"content":"hey"}"#)]);
            s.decide(Err(HookFailure::Deadline));
            s.control(Control::Resolve { action: "1.1.1".parse().unwrap(), allow: true });
            s.settle(Outcome::confirmed("Sent."));
            s.says("", &[("local_send", r#"{"content":"there"}"#)]);
            s.decide(Ok(Answer::Verdict(Verdict::Deny { reason: "twice".into() })));
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" local_send
              step_sampled 1.1
              → decide delivery.review
            policy answers
              decided delivery.review by default
              held 1.1.1 "Held for review, 1.1.1: delivery.review could not decide: no answer by the deadline"
              step_requested 1.2
              → sample
            control: resolve
              admitted E2 Control
              attempted 1.1.1 #1
              consumed E2
              → deliver {"content":"hey"}
            1.1.1 ends: Sent.
              receipt 1.1.1 Confirmed
              admitted E3 Ambient
            model: "" local_send
              step_sampled 1.2
              → decide delivery.review
            policy answers
              decided delivery.review
              settled 1.2.1 Failed { why: Denied } "Denied: twice"
              step_requested 1.3
              → sample
        "#]],
    );
}

#[test]
fn limits_end_in_one_wrap_up() {
    // B-EVENT-7, C-YLD-6.
    check_with(
        |config| config.limits.identical_failures = 2,
        |s| {
            s.operator("hi");
            for _ in 0..2 {
                s.says("", &[("look", "{}")]);
                s.settle(Outcome::failed(FailureKind::Refused, "no"));
            }
            s.says("", &[("look", "{}"), ("local_send", r#"{"content":"I cannot look"}"#)]);
            s.settle(Outcome::confirmed("Sent."));
            s.says("", &[]);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" look
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → act look
            1.1.1 ends: no
              settled 1.1.1 Failed { why: Refused } "no"
              step_requested 1.2
              → sample
            model: "" look
              step_sampled 1.2
              intended 1.2.1
              attempted 1.2.1 #1
              → act look
            1.2.1 ends: no
              settled 1.2.1 Failed { why: Refused } "no"
              nudged WrapUp
              step_requested 1.3
              → sample
            model: "" look local_send
              step_sampled 1.3
              settled 1.3.1 Failed { why: NotRun } "Not run: the turn has reached its limit; only sending and waiting are left."
              intended 1.3.2
              attempted 1.3.2 #1
              → deliver {"content":"I cannot look"}
            1.3.2 ends: Sent.
              settled 1.3.2 Confirmed "Sent."
              step_requested 1.4
              → sample
            model: "" 
              step_sampled 1.4
              turn_ended T1 LimitReached returned 0
              turn_started T2 Idle
              nudged Idle
              step_requested 2.1
              → sample
        "#]],
    );
}

#[test]
fn a_summary_takes_the_place_of_what_it_covers() {
    // C-PFX-2; a call in the summary's reply is not run.
    check(
        |s| {
            s.operator(&"a long story ".repeat(40));
            s.says("", &[("local_send", r#"{"content":"I see"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.control(Control::Compact);
            s.says("they told me a long story", &[("process", "{}")]);
            s.operator("so?");
            s.show_request(1);
        },
        expect![[r#"
            operator: a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story a long story 
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {"content":"I see"}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
            control: compact
              admitted E2 Control
              wait_ended "Ended after 0ms by the operator's compact. It is 2025-11-05T00:00:00Z."
              compaction_wanted
              consumed E2
              compaction_requested
              → sample
            model: "they told me a long story" process
              compacted 4 messages
            operator: so?
              admitted E3 Operator
              prefix_made G2 Compaction
              frame_made F2 [E3]
              turn_started T2 Events
              step_requested 2.1
              → sample
              | assistant: they told me a long story
              |   
              |   (Summary 1: history_expand shows every message that it stands for.) [0 calls]
              | user: <operator id="E3" time="2025-11-05T00:00:00Z">
              |   so?
              |   </operator>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
        "#]],
    );
}

#[test]
fn arguments_cut_by_the_token_limit_are_an_error_of_that_call() {
    check(
        |s| {
            s.operator("write it down");
            s.reply(Sampled {
                calls: vec![RawCall { id: None, name: "look".into(), arguments: r#"{"path": "/a"#.into() }],
                finish: Finish::Length,
                ..Sampled::default()
            });
        },
        expect![[r#"
            operator: write it down
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" look
              step_sampled 1.1
              settled 1.1.1 Failed { why: Invalid } "Not run: the reply reached its token limit inside the arguments of this call. Send less in one call."
              step_requested 1.2
              → sample
        "#]],
    );
}

#[test]
fn soul_and_reset_are_commands_that_make_a_new_prefix() {
    // C-SOUL, C-PFX-1.
    check(
        |s| {
            s.operator("hi");
            s.control(Control::Soul { text: "Be brief.".into() });
            s.operator("and now?");
            s.control(Control::Reset);
            s.operator("fresh");
            s.show_request(0);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            control: soul update
              admitted E2 Control
              sampling_aborted "(interrupted)"
              turn_ended T1 Preempted { by: "soul update" } returned 1
              soul_changed
              consumed E2
              → drop the sampling
              prefix_made G2 Instructions
              frame_made F2 [E1]
              turn_started T2 Events
              step_requested 2.1
              → sample
            operator: and now?
              admitted E3 Operator
              sampling_aborted "(interrupted)"
              turn_ended T2 Preempted { by: "operator" } returned 0
              → drop the sampling
              frame_made F3 [E3]
              turn_started T3 Events
              step_requested 3.1
              → sample
            control: reset
              admitted E4 Control
              sampling_aborted "(interrupted)"
              turn_ended T3 Preempted { by: "reset" } returned 0
              reset
              consumed E4
              → drop the sampling
            operator: fresh
              admitted E5 Operator
              prefix_made G3 Reset
              frame_made F4 [E5]
              turn_started T4 Events
              step_requested 4.1
              → sample
              | user: <operator id="E5" time="2025-11-05T00:00:00Z">
              |   fresh
              |   </operator>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
        "#]],
    );
}

#[test]
fn a_dead_letter_takes_out_everything_that_no_provider_ever_took() {
    // C-FRM-3: also what an interrupt had left behind, which would be refused for ever.
    check(
        |s| {
            s.operator("a poisoned picture");
            s.fails(Failure::Refused { status: Some(400), message: "bad image".into() });
            s.operator("did it work?");
            for _ in 0..3 {
                s.fails(Failure::Refused { status: Some(400), message: "bad image".into() });
                s.pass(60);
            }
            s.show_request(0);
        },
        expect![[r#"
            operator: a poisoned picture
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 1.1 retried later
            operator: did it work?
              admitted E2 Operator
              sampling_aborted "(interrupted)"
              turn_ended T1 Preempted { by: "operator" } returned 0
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 2.1 retried later
            60 s pass
              step_retried 2.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 2.1 retried later
            60 s pass
              step_retried 2.1
              → sample
            model fails: the provider refused the request (HTTP 400): bad image
              sampling_failed 2.1 for good
              dead_lettered 3 messages
              sampling_aborted "(interrupted)"
              turn_ended T2 Refused returned 0
              prefix_made G2 Refused
              turn_started T3 Idle
              nudged Idle
              step_requested 3.1
              → sample
            60 s pass
              | user: <instructions>
              |   What stood here was refused by the provider and has been taken out: the provider refused the request (HTTP 400): bad image
              |   </instructions>
              | assistant: (interrupted) [0 calls]
              | user: <instructions>
              |   What stood here was refused by the provider and has been taken out: the provider refused the request (HTTP 400): bad image
              |   </instructions>
              | assistant: (interrupted) [0 calls]
              | user: <nudge>
              |   Nothing has happened for 2m 00s. Carry on with something of your own, or wait for what comes.
              |   </nudge>
        "#]],
    );
}
