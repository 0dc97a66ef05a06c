//! The area `prefix`: one session's requests, and what each carries before the conversation.
//!
//! Prompt texts are no part of the code under test. Where a case quotes one (a mode's text, the compaction text,
//! what a tool answers while it is unavailable), the quotation is handed in as that text.

use klbr_core::context::prefix::{Facts, Offer, Prefix, Topic};
use klbr_core::record::BreakCause;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pairs::Pairs;
use super::read;

#[derive(Deserialize)]
struct Case {
    start: Change,
    tools: Vec<String>,
    steps: Vec<Step>,
    expect: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Step {
    User,
    Tool,
    Set(Box<Change>),
    Call { tool: String },
    Compact,
    Wrapup,
    Model,
}

/// The fields of a session that a case gives: all of them at its start, some of them when they change.
#[derive(Default, Deserialize)]
struct Change {
    by: Option<String>,
    date: Option<String>,
    mode: Option<String>,
    plan: Option<String>,
    memory: Option<String>,
    personality: Option<String>,
    files: Option<Pairs>,
    mcp: Option<Pairs>,
    could: Option<Vec<String>>,
    met: Option<Vec<String>>,
}

pub(super) fn run(case: &str) -> Result<Value, String> {
    let case: Case = read(case)?;
    if case.steps.len() != case.expect.len() {
        return Err(format!("{} steps, but {} expected answers", case.steps.len(), case.expect.len()));
    }
    let could = case.start.could.clone().unwrap_or_default();
    let mut session = Session {
        offers: case.tools.iter().map(|name| offer(name)).collect(),
        met: could.clone(),
        could,
        facts: Facts::default(),
        prefix: Prefix::new(),
        quoted: case.expect.clone(),
    };
    session.change(case.start);
    case.steps.into_iter().zip(&case.expect).map(|(step, expected)| session.step(step, expected)).collect()
}

struct Session {
    offers: Vec<Offer>,
    could: Vec<String>,
    met: Vec<String>,
    facts: Facts,
    prefix: Prefix,
    quoted: Vec<Value>,
}

impl Session {
    fn step(&mut self, step: Step, expected: &Value) -> Result<Value, String> {
        Ok(match step {
            Step::User => {
                let mut request = self.request();
                let note = self.prefix.note(&self.facts).map(|note| note.to_string());
                self.prefix.told(&self.facts);
                request["note"] = note.into();
                request
            }
            Step::Tool | Step::Wrapup => {
                let mut request = self.request();
                request["note"] = Value::Null;
                request
            }
            Step::Set(change) => {
                let by_model = change.by.as_deref() == Some("model");
                for topic in self.change(*change) {
                    if by_model {
                        self.prefix.heard(topic, &self.facts);
                    }
                }
                Value::Null
            }
            Step::Call { tool } => {
                let mut offer = offer(&tool);
                offer.unavailable = expected.as_str().unwrap_or("(the case quotes no text)").to_owned();
                offer.refusal(&self.met_now()).into()
            }
            Step::Compact => {
                let mut request = self.request();
                request["ask"] = expected["ask"].clone();
                self.prefix.renew(BreakCause::Compaction);
                request
            }
            Step::Model => {
                self.prefix.renew(BreakCause::Model);
                Value::Null
            }
        })
    }

    fn request(&mut self) -> Value {
        self.prefix.made(&self.facts);
        let tools = self.offers.iter().filter(|offer| offer.is_listed(&self.could));
        let tools: Vec<&str> = tools.map(|offer| offer.name.as_str()).collect();
        json!({"system": self.prefix.generation().0, "tools": tools})
    }

    /// Changes what is given; answers what that is.
    fn change(&mut self, change: Change) -> Vec<Topic> {
        let mut topics = Vec::new();
        let mut set = |topic, field: &mut String, value: Option<String>| {
            if let Some(value) = value {
                topics.push(topic);
                *field = value;
            }
        };
        set(Topic::Date, &mut self.facts.date, change.date);
        set(Topic::Plan, &mut self.facts.plan, change.plan);
        set(Topic::Personality, &mut self.facts.personality, change.personality);
        set(Topic::Mode, &mut self.facts.mode, change.mode);
        if let Some(memory) = change.memory {
            topics.push(Topic::Memory);
            self.facts.memory = Some((1, memory)).filter(|(_, text)| !text.is_empty()).into_iter().collect();
        }
        if let Some(Pairs(files)) = change.files {
            topics.push(Topic::Instructions);
            self.facts.instructions = files;
        }
        if let Some(Pairs(mcp)) = change.mcp {
            topics.push(Topic::Mcp);
            self.facts.mcp = mcp;
        }
        if let Some(met) = change.met {
            self.met = met;
        }
        self.facts.mode_text = self.quoted_mode_text();
        topics
    }

    /// The text of the mode in force, as a note of the case quotes it.
    fn quoted_mode_text(&self) -> String {
        let intro = format!("The permission mode is now {}:\n", self.facts.mode);
        let notes = self.quoted.iter().filter_map(|answer| answer["note"].as_str());
        let Some(text) = notes.filter_map(|note| note.split_once(&intro)).map(|(_, text)| text).next() else {
            return String::new();
        };
        // Up to the next block of the note, which its first line tells.
        let mut end = text.strip_suffix("\n</session-note>").unwrap_or(text).len();
        for (at, _) in text.match_indices("\n\n") {
            let line = text[at + 2..].lines().next().unwrap_or_default();
            let is_block = BLOCKS.iter().any(|block| line.starts_with(block))
                || line.ends_with(" changed; it now reads:");
            if is_block {
                end = end.min(at);
            }
        }
        text[..end].to_owned()
    }

    fn met_now(&self) -> Vec<String> {
        let mut met: Vec<String> = self.met.iter().filter(|need| *need != "plan").cloned().collect();
        if self.facts.mode == "plan" {
            met.push("plan".to_owned());
        }
        met
    }
}

/// How the blocks begin that may follow a mode's text in a note.
const BLOCKS: [&str; 4] = [
    "The person changed the plan; it is now:",
    "The person changed what is remembered; it is now:",
    "The person chose a different personality:",
    "Instructions from an MCP server that connected since the session began:",
];

/// What a tool requires, by the contract's tool files.
fn offer(name: &str) -> Offer {
    let requires = match name {
        "plan_submit" => "plan",
        "show" => "display",
        "python" => "page",
        "branch" | "commit" | "merge" | "pr" | "release" | "tag" => "forge",
        "team_add" | "team_read" | "team_send" | "team_stop" => "team",
        _ => "",
    };
    let requires = [requires].into_iter().filter(|need| !need.is_empty()).map(str::to_owned).collect();
    Offer { name: name.to_owned(), requires, unavailable: String::new() }
}
