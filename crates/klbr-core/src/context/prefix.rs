//! The prefix: made once, sent unchanged, and what changes is a note at the end.
//!
//! Owns when the system prompt is made again and for which cause (`C-PFX-1`), what the model was told of each
//! changing thing, and the tools that are listed though they cannot be used now. Refuses to write prompts: the
//! bytes of the system prompt and of the tool list are made by whoever answers [`Prefix::due`].

mod note;

use serde::{Deserialize, Serialize};

use crate::block::{Block, Name};
use crate::record::BreakCause;

/// What a prompt is made from and may change later. A text is empty when there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The date in the operator's zone, as it is to be said. Never in the prompt.
    pub date: String,
    /// The mode's name.
    pub mode: String,
    /// What the model is told of the mode.
    pub mode_text: String,
    /// The plan.
    pub plan: String,
    /// What is remembered.
    pub memory: String,
    /// The personality.
    pub personality: String,
    /// The instruction files in their order: the name in the prompt, and the text.
    pub instructions: Vec<(String, String)>,
    /// The instructions of connected servers in their order: the server's name, and the text.
    pub mcp: Vec<(String, String)>,
}

/// One of the [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The date.
    Date,
    /// The mode.
    Mode,
    /// The plan.
    Plan,
    /// What is remembered.
    Memory,
    /// The instruction files.
    Instructions,
    /// The personality.
    Personality,
    /// The instructions of connected servers.
    Mcp,
}

/// Which prefix is in force, and what the model knows. Part of an agent's checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    generation: u64,
    due: Option<BreakCause>,
    /// What the prompt and the notes since say; the date is empty until a note says one.
    told: Facts,
}

impl Default for Prefix {
    fn default() -> Self {
        Self::new()
    }
}

impl Prefix {
    /// No prefix yet: the first is due.
    pub fn new() -> Self {
        Prefix { generation: 0, due: Some(BreakCause::First), told: Facts::default() }
    }

    /// The number of the prefix in force, counting from 1; the same number is the same bytes. 0 before the first.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The cause for which a new prefix has to be made before the next request.
    pub fn due(&self) -> Option<BreakCause> {
        self.due
    }

    /// Asks for a new prefix with the next request. Of several causes the one that drops most is kept.
    pub fn renew(&mut self, cause: BreakCause) {
        match self.due {
            Some(earlier) if drops_history(earlier) || !drops_history(cause) => {}
            _ => self.due = Some(cause),
        }
    }

    /// Remembers that the prefix was made from these facts; answers its number and cause, which are recorded.
    ///
    /// Nothing happens when none was due.
    pub fn made(&mut self, facts: &Facts) -> Option<(u64, BreakCause)> {
        let cause = self.due.take()?;
        self.generation += 1;
        let date = match drops_history(cause) {
            true => String::new(),
            false => std::mem::take(&mut self.told.date),
        };
        self.told = Facts { date, ..facts.clone() };
        Some((self.generation, cause))
    }

    /// The note for the next message that starts a turn: what changed since the model was told.
    ///
    /// Once the message is committed, [`Prefix::told`] says so.
    pub fn note(&self, facts: &Facts) -> Option<Block> {
        let changes = note::changes(&self.told, facts);
        (!changes.is_empty()).then(|| Block::new(Name::SessionNote).text(changes.join("\n\n")))
    }

    /// Remembers that the model was told everything, by a note.
    pub fn told(&mut self, facts: &Facts) {
        self.told = facts.clone();
    }

    /// Remembers that the model knows about one thing without a note: its own call's result said it.
    pub fn heard(&mut self, topic: Topic, facts: &Facts) {
        let told = &mut self.told;
        match topic {
            Topic::Date => told.date.clone_from(&facts.date),
            Topic::Mode => {
                told.mode.clone_from(&facts.mode);
                told.mode_text.clone_from(&facts.mode_text);
            }
            Topic::Plan => told.plan.clone_from(&facts.plan),
            Topic::Memory => told.memory.clone_from(&facts.memory),
            Topic::Instructions => told.instructions.clone_from(&facts.instructions),
            Topic::Personality => told.personality.clone_from(&facts.personality),
            Topic::Mcp => told.mcp.clone_from(&facts.mcp),
        }
    }
}

/// Whether what earlier notes said is gone from the transcript as well.
fn drops_history(cause: BreakCause) -> bool {
    match cause {
        BreakCause::First | BreakCause::Compaction | BreakCause::Reset => true,
        BreakCause::Instructions
        | BreakCause::Model
        | BreakCause::Effort
        | BreakCause::Tools
        | BreakCause::Refused => false,
    }
}

/// A tool that is listed from the start, though it may be usable only at times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The tool's name.
    pub name: String,
    /// What has to be there for it to work.
    #[serde(default)]
    pub requires: Vec<String>,
    /// What a call answers when something is not.
    #[serde(default)]
    pub unavailable: String,
}

impl Offer {
    /// Whether the tool is listed, given what could ever be there during the agent's life.
    pub fn is_listed(&self, could: &[String]) -> bool {
        self.requires.iter().all(|need| could.contains(need))
    }

    /// What a call answers instead of running, given what is there now; nothing when it runs.
    pub fn refusal(&self, met: &[String]) -> Option<&str> {
        let is_met = self.requires.iter().all(|need| met.contains(need));
        (!is_met).then_some(self.unavailable.as_str())
    }
}
