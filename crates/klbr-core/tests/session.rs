//! Random sessions of the whole machine, seen by a model that has the requests and nothing else.
//!
//! Stubs are sound, ids are never given twice, and every request extends the one before it in its lane unless a
//! prefix was made in between; whatever is edited, changed, summarised, interrupted or begun anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use klbr_core::action::{Attempt, FailureKind, Outcome, Role};
use klbr_core::agent::Agent;
use klbr_core::config::Config;
use klbr_core::context::proof::{Verdict, compare};
use klbr_core::context::{Answer, Change, Content, Dedupe, Output, Read};
use klbr_core::event::{Control, NewEvent};
use klbr_core::hash::Hash;
use klbr_core::ids::Generation;
use klbr_core::input::{Command, Input};
use klbr_core::model::{Message, RawCall, Request, Sampled};
use klbr_core::record::{Record, Stamped};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

use crate::machine::{Script, action, begun};

/// What may happen between two turns, or in one.
#[derive(Clone, Debug)]
enum Op {
    /// A turn in which the model does these things, step by step.
    Turn(Vec<Do>),
    /// A file is changed from outside.
    Touch(usize, usize),
    /// The operator changes the mode.
    Mode(u8),
    /// The operator changes what is pinned.
    Memory(u8),
    /// An instruction file is changed on the disk.
    Instructions(u8),
    /// Words while the model replies.
    Interrupt,
    Compact,
    Soul(u8),
    /// The process dies and begins anew, with this effort and this model.
    Restart(u8, u8),
    /// A day passes.
    Day,
}

#[derive(Clone, Debug)]
enum Do {
    Read(usize, Option<u64>, Option<u64>),
    Edit(usize, usize),
    List(usize),
    Think,
}

fn doing() -> impl Strategy<Value = Do> {
    let window = || prop::option::of(0_u64..14);
    prop_oneof![
        6 => (0_usize..3, window(), window()).prop_map(|(file, offset, limit)| Do::Read(file, offset, limit)),
        2 => (0_usize..3, 0_usize..CONTENTS.len()).prop_map(|(file, content)| Do::Edit(file, content)),
        2 => (0_usize..2).prop_map(Do::List),
        1 => Just(Do::Think),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => prop::collection::vec(doing(), 0..5).prop_map(Op::Turn),
        2 => (0_usize..3, 0_usize..CONTENTS.len()).prop_map(|(file, content)| Op::Touch(file, content)),
        1 => (0_u8..3).prop_map(Op::Mode),
        1 => (0_u8..3).prop_map(Op::Memory),
        1 => (0_u8..3).prop_map(Op::Instructions),
        1 => Just(Op::Interrupt),
        2 => Just(Op::Compact),
        1 => (0_u8..2).prop_map(Op::Soul),
        2 => (0_u8..2, 0_u8..2).prop_map(|(effort, model)| Op::Restart(effort, model)),
        1 => Just(Op::Day),
    ]
}

/// Contents that differ where lines end.
const CONTENTS: [&str; 6] = [
    "one\ntwo\nthree\nfour\nfive\nsix\nseven\n",
    "one\r\ntwo\r\nthree\r\nfour",
    "\u{feff}one\ntwo\n\nfour\0\nfive",
    "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\nthirteen\n",
    "",
    "(1 more lines — read again with offset 2)\n3: not a number\n",
];

/// The world around the machine, and the model that reads its requests.
struct World {
    script: Script,
    disk: [usize; 3],
    /// The lane's last request, and the prefix that it was sent under.
    lanes: BTreeMap<Arc<str>, (Generation, Request)>,
    given: BTreeSet<String>,
    seen: usize,
    /// Breaks that were declared without a prefix: a range was swapped, or the conversation forgotten.
    broken: bool,
    stubs: usize,
}

