//! From bytes to symbols: one parser per language, kept for the next file.

use crate::{
    assemble::{self, Wanted},
    diagnostics::{Diagnostics, diagnostics},
    lang::{python::Python, rust::Rust},
    language::{Language, ResolvedLanguage},
    native,
    parse::{Cancel, ExtractError, Limits, Watch, admit, new_parser, parse},
    raw::Raws,
    symbol::SymbolExtraction,
    walk::walk,
};
use std::{collections::BTreeMap, path::Path};
use tree_sitter::{Parser, Tree};

/// Extracts symbols from one text after another. Not shared between threads: each has its own.
#[derive(Default)]
pub struct Extractor {
    limits: Limits,
    cancel: Option<Cancel>,
    engines: BTreeMap<Language, Engine>,
}

struct Engine {
    parser: Parser,
    grammar: Grammar,
}

enum Grammar {
    Rust(Box<Rust>),
    Python(Box<Python>),
    #[cfg(feature = "_table")]
    Table(Box<crate::lang::table::Table>),
}

impl Engine {
    fn new(language: Language) -> Self {
        let grammar = language.grammar();
        Engine {
            parser: new_parser(language),
            grammar: match language {
                Language::Rust => Grammar::Rust(Box::new(Rust::new(&grammar))),
                Language::Python => Grammar::Python(Box::new(Python::new(&grammar))),
                #[cfg(feature = "_table")]
                other => Grammar::Table(Box::new(crate::lang::table::Table::new(other, &grammar))),
            },
        }
    }
}

/// A parsed text with everything found in it.
pub(crate) struct Parsed {
    pub(crate) tree: Tree,
    pub(crate) raws: Raws,
}

impl std::fmt::Debug for Extractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extractor").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Extractor {
    /// An extractor within those bounds.
    pub fn new(limits: Limits) -> Self {
        Extractor { limits, ..Extractor::default() }
    }

    /// The same, ended early by `cancel` with [`ExtractError::Cancelled`].
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Extractor { cancel: Some(cancel), ..self }
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Every definition and reference of `source` (B-CODE-1). The language is the given one, else the path's, else the
    /// first line's.
    ///
    /// # Errors
    /// [`ExtractError`] when the text has no language here, is above a bound, or is binary. Syntax errors are none:
    /// they are told by the status, and what can be told around them is.
    pub fn extract(
        &mut self,
        path: Option<&Path>,
        source: &[u8],
        language: Option<&str>,
    ) -> Result<SymbolExtraction, ExtractError> {
        let language = ResolvedLanguage::resolve(path, source, language)?;
        let raws = self.raws(language.name, source)?;
        Ok(assemble::extraction(language, source, &raws, Wanted::default()))
    }

    /// Where `source` leaves its grammar; empty for a text without fault.
    ///
    /// # Errors
    /// As [`Extractor::extract`].
    pub fn diagnostics(
        &mut self,
        path: Option<&Path>,
        source: &[u8],
        language: Option<&str>,
    ) -> Result<Diagnostics, ExtractError> {
        let language = ResolvedLanguage::resolve(path, source, language)?;
        let parsed = self.parsed(language.name, source)?;
        Ok(Diagnostics { language, items: diagnostics(source, &parsed.raws) })
    }

    /// Everything found in a text of which no tree is needed.
    pub(crate) fn raws(&mut self, language: Language, source: &[u8]) -> Result<Raws, ExtractError> {
        admit(source, &self.limits)?;
        Watch::new(self.limits.max_time, self.cancel.as_ref()).check()?;
        match native::raws(language, source) {
            Some(raws) => Ok(raws),
            None => Ok(self.parsed(language, source)?.raws),
        }
    }

    pub(crate) fn parsed(&mut self, language: Language, source: &[u8]) -> Result<Parsed, ExtractError> {
        admit(source, &self.limits)?;
        let watch = Watch::new(self.limits.max_time, self.cancel.as_ref());
        let engine = self.engines.entry(language).or_insert_with(|| Engine::new(language));
        let tree = parse(&mut engine.parser, source, &watch)?;
        let raws = match &engine.grammar {
            Grammar::Rust(grammar) => walk(&**grammar, &tree, source, &watch),
            Grammar::Python(grammar) => walk(&**grammar, &tree, source, &watch),
            #[cfg(feature = "_table")]
            Grammar::Table(grammar) => walk(&**grammar, &tree, source, &watch),
        }?;
        Ok(Parsed { tree, raws })
    }
}

/// Every definition and reference of one text, within the default [`Limits`].
///
/// ```
/// use klbr_codeintel::{SymbolKind, definitions_named, extract_symbols};
///
/// let extraction = extract_symbols(None, b"struct S;\nimpl S { fn new() -> S { S } }", Some("rust"))?;
/// let found = definitions_named(&extraction.symbols, "S::new")?;
/// assert_eq!(found[0].kind, SymbolKind::Method);
/// assert_eq!(found[0].name_path.to_string(), "impl S::new");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`Extractor::extract`].
pub fn extract_symbols(
    path: Option<&Path>,
    source: impl AsRef<[u8]>,
    language: Option<&str>,
) -> Result<SymbolExtraction, ExtractError> {
    Extractor::default().extract(path, source.as_ref(), language)
}
