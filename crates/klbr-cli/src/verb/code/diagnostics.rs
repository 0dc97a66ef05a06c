//! `klbr code diagnostics`: where files leave their grammar.

use std::io::Write as _;

use serde_json::json;

use super::{each, head, shown};
use crate::args::Over;
use crate::error::Outcome;

/// Prints the problems; files without any are counted only.
pub(super) fn run(over: &Over, json: bool) -> Outcome {
    each(
        over,
        json,
        |name, surveyed, out| {
            for item in surveyed.diagnostics().items {
                // A buffer in memory takes what is written.
                let _ = writeln!(out, "{}:{}", shown(name), shown(&item.to_string()));
            }
        },
        |name, surveyed| {
            let diagnostics = surveyed.diagnostics();
            let mut entry = head(name, surveyed);
            entry.insert("language".to_owned(), json!(diagnostics.language.name));
            entry.insert("diagnostics".to_owned(), json!(diagnostics.items));
            (!diagnostics.items.is_empty()).then_some(entry)
        },
    )
}
