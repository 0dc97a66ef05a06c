//! How a changed file is shown: its bracket and its diff.

use similar::TextDiff;

use super::lines::lines;
use super::read::printable;
use super::{Change, content};

/// A change as it is shown, alone or inside of a patch's result.
pub(super) struct Shown {
    /// The bracket after its `[`, and after the id where the bracket has one.
    pub(super) bracket: String,
    /// What stands beside the bracket, on its line.
    pub(super) beside: Option<String>,
    /// What follows on lines of its own.
    pub(super) diff: String,
}

pub(super) fn show(change: &Change) -> Shown {
    let path = printable(&change.path);
    let Some(after) = &change.after else {
        return Shown { bracket: format!("{path} deleted]"), beside: None, diff: String::new() };
    };
    let bracket = format!("{path} sha {}]", content::short(after.hash()));
    match &change.before {
        None => {
            let created = format!("Created, {} lines.", lines(after.text()).len());
            Shown { bracket, beside: Some(created), diff: String::new() }
        }
        Some(before) => Shown { bracket, beside: None, diff: diff(before.text(), after.text()) },
    }
}

/// The hunks of a unified diff with three lines of context, without a file header and a final line break.
fn diff(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().newline_terminated(true).diff_slices(&lines(before), &lines(after));
    let mut text = diff.unified_diff().to_string();
    if text.ends_with('\n') {
        text.pop();
    }
    text
}
