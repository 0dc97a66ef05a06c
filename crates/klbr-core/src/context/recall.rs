//! How a stored result is shown again.

use super::read::{Window, window};
use super::{Limits, Recall, ResultId};

/// The bracket of a recall, and what follows it on lines of its own; a bare sentence stands beside the bracket.
pub(super) enum Shown<'a> {
    Lines { header: String, text: &'a str },
    Sentence(String),
}

pub(super) fn show<'a>(recall: &'a Recall, id: ResultId, limits: &Limits) -> Shown<'a> {
    let target = match recall.target.parse::<ResultId>() {
        Ok(target) => target.to_string(),
        Err(_) => format!("#{}", recall.target.trim().trim_start_matches('#')),
    };
    let Some(stored) = &recall.stored else {
        return Shown::Sentence(format!("No stored result {target} in this session."));
    };
    match window(stored, recall.offset, recall.limit, limits) {
        Ok(Window { from, to, of, text }) => {
            Shown::Lines { header: format!("[{id} recall {target} lines {from}-{to} of {of}]"), text }
        }
        Err(0) => Shown::Lines { header: format!("[{id} recall {target} empty]"), text: "" },
        Err(of) => {
            let from = recall.offset.unwrap_or(1);
            Shown::Sentence(format!("Offset {from} is past the end: {target} has {of} lines."))
        }
    }
}
