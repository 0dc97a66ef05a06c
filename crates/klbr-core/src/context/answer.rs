//! What an action answers, before it is shaped for the model.

use serde::{Deserialize, Serialize};

use super::Content;

/// What an action answers; [`super::Hygiene`] makes the inserted result of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A file's lines.
    Read(Read),
    /// The change of one file.
    Change(Change),
    /// The changes of several files, in order.
    Patch(Patch),
    /// Any other text, an error's included.
    Output(Output),
    /// An earlier result again.
    Recall(Recall),
    /// A memory that the agent itself changed.
    Remembered(Remembered),
}

impl Answer {
    /// A text that is never named by a later one.
    pub fn text(text: impl Into<String>) -> Self {
        Answer::Output(Output {
            tool: String::new(),
            args: String::new(),
            text: text.into(),
            dedupe: Dedupe::Never,
        })
    }

    /// What a receipt says of it, in a line; an output's whole text.
    pub fn gist(&self) -> String {
        match self {
            Answer::Read(read) => format!("read {}", read.path),
            Answer::Change(change) => change.gist(),
            Answer::Patch(patch) => patch.changes.iter().map(Change::gist).collect::<Vec<_>>().join(", "),
            Answer::Output(output) => output.text.clone(),
            Answer::Recall(recall) => format!("recalled {}", recall.target),
            Answer::Remembered(remembered) => remembered.text.clone(),
        }
    }
}

impl Change {
    fn gist(&self) -> String {
        let done = match (&self.before, &self.after) {
            (_, None) => "deleted",
            (None, Some(_)) => "created",
            (Some(_), Some(_)) => "changed",
        };
        format!("{done} {}", self.path)
    }
}

/// A read of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The path as the call gave it: what the model is shown.
    pub path: String,
    /// The absolute, resolved path: what identifies the file.
    pub file: String,
    /// The whole file.
    pub content: Content,
    /// The first line asked for, counting from 1; the first by default.
    pub offset: Option<u64>,
    /// How many lines are asked for; as many as one read shows by default.
    pub limit: Option<u64>,
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path as the call gave it: what the model is shown.
    pub path: String,
    /// The absolute, resolved path: what identifies the file.
    pub file: String,
    /// The file before; absent when it is new.
    pub before: Option<Content>,
    /// The file now; absent when it is deleted.
    pub after: Option<Content>,
    /// What the tool adds after the diff.
    pub note: Option<String>,
}

/// Changes of several files by one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The files' changes in the patch's order.
    pub changes: Vec<Change>,
    /// What the tool adds after them.
    pub note: Option<String>,
}

/// A text that no other answer fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The action's name.
    pub tool: String,
    /// The call's raw arguments.
    pub args: String,
    /// The whole text.
    pub text: String,
    /// Whether the same answer to the same call is said again.
    pub dedupe: Dedupe,
}

/// Whether the same answer to the same call is inserted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedupe {
    /// Two answers are two results, whatever they say.
    Never,
    /// A listing or a search: the same answer again only names the first.
    SameResult,
}

impl Dedupe {
    /// What holds for an action by its contract name: `list`, `glob`, `grep` and `search` are deduplicated.
    pub fn of_tool(name: &str) -> Self {
        match name {
            "list" | "glob" | "grep" | "search" => Dedupe::SameResult,
            _ => Dedupe::Never,
        }
    }
}

/// An earlier result, asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The id as the call gave it.
    pub target: String,
    /// The text stored under it; absent when no result has it.
    pub stored: Option<String>,
    /// The first line asked for, counting from 1; the first by default.
    pub offset: Option<u64>,
    /// How many lines are asked for; as many as one recall shows by default.
    pub limit: Option<u64>,
}

/// A memory that the agent itself changed: it needs no note about what this result says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The memory's number.
    pub id: u64,
    /// What it says from now on, if it is pinned.
    pub pinned: Option<String>,
    /// What the model is told.
    pub text: String,
}
