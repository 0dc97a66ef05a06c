//! `klbr code symbols`: what files define or mention, a line each.

use std::io::Write as _;

use klbr_codeintel::{CodeSymbol, SymbolRole};
use serde_json::json;

use super::{each, head, shown};
use crate::args::Symbols;
use crate::error::Outcome;

/// Prints the list.
pub(super) fn run(symbols: &Symbols, json: bool) -> Outcome {
    let role = match (symbols.all, symbols.refs) {
        (true, _) => None,
        (false, true) => Some(SymbolRole::Reference),
        (false, false) => Some(SymbolRole::Definition),
    };
    let takes = |symbol: &&CodeSymbol| symbols.kind.is_empty() || symbols.kind.contains(&symbol.kind);
    each(
        &symbols.over,
        json,
        |name, surveyed, out| {
            let name = shown(name);
            for symbol in surveyed.symbols(role).symbols.iter().filter(takes) {
                // A buffer in memory takes what is written. Paths are printed with their controls escaped.
                let _ = writeln!(out, "{name}:{symbol}");
            }
        },
        |name, surveyed| {
            let mut extraction = surveyed.symbols(role);
            extraction.symbols.retain(|symbol| takes(&symbol));
            let mut entry = head(name, surveyed);
            entry.insert("language".to_owned(), json!(extraction.language.name));
            entry.insert("status".to_owned(), json!(extraction.status));
            entry.insert("symbols".to_owned(), json!(extraction.symbols));
            Some(entry)
        },
    )
}