impl World {
    fn new() -> Self {
        let script = begun(|config| {
            let ordinary = |name| action(name, Role::Ordinary, klbr_core::action::Class::Pure, true);
            config.actions.extend(["read", "edit", "list"].map(ordinary));
        });
        World {
            script,
            disk: [0, 1, 2],
            lanes: BTreeMap::new(),
            given: BTreeSet::new(),
            seen: 0,
            broken: false,
            stubs: 0,
        }
    }

    fn run(&mut self, op: Op) -> TestCaseResult {
        match op {
            Op::Turn(doings) => self.turn(&doings)?,
            Op::Touch(file, content) => self.disk[file] = content,
            Op::Mode(n) => {
                self.script.facts.mode = format!("mode {n}");
                self.script.facts.mode_text = format!("Mode {n} is this.");
            }
            Op::Memory(n) => {
                self.script.facts.memory = (0..n).map(|id| (u64::from(id) + 1, format!("m{id}"))).collect()
            }
            Op::Instructions(n) => {
                self.script.facts.instructions = vec![("AGENTS.md".to_owned(), format!("rule {n}"))];
            }
            Op::Interrupt => {
                self.say();
                self.look()?;
                self.control(Control::Interrupt);
            }
            Op::Compact => {
                self.control(Control::Compact);
                self.look()?;
                if self.script.agent.status().compacting {
                    self.script.reply(Sampled { text: "in short".to_owned(), ..Sampled::default() });
                }
            }
            Op::Soul(n) => self.control(Control::Soul { text: format!("Soul {n}.").into() }),
            Op::Restart(effort, model) => self.restart(effort, model),
            Op::Day => self.script.pass(86_400),
        }
        self.settle()
    }

    fn say(&mut self) {
        self.script.ticket += 1;
        let key = format!("say:{}", self.script.ticket);
        self.script.admit(NewEvent::operator(key, "some words that take a little room in the conversation"));
    }

    fn control(&mut self, control: Control) {
        self.script.ticket += 1;
        let key = format!("control:{}", self.script.ticket);
        self.script.admit(NewEvent::control(key, control));
    }

    fn turn(&mut self, doings: &[Do]) -> TestCaseResult {
        self.say();
        for doing in doings {
            self.look()?;
            let call = |name: &str, arguments: Value| RawCall {
                id: None,
                name: name.to_owned(),
                arguments: arguments.to_string(),
            };
            let (text, calls) = match doing {
                Do::Read(file, offset, limit) => {
                    ("", vec![call("read", json!({ "file": file, "offset": offset, "limit": limit }))])
                }
                Do::Edit(file, content) => {
                    ("", vec![call("edit", json!({ "file": file, "content": content }))])
                }
                Do::List(args) => {
                    ("hm", vec![call("list", json!({ "args": args })), call("list", json!({ "args": args }))])
                }
                Do::Think => ("aloud", vec![call("look", json!({}))]),
            };
            let reasoning = (calls.len() == 1).then(|| "because".to_owned());
            self.script.reply(Sampled { text: text.to_owned(), reasoning, calls, ..Sampled::default() });
            self.act();
        }
        Ok(())
    }

