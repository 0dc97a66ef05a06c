//! The prefix: made once, sent unchanged, and what changes is a note at the end.
//!
//! Owns when the system prompt is made again and for which cause (`C-PFX-1`), what the model was told of each
//! changing thing, and the tools that are listed though they cannot be used now. Refuses to write prompts: the
//! bytes of the system prompt and of the tool list are made by whoever answers [`Prefix::due`].

mod note;

use serde::{Deserialize, Serialize};

use crate::block::{Block, Name};
use crate::ids::Generation;
use crate::record::BreakCause;

/// What a prompt is made from and may change later. A text is empty when there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The date in the operator's zone, as it is to be said. Never in the prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The mode's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// What the model is told of the mode.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode_text: String,
    /// The plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// The pinned memories, oldest first: the memory's number, and the text (`C-MEM`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<(u64, String)>,
    /// The personality.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub personality: String,
    /// Where the agent works, in lines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// The instruction files in their order: the name in the prompt, and the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<(String, String)>,
    /// The instructions of connected servers in their order: the server's name, and the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<(String, String)>,
}

/// What one note told: the topics, and their facts. Facts of other topics are left empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The topics, in the order in which the note says them.
    pub topics: Vec<Topic>,
    /// What they are now.
    pub facts: Facts,
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
    /// Where the agent works.
    Environment,
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
    generation: Generation,
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
        Prefix { generation: Generation(0), due: Some(BreakCause::First), told: Facts::default() }
    }

    /// The number of the prefix in force, counting from 1; the same number is the same bytes. 0 before the first.
    pub fn generation(&self) -> Generation {
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
    pub fn made(&mut self, facts: &Facts) -> Option<(Generation, BreakCause)> {
        let cause = self.due.take()?;
        self.generation = self.generation.next();
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
        let texts: Vec<&str> = changes.iter().map(|(_, text)| text.as_str()).collect();
        (!texts.is_empty()).then(|| Block::new(Name::SessionNote).text(texts.join("\n\n")))
    }

    /// What the note of [`Prefix::note`] tells, to be recorded with the message that carries it.
    pub fn news(&self, facts: &Facts) -> Option<Told> {
        let mut topics: Vec<Topic> =
            note::changes(&self.told, facts).into_iter().map(|(topic, _)| topic).collect();
        topics.dedup();
        let mut told = Told { topics, facts: Facts::default() };
        for topic in &told.topics {
            copy(*topic, facts, &mut told.facts);
        }
        (!told.topics.is_empty()).then_some(told)
    }

    /// Remembers that the model was told everything, by a note.
    pub fn told(&mut self, facts: &Facts) {
        self.told = facts.clone();
    }

    /// What the model knows: as the prompt and the notes since say it.
    pub fn known(&self) -> &Facts {
        &self.told
    }

    /// Remembers what the model itself pinned under a memory's number, or that nothing stands there any more
    /// because of it: its own call's result said so.
    pub fn remembered(&mut self, id: u64, text: Option<&str>) {
        let memory = &mut self.told.memory;
        match (memory.iter().position(|(known, _)| *known == id), text) {
            (Some(at), Some(text)) => text.clone_into(&mut memory[at].1),
            (Some(at), None) => drop(memory.remove(at)),
            (None, Some(text)) => {
                memory.push((id, text.to_owned()));
                memory.sort_by_key(|(id, _)| *id);
            }
            (None, None) => {}
        }
    }

    /// Remembers that the model knows about one thing without a note: its own call's result said it.
    pub fn heard(&mut self, topic: Topic, facts: &Facts) {
        copy(topic, facts, &mut self.told);
    }
}

fn copy(topic: Topic, from: &Facts, to: &mut Facts) {
    match topic {
        Topic::Date => to.date.clone_from(&from.date),
        Topic::Mode => {
            to.mode.clone_from(&from.mode);
            to.mode_text.clone_from(&from.mode_text);
        }
        Topic::Plan => to.plan.clone_from(&from.plan),
        Topic::Memory => to.memory.clone_from(&from.memory),
        Topic::Environment => to.environment.clone_from(&from.environment),
        Topic::Instructions => to.instructions.clone_from(&from.instructions),
        Topic::Personality => to.personality.clone_from(&from.personality),
        Topic::Mcp => to.mcp.clone_from(&from.mcp),
    }
}

/// Whether what earlier notes said is gone from the transcript as well, or some of it.
fn drops_history(cause: BreakCause) -> bool {
    match cause {
        // What was refused is taken out, and a note may have been in it.
        BreakCause::First | BreakCause::Compaction | BreakCause::Reset | BreakCause::Refused => true,
        BreakCause::Instructions | BreakCause::Model | BreakCause::Effort | BreakCause::Tools => false,
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
