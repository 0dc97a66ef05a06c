//! Questions to one extraction: by name, path, suffix or place (K14: best effort, and said so).

use crate::{
    name_path::{NamePathError, Selector},
    symbol::{CodeSymbol, SymbolRole},
};

/// The definitions that answer to a name, a path or the end of one (see [`Selector`]), in the order of the text.
///
/// # Errors
/// [`NamePathError`] when `name` is no path.
pub fn definitions_named<'a>(
    symbols: &'a [CodeSymbol],
    name: &str,
) -> Result<Vec<&'a CodeSymbol>, NamePathError> {
    let selector = Selector::parse(name)?;
    Ok(named(symbols, SymbolRole::Definition, &selector))
}

/// The mentions of a name, or of a path's end as it is written there.
///
/// Matching is by name alone: what the name is bound to where it is mentioned is not resolved.
///
/// # Errors
/// [`NamePathError`] when `name` is no path.
pub fn references_named<'a>(
    symbols: &'a [CodeSymbol],
    name: &str,
) -> Result<Vec<&'a CodeSymbol>, NamePathError> {
    let selector = Selector::parse(name)?;
    Ok(named(symbols, SymbolRole::Reference, &selector))
}

fn named<'a>(symbols: &'a [CodeSymbol], role: SymbolRole, selector: &Selector) -> Vec<&'a CodeSymbol> {
    symbols.iter().filter(|symbol| symbol.role == role && selector.matches(&symbol.name_path)).collect()
}

/// The innermost definition that stands around `byte`, or begins there, attached text included.
pub fn symbol_at(symbols: &[CodeSymbol], byte: usize) -> Option<&CodeSymbol> {
    let around = symbols.iter().filter(|symbol| {
        symbol.role == SymbolRole::Definition
            && symbol.attached_range.start_byte <= byte
            && byte < symbol.attached_range.end_byte
    });
    around.min_by_key(|symbol| symbol.attached_range.end_byte - symbol.attached_range.start_byte)
}