    /// Does what is asked for until the agent waits; every request on the way is looked at.
    fn settle(&mut self) -> TestCaseResult {
        for _ in 0..20 {
            self.look()?;
            self.act();
            let is_asked = self.script.out.iter().any(|command| matches!(command, Command::Sample { .. }));
            if !is_asked {
                break;
            }
            if self.script.agent.status().compacting {
                self.script.reply(Sampled { text: "in short".to_owned(), ..Sampled::default() });
            } else {
                let end =
                    [("local_send", r#"{"content":"ok"}"#), ("wait_and_continue", r#"{"seconds":900000}"#)];
                self.script.says("", &end);
            }
        }
        self.look()
    }

    /// Answers every attempt that is out.
    fn act(&mut self) {
        loop {
            let attempt = self.script.out.iter().find_map(|command| match command {
                Command::Act { attempt, .. } => Some(attempt.clone()),
                _ => None,
            });
            let is_delivery =
                |command: &Command| matches!(command, Command::Deliver { .. } | Command::Reconcile { .. });
            match attempt {
                Some(attempt) => {
                    let outcome = self.outcome(&attempt);
                    self.script.settle(outcome);
                }
                None if self.script.out.iter().any(is_delivery) => {
                    self.script.settle(Outcome::confirmed("Sent."));
                }
                None => return,
            }
        }
    }

    fn outcome(&mut self, attempt: &Attempt) -> Outcome {
        let arguments: Value = serde_json::from_str(&attempt.arguments).unwrap();
        let number = |name: &str| arguments[name].as_u64();
        let file = number("file").unwrap_or(0) as usize;
        let (path, absolute) = (format!("f{file}"), format!("/app/f{file}"));
        let content = |n: usize| Content::of(CONTENTS[n].as_bytes());
        match &*attempt.name {
            "read" => Outcome::answered(Answer::Read(Read {
                path,
                file: absolute,
                content: content(self.disk[file]),
                offset: number("offset"),
                limit: number("limit"),
            })),
            "edit" => {
                let before = content(self.disk[file]);
                if let Err(unseen) = attempt.seen.check_change(&absolute, Some(before.hash())) {
                    return Outcome::failed(FailureKind::Refused, unseen.to_string());
                }
                self.disk[file] = number("content").unwrap() as usize;
                let (before, after) = (Some(before), Some(content(self.disk[file])));
                Outcome::answered(Answer::Change(Change { path, file: absolute, before, after, note: None }))
            }
            "list" => Outcome::answered(Answer::Output(Output {
                tool: "list".to_owned(),
                args: attempt.arguments.to_string(),
                text: format!("{:?}", self.disk),
                dedupe: Dedupe::SameResult,
            })),
            _ => Outcome::confirmed("Looked."),
        }
    }

    fn restart(&mut self, effort: u8, model: u8) {
        let mut config = Config::clone(&self.script.config);
        config.effort = (effort > 0).then(|| "high".into());
        config.model = format!("m{model}").into();
        self.script.config = Arc::new(config);
        self.script.out.clear();
        // What only the process knew is gone, the last requests of the lanes with it; the judge keeps them.
        self.script.agent = Agent::restore(self.script.config.clone(), None, &self.script.kept).unwrap();
        self.script.handle(Input::Recovered);
    }

    /// Reads what has been committed and asked since.
    fn look(&mut self) -> TestCaseResult {
        let fresh: Vec<Stamped> = self.script.kept[self.seen..].to_vec();
        fresh.iter().try_for_each(|stamped| self.record(stamped))?;
        self.seen = self.script.kept.len();
        let newest = self.script.out.iter().rev().find_map(|command| match command {
            Command::Sample { request, .. } => Some(Request::clone(request)),
            _ => None,
        });
        newest.map_or(Ok(()), |request| self.request(request))
    }

    fn record(&mut self, stamped: &Stamped) -> TestCaseResult {
        let result = match &stamped.record {
            Record::PrefixBroken { at, .. } => {
                return Err(TestCaseError::fail(format!("broke its own prefix at {at:?}")));
            }
            Record::Compacted { .. } | Record::Reset | Record::DeadLettered { .. } => {
                self.broken = true;
                None
            }
            Record::Settled { result, .. }
            | Record::Held { result, .. }
            | Record::Detached { result, .. } => Some(result),
            Record::WaitEnded { result, .. } => Some(result),
            _ => None,
        };
        if let Some(result) = result {
            let text = result.inserted();
            let id =
                text.strip_prefix('[').and_then(|text| text.split([' ', ']']).next()).unwrap_or_default();
            prop_assert!(self.given.insert(id.to_owned()), "{id} was given twice: {text}");
        }
        Ok(())
    }

    /// Reads a request as a model does: it has what stands in it, and no more.
    fn request(&mut self, request: Request) -> TestCaseResult {
        let generation = self.script.agent.status().generation;
        // A request for a summary asks about what came before an open wait, and what it ends with is in no other.
        let is_summary = matches!(request.messages.last(), Some(Message::User { text, .. }) if text.starts_with("<instructions>"));
        if let Some((sent_in, before)) = self.lanes.get(&request.model) {
            let mut before = before.clone();
            if is_summary {
                before.messages.truncate(request.messages.len() - 1);
            }
            let verdict = compare(&before, &request);
            let is_declared = *sent_in != generation || self.broken;
            prop_assert!(is_declared || !matches!(verdict, Verdict::Broken(_)), "{verdict:?}");
        }
        self.broken &= is_summary;
        self.stubs += check_stubs(&request)?;
        if !is_summary {
            self.lanes.insert(request.model.clone(), (generation, request));
        }
        Ok(())
    }
}

/// Rebuilds what each stub claims from the results in the same request; answers how many there were.
fn check_stubs(request: &Request) -> Result<usize, TestCaseError> {
    let results: Vec<&str> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { text, .. } => Some(&**text),
            Message::User { .. } | Message::Assistant(_) => None,
        })
        .collect();
    let find = |id: &str| {
        let found = results.iter().find(|text| {
            text.strip_prefix('[')
                .and_then(|text| text.strip_prefix(id))
                .is_some_and(|rest| rest.starts_with([' ', ']']))
        });
        found.copied().ok_or_else(|| TestCaseError::fail(format!("{id} is not in the request")))
    };
    let mut stubs = 0;
    for text in &results {
        if let Some((bracket, claim)) = text.split_once("] Unchanged since ") {
            stubs += 1;
            let (id, range) = claim.split_once(", which already shows lines ").unwrap();
            let words: Vec<&str> = bracket.split(' ').collect();
            let [sha, _, of, ..] = words.iter().rev().copied().collect::<Vec<_>>()[..] else {
                panic!("{bracket}")
            };
            let truth =
                CONTENTS.iter().find(|content| Hash::of(content.as_bytes()).to_string().starts_with(sha));
            let lines: Vec<&str> = truth.expect("a content").split_inclusive('\n').collect();
            prop_assert_eq!(
                of.parse::<usize>().ok().or(words[words.len() - 3].parse().ok()),
                Some(lines.len())
            );
            let (from, to) = range.trim_end_matches('.').split_once('-').unwrap();
            let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
            let shown =
                |n: usize| format!("{n}: {}", lines[n - 1].strip_suffix('\n').unwrap_or(lines[n - 1]));
            let said: Vec<String> = (from..=to).map(shown).collect();
            let full = find(id)?;
            let (head, body) = full.split_once("]\n").unwrap_or((full, ""));
            prop_assert!(head.ends_with(sha) && body.starts_with(&said.join("\n")), "{text} names {full}");
            let asked = words.iter().find_map(|word| word.split_once('-')).unwrap();
            let asked: (usize, usize) = (asked.0.parse().unwrap(), asked.1.parse().unwrap());
            prop_assert!(from <= asked.0 && asked.1 <= to, "{text}");
        } else if let Some((_, id)) = text.split_once("] Same result as ") {
            stubs += 1;
            let full = find(id.trim_end_matches('.'))?;
            prop_assert!(full.contains("]\n"), "{text} names {full}");
        }
    }
    Ok(stubs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_model_that_sees_only_requests_has_what_stubs_claim_and_never_reads_anew_without_a_cause(
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut world = World::new();
        for op in ops {
            world.run(op)?;
        }
    }
}

#[test]
fn the_random_sessions_meet_stubs_and_breaks() {
    // The property is worth something only where there is something to check.
    let mut world = World::new();
    let read = || Op::Turn(vec![Do::Read(0, None, None), Do::Read(0, Some(2), Some(3)), Do::List(0)]);
    for op in [read(), read(), Op::Compact, read(), Op::Restart(1, 1), read()] {
        world.run(op).unwrap();
    }
    assert!(world.stubs > 20, "{}", world.stubs);
    assert!(world.script.agent.status().generation >= Generation(3));
}
