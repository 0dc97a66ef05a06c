//! One thing that an operator sees: who or what it is from, told by a label and not by colour alone.

use klbr_core::action::FailureKind;
use klbr_core::block::{Block, Content, Name, parse};
use klbr_core::time::Timestamp;

use crate::text::clean;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The operator's words.
    You,
    /// Somebody else's words.
    Heard,
    /// Reasoning: private.
    Think,
    /// Plain text: private.
    Scratch,
    /// Said to someone.
    Delivered,
    /// Something done.
    Action,
    /// Something that waits for the operator.
    Held,
    /// A message of the harness to the model.
    Nudge,
    /// A wait's beginning or end.
    Wait,
    /// Something that went wrong.
    Failure,
    /// What the harness did.
    Note,
}

impl Kind {
    /// The longest label's columns.
    pub(crate) const LABEL: usize = 9;

    /// The word in front of an entry.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Kind::You => "you",
            Kind::Heard => "heard",
            Kind::Think => "think",
            Kind::Scratch => "scratch",
            Kind::Delivered => "delivered",
            Kind::Action => "action",
            Kind::Held => "held",
            Kind::Nudge => "nudge",
            Kind::Wait => "wait",
            Kind::Failure => "failure",
            Kind::Note => "note",
        }
    }
}

/// One thing that an operator sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When it happened.
    pub(crate) at: Timestamp,
    /// What it is.
    pub(crate) kind: Kind,
    /// What it says; nothing in it works on a terminal.
    pub(crate) text: String,
}

impl Entry {
    /// An entry of any text: it is made harmless here.
    pub(crate) fn new(at: Timestamp, kind: Kind, text: &str) -> Self {
        Entry { at, kind, text: clean(text) }
    }

    /// The entry as lines of a file: the label, a bar, the text.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let width = Kind::LABEL;
        self.text.split('\n').enumerate().map(move |(n, line)| {
            let label = if n == 0 { self.kind.label() } else { "" };
            format!("{label:<width$} | {line}").trim_end().to_owned()
        })
    }
}

/// What a message of the harness shows, by who said it.
pub(super) fn of_frame(at: Timestamp, text: &str) -> Vec<Entry> {
    match parse(text) {
        Ok(blocks) => blocks.iter().flat_map(|block| of_block(at, block)).collect(),
        Err(_) => vec![Entry::new(at, Kind::Note, text)],
    }
}

fn of_block(at: Timestamp, block: &Block) -> Vec<Entry> {
    let words = words(block);
    let one = |kind, text: &str| {
        if text.trim().is_empty() { Vec::new() } else { vec![Entry::new(at, kind, text)] }
    };
    match block.name() {
        Name::Operator => one(Kind::You, &words),
        Name::Nudge => one(Kind::Nudge, &words),
        Name::Interrupted => {
            let by = block.attribute("by").unwrap_or_default();
            one(Kind::Note, &format!("the turn before was interrupted by {by}"))
        }
        Name::Channel => {
            let source = block.attribute("source").unwrap_or_default();
            let place = block.attribute("conversation").map(|alias| format!(" {alias}")).unwrap_or_default();
            nested(block).flat_map(|message| heard(at, &format!("{source}{place}"), message)).collect()
        }
        Name::Message => heard(at, "", block),
        // What day it is, an operator knows.
        Name::SessionNote if words.starts_with("Today is ") && !words.contains('\n') => Vec::new(),
        Name::Receipts | Name::Pending | Name::Instructions | Name::SessionNote => one(Kind::Note, &words),
    }
}

fn heard(at: Timestamp, place: &str, message: &Block) -> Vec<Entry> {
    let author = message.attribute("author").unwrap_or_default();
    let count = message.attribute("folded").map(|count| format!("{count} ")).unwrap_or_default();
    vec![Entry::new(at, Kind::Heard, &format!("[{place}] {author}: {count}{}", words(message)))]
}

fn nested(block: &Block) -> impl Iterator<Item = &Block> {
    block.contents().iter().filter_map(|content| match content {
        Content::Block(block) => Some(block),
        Content::Text(_) => None,
    })
}

fn words(block: &Block) -> String {
    let texts = block.contents().iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.as_str()),
        Content::Block(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Why something failed, in words.
pub(super) fn failure(why: FailureKind) -> &'static str {
    match why {
        FailureKind::Invalid => "invalid",
        FailureKind::Denied => "denied",
        FailureKind::Cancelled => "cancelled",
        FailureKind::TimedOut => "timed out",
        FailureKind::Stale => "stale",
        FailureKind::NotRun => "not run",
        FailureKind::Refused => "refused",
    }
}
