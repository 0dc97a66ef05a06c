//! The area `context`: what each step of a session inserts.

use std::collections::BTreeMap;

use klbr_core::context::paths::resolve;
use klbr_core::context::{Answer, Change, Content, Dedupe, Hygiene, Limits, Output, Read, Recall, ResultId};
use serde::Deserialize;
use serde_json::Value;

use super::read;

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    limits: Limits,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Step {
    Read {
        id: ResultIdText,
        path: String,
        content: String,
        offset: Option<u64>,
        limit: Option<u64>,
    },
    Edit {
        id: ResultIdText,
        path: String,
        before: Option<String>,
        after: Option<String>,
        note: Option<String>,
    },
    Write {
        id: ResultIdText,
        path: String,
        before: Option<String>,
        after: Option<String>,
        note: Option<String>,
    },
    Output {
        id: ResultIdText,
        tool: String,
        #[serde(default)]
        args: Value,
        text: String,
    },
    Recall {
        id: ResultIdText,
        target: String,
        offset: Option<u64>,
        limit: Option<u64>,
    },
    Reply,
    Compact,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct ResultIdText(ResultId);

impl TryFrom<String> for ResultIdText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(ResultIdText).map_err(|error| format!("{error}"))
    }
}

pub(super) fn run(case: &str) -> Result<Value, String> {
    let case: Case = read(case)?;
    let mut session = Session { hygiene: Hygiene::new(), stored: BTreeMap::new(), limits: case.limits };
    Ok(case.steps.into_iter().map(|step| Value::from(session.step(step))).collect())
}

/// A session as the harness keeps it: the results' texts stand in its store.
struct Session {
    hygiene: Hygiene,
    stored: BTreeMap<ResultId, String>,
    limits: Limits,
}

impl Session {
    fn step(&mut self, step: Step) -> String {
        let (id, answer) = match step {
            Step::Read { id, path, content, offset, limit } => {
                let file = resolve("/", &path);
                (
                    id,
                    Answer::Read(Read {
                        path,
                        file,
                        content: Content::of(content.as_bytes()),
                        offset,
                        limit,
                    }),
                )
            }
            Step::Edit { id, path, before, after, note } | Step::Write { id, path, before, after, note } => {
                let file = resolve("/", &path);
                let content = |text: Option<String>| text.map(|text| Content::of(text.as_bytes()));
                let (before, after) = (content(before), content(after));
                (id, Answer::Change(Change { path, file, before, after, note }))
            }
            Step::Output { id, tool, args, text } => {
                let dedupe = Dedupe::of_tool(&tool);
                (id, Answer::Output(Output { tool, args: args.to_string(), text, dedupe }))
            }
            Step::Recall { id, target, offset, limit } => {
                let stored = self.hygiene.resolve(&target).and_then(|id| self.stored.get(&id)).cloned();
                (id, Answer::Recall(Recall { target, stored, offset, limit }))
            }
            Step::Reply => {
                self.hygiene.carry(|_| false);
                return String::new();
            }
            Step::Compact => {
                let Some(last) = self.hygiene.last() else { return String::new() };
                let table = self.hygiene.table(last, &self.limits);
                self.hygiene.compacted(last);
                return table.unwrap_or_default();
            }
        };
        let insertion = self.hygiene.plan(id.0, &answer, &self.limits);
        self.hygiene.apply(&insertion.entry);
        self.stored.insert(id.0, insertion.stored().to_owned());
        insertion.text
    }
}
