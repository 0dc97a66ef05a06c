//! `klbr code outline`: files as trees of what they define, with the hash that an edit names.

use std::io::Write as _;

use klbr_codeintel::{SymbolRole, outline};
use serde_json::json;

use super::{each, head, shown};
use crate::args::Over;
use crate::error::Outcome;

/// Prints the trees.
pub(super) fn run(over: &Over, json: bool) -> Outcome {
    each(
        over,
        json,
        |name, surveyed, out| {
            let extraction = surveyed.symbols(Some(SymbolRole::Definition));
            let language = extraction.language.name;
            // A buffer in memory takes what is written.
            let _ = writeln!(out, "{} ({language}, {})", shown(name), surveyed.hash());
            for line in outline(&extraction.symbols).to_string().lines() {
                let _ = writeln!(out, "  {}", shown(line));
            }
        },
        |name, surveyed| {
            let extraction = surveyed.symbols(Some(SymbolRole::Definition));
            let mut entry = head(name, surveyed);
            entry.insert("language".to_owned(), json!(extraction.language.name));
            entry.insert("status".to_owned(), json!(extraction.status));
            entry.insert("outline".to_owned(), json!(outline(&extraction.symbols)));
            Some(entry)
        },
    )
}
