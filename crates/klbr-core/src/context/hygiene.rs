//! Results as they are inserted: ids, stubs, caps, and what is remembered for the next one.
//!
//! Owns the dedupe table (the full results of the request being built), the reads since the last compaction, and
//! the newest hash that the agent saw of each file. Refuses to look back: an insertion depends on what was
//! inserted before, and changes nothing of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::insertion::{self, Insertion, Stored};
use super::read;
use super::stub;
use super::table::table;
use super::{Answer, Dedupe, Limits, Output, Read, Remembered, ResultId};
use crate::hash::Hash;

/// What the context remembers of the results inserted so far. Part of an agent's checkpoint.
///
/// A result is made in two steps, so that it can be committed between them: [`Hygiene::plan`] shapes it without
/// changing anything, [`Hygiene::apply`] remembers it. On recovery only `apply` runs, over the recorded entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hygiene {
    last: u64,
    /// The full reads in the request being built, by file, oldest first.
    reads: BTreeMap<String, Vec<ReadRow>>,
    /// The full listings and searches in the request being built, by what was asked and answered.
    listings: BTreeMap<Hash, ResultId>,
    /// The full reads since the last compaction, in the history, oldest first.
    history: Vec<ReadRow>,
    /// The newest content that the agent saw or made of each file.
    seen: Seen,
}

/// The newest content that an agent saw or made of each file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seen(Arc<BTreeMap<String, Hash>>);

impl Seen {
    /// Whether a file may be changed, given its absolute path and its content now (absent: it does not exist).
    ///
    /// # Errors
    ///
    /// Fails with the text that the model is told, when the agent has not seen the file as it is.
    pub fn check_change(&self, file: &str, now: Option<Hash>) -> Result<(), Unseen> {
        match (now, self.0.get(file)) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(Unseen::NeverRead(file.to_owned())),
            (Some(now), Some(seen)) if now == *seen => Ok(()),
            (Some(_), Some(_)) => Err(Unseen::Changed(file.to_owned())),
        }
    }
}

/// What is remembered of one result. Recorded with it, and enough to restore a [`Hygiene`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The result's id.
    pub id: ResultId,
    /// What kind of result it was.
    pub trace: Trace,
}

/// What kind of result an entry remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trace {
    /// Nothing that a later result depends on.
    #[default]
    Plain,
    /// A read that shows all its lines: a later one may name it.
    Read(ReadRow),
    /// A read whose lines are not all there, to the byte: a stub, a cut line, bytes that are not UTF-8.
    Glimpse {
        /// The absolute path.
        file: String,
        /// The content.
        hash: Hash,
    },
    /// Files that the agent itself changed.
    Changes {
        /// The files in the call's order.
        files: Vec<Changed>,
    },
    /// A listing or search in full: a later one may name it.
    Listing {
        /// The hash of what was asked and answered.
        key: Hash,
    },
    /// A memory that the agent itself changed.
    Remembered {
        /// The memory's number.
        memory: u64,
        /// What it says from now on, if it is pinned.
        pinned: Option<String>,
    },
}

/// A file that the agent changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The absolute path.
    pub file: String,
    /// The new content; absent when the file was deleted.
    pub hash: Option<Hash>,
}

/// A full read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRow {
    /// The result's id.
    pub id: ResultId,
    /// The path as the call gave it.
    pub path: String,
    /// The absolute path.
    pub file: String,
    /// The first line shown, counting from 1; 0 in an empty file.
    pub from: u64,
    /// The last line shown.
    pub to: u64,
    /// The file's length in lines.
    pub of: u64,
    /// The file's content.
    pub hash: Hash,
}

/// A change is refused because the model does not know the file as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    /// The file exists, and the agent has never read it.
    #[error("{0} exists and has not been read in this session. Read it first.")]
    NeverRead(String),
    /// The file is not as the agent last read or made it.
    #[error("{0} changed since you last read it. Read it again before changing it.")]
    Changed(String),
}

impl Hygiene {
    /// A life without results.
    pub fn new() -> Self {
        Self::default()
    }

    /// The newest id that was given; none before the first result.
    pub fn last(&self) -> Option<ResultId> {
        (self.last > 0).then(|| ResultId::new(self.last))
    }

    /// The id that the next result gets.
    pub fn next_id(&self) -> ResultId {
        ResultId::new(self.last + 1)
    }

    /// The id that a recall's target means, if such a result was given. Its stored text is what
    /// [`super::Recall::stored`] wants.
    pub fn resolve(&self, target: &str) -> Option<ResultId> {
        target.parse().ok().filter(|id: &ResultId| (1..=self.last).contains(&id.number()))
    }

    /// Whether a file may be changed, given its content now (absent: it does not exist).
    ///
    /// # Errors
    ///
    /// Fails with the text that the model is told, when the agent has not seen the file as it is.
    pub fn check_change(&self, file: &str, now: Option<Hash>) -> Result<(), Unseen> {
        self.seen.check_change(file, now)
    }

    /// The files that the agent knows now.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Shapes an answer under an id, and remembers it: [`Hygiene::plan`] with the next id, then [`Hygiene::apply`].
    pub fn insert(&mut self, answer: &Answer, limits: &Limits) -> Insertion {
        let insertion = self.plan(self.next_id(), answer, limits);
        self.apply(&insertion.entry);
        insertion
    }

