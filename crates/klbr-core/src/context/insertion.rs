//! A result as it is inserted: the text that the model reads, and where the full result is.

use super::cap::cap;
use super::{Change, Changed, Content, Entry, Limits, Patch, Recall, ResultId, Trace};

/// A result, ready to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// The text that the model reads, beginning with the bracket.
    pub text: String,
    /// What is remembered of it; recorded with the text.
    pub entry: Entry,
    pub(super) stored: Stored,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The text from this byte on.
    InText(usize),
    Apart(String),
}

impl Insertion {
    /// The result's id.
    pub fn id(&self) -> ResultId {
        self.entry.id
    }

    /// The result in full: before any cap, and for a stub the text that it stands for. What a recall shows.
    pub fn stored(&self) -> &str {
        match &self.stored {
            Stored::InText(from) => &self.text[*from..],
            Stored::Apart(text) => text,
        }
    }

    /// What stands in the text before the full result, when all of it is there: [`Insertion::stored`] after it is
    /// the text. Else text and stored have to be kept both.
    pub fn head(&self) -> Option<&str> {
        match &self.stored {
            Stored::InText(from) => Some(&self.text[..*from]),
            Stored::Apart(_) => None,
        }
    }
}

pub(super) fn change(id: ResultId, answer: &Change, limits: &Limits) -> Insertion {
    let shown = super::change::show(answer);
    let entry = Entry { id, trace: Trace::Changes { files: vec![changed(answer)] } };
    let mut body = shown.beside.unwrap_or_default();
    let separator = if body.is_empty() { "\n" } else { " " };
    push_line(&mut body, &shown.diff);
    let header = format!("[{id} {}", shown.bracket);
    let mut insertion = match body.is_empty() {
        true => Insertion { stored: Stored::InText(header.len()), text: header, entry },
        false => capped(header + separator, &body, entry, limits),
    };
    add_note(&mut insertion, answer.note.as_deref());
    insertion
}

pub(super) fn patch(id: ResultId, patch: &Patch, limits: &Limits) -> Insertion {
    if let [one] = patch.changes.as_slice() {
        let note =
            [one.note.as_deref(), patch.note.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("\n");
        return change(id, &Change { note: (!note.is_empty()).then_some(note), ..one.clone() }, limits);
    }
    let mut body = String::new();
    for answer in &patch.changes {
        let shown = super::change::show(answer);
        let beside = shown.beside.map(|beside| format!(" {beside}")).unwrap_or_default();
        push_line(&mut body, &format!("[{}{beside}", shown.bracket));
        push_line(&mut body, &shown.diff);
        push_line(&mut body, answer.note.as_deref().unwrap_or_default());
    }
    let files = patch.changes.iter().map(changed).collect();
    let entry = Entry { id, trace: Trace::Changes { files } };
    let mut insertion = capped(format!("[{id}]\n"), &body, entry, limits);
    add_note(&mut insertion, patch.note.as_deref());
    insertion
}

pub(super) fn recall(id: ResultId, answer: &Recall, limits: &Limits) -> Insertion {
    let entry = Entry { id, trace: Trace::Plain };
    let (head, body) = match super::recall::show(answer, id, limits) {
        super::recall::Shown::Lines { header, text } => (header + "\n", text.to_owned()),
        super::recall::Shown::Sentence(sentence) => (format!("[{id}] "), sentence),
    };
    Insertion { stored: Stored::InText(head.len()), text: head + &body, entry }
}

/// A result whose body is capped when it is long.
pub(super) fn capped(head: String, body: &str, entry: Entry, limits: &Limits) -> Insertion {
    match cap(body, entry.id, limits) {
        Some(short) => Insertion { text: head + &short, entry, stored: Stored::Apart(body.to_owned()) },
        None => Insertion { stored: Stored::InText(head.len()), text: head + body, entry },
    }
}

/// A note follows what was made, capped or not, and is part of what is stored.
fn add_note(insertion: &mut Insertion, note: Option<&str>) {
    let Some(note) = note else { return };
    push_line(&mut insertion.text, note);
    if let Stored::Apart(stored) = &mut insertion.stored {
        push_line(stored, note);
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

fn changed(change: &Change) -> Changed {
    Changed { file: change.file.clone(), hash: change.after.as_ref().map(Content::hash) }
}