    /// Shapes an answer under an id as it would be inserted now.
    pub fn plan(&self, id: ResultId, answer: &Answer, limits: &Limits) -> Insertion {
        match answer {
            Answer::Read(read) => self.plan_read(id, read, limits),
            Answer::Change(change) => insertion::change(id, change, limits),
            Answer::Patch(patch) => insertion::patch(id, patch, limits),
            Answer::Output(output) => self.plan_output(id, output, limits),
            Answer::Recall(recall) => insertion::recall(id, recall, limits),
            Answer::Remembered(Remembered { id: memory, pinned, text }) => {
                let trace = Trace::Remembered { memory: *memory, pinned: pinned.clone() };
                insertion::capped(format!("[{id}]\n"), text, Entry { id, trace }, limits)
            }
        }
    }

    /// Remembers an inserted result.
    pub fn apply(&mut self, entry: &Entry) {
        self.last = self.last.max(entry.id.number());
        match &entry.trace {
            // What is remembered is the prefix's business.
            Trace::Plain | Trace::Remembered { .. } => {}
            Trace::Read(row) => {
                Arc::make_mut(&mut self.seen.0).insert(row.file.clone(), row.hash);
                self.reads.entry(row.file.clone()).or_default().push(row.clone());
                self.history.push(row.clone());
            }
            Trace::Glimpse { file, hash } => {
                Arc::make_mut(&mut self.seen.0).insert(file.clone(), *hash);
            }
            Trace::Changes { files } => {
                let seen = Arc::make_mut(&mut self.seen.0);
                for Changed { file, hash } in files {
                    match hash {
                        Some(hash) => seen.insert(file.clone(), *hash),
                        None => seen.remove(file),
                    };
                }
            }
            Trace::Listing { key } => {
                self.listings.entry(*key).or_insert(entry.id);
            }
        }
    }

    /// The table that follows a summary of everything up to a result: the newest full read of each file.
    pub fn table(&self, through: ResultId, limits: &Limits) -> Option<String> {
        table(self.history.iter().filter(|row| row.id <= through), limits.table_rows)
    }

    /// Forgets what a summary replaced: the results up to this one are no longer in any request.
    pub fn compacted(&mut self, through: ResultId) {
        self.carry(|id| id > through);
        self.history.retain(|row| row.id > through);
    }

    /// Tells which earlier results the next request carries: no stub names another.
    pub fn carry(&mut self, is_carried: impl Fn(ResultId) -> bool) {
        self.reads.retain(|_, rows| {
            rows.retain(|row| is_carried(row.id));
            !rows.is_empty()
        });
        self.listings.retain(|_, id| is_carried(*id));
    }

    /// Takes results back, as an undone turn does: they are neither in a request nor in the history any more.
    pub fn take_back(&mut self, is_taken: impl Fn(ResultId) -> bool) {
        self.carry(|id| !is_taken(id));
        self.history.retain(|row| !is_taken(row.id));
    }

    fn plan_read(&self, id: ResultId, answer: &Read, limits: &Limits) -> Insertion {
        let shown = read::show(answer, id, limits);
        let glimpse = Trace::Glimpse { file: answer.file.clone(), hash: shown.hash };
        if let Some(earlier) = shown.row.as_ref().and_then(|row| self.earlier(row)) {
            let text = format!("{} {}", shown.header, stub::unchanged(earlier));
            let stored = Stored::Apart(shown.whole.unwrap_or(shown.body));
            return Insertion { text, entry: Entry { id, trace: glimpse }, stored };
        }
        let trace = match shown.row {
            Some(row) if shown.exact => Trace::Read(row),
            Some(_) => glimpse,
            None => Trace::Plain,
        };
        // A sentence about a line past the end stands beside its bracket, as every other refusal's does.
        let separator = if matches!(trace, Trace::Plain) { ' ' } else { '\n' };
        let mut text = shown.header;
        text.push(separator);
        let stored = shown.whole.map_or(Stored::InText(text.len()), Stored::Apart);
        text.push_str(&shown.body);
        Insertion { text, entry: Entry { id, trace }, stored }
    }

    fn earlier(&self, row: &ReadRow) -> Option<&ReadRow> {
        // An empty file is shorter than a stub.
        let rows = self.reads.get(&row.file).filter(|_| row.of > 0)?;
        rows.iter()
            .rev()
            .find(|earlier| earlier.hash == row.hash && earlier.from <= row.from && row.to <= earlier.to)
    }

    fn plan_output(&self, id: ResultId, output: &Output, limits: &Limits) -> Insertion {
        let trace = match output.dedupe {
            Dedupe::Never => Trace::Plain,
            Dedupe::SameResult => {
                let key = listing_key(output);
                if let Some(earlier) = self.listings.get(&key) {
                    let text = format!("[{id}] {}", stub::same(*earlier));
                    let stored = Stored::Apart(output.text.clone());
                    return Insertion { text, entry: Entry { id, trace: Trace::Plain }, stored };
                }
                Trace::Listing { key }
            }
        };
        insertion::capped(format!("[{id}]\n"), &output.text, Entry { id, trace }, limits)
    }
}

/// What was asked and answered, as one hash: arguments are compared as JSON with sorted keys.
fn listing_key(output: &Output) -> Hash {
    let args = match serde_json::from_str::<Value>(&output.args) {
        Ok(args) => sorted(args).to_string(),
        Err(_) => output.args.clone(),
    };
    let parts = [output.tool.as_str(), args.as_str(), output.text.as_str()];
    let framed: String = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
    Hash::of(framed.as_bytes())
}

/// A value whose objects have their keys in order, whatever order this build of the JSON library keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries: BTreeMap<String, Value> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}
