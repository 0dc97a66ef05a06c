//! Code intelligence that an agent can trust: text in, plain data out.
//!
//! The tour: [`extract_symbols`] (or an [`Extractor`] for many texts) tells every definition and mention;
//! [`definitions_named`], [`references_named`], [`symbol_at`] and [`outline`] ask that answer; [`Extractor::diagnostics`]
//! tells where a text leaves its grammar. [`Editor::plan`] proves an edit on a text, [`Editor::apply`] writes it to files.
//! [`survey`] goes through a tree once, [`Index`] holds a tree's names, [`lookup`] finds one without an index, [`isolate`]
//! parses where it can be killed.
//!
//! It prints nothing, reads no environment, keeps no state between calls but what its values hold, and knows neither
//! agents nor their tools.

mod assemble;
mod diagnostics;
mod edit;
mod extract;
mod hash;
mod index;
pub mod isolate;
mod lang;
mod language;
mod name_path;
mod native;
mod outline;
mod parse;
mod query;
mod range;
mod raw;
mod symbol;
mod walk;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use diagnostics::{Diagnostic, DiagnosticKind, Diagnostics};
pub use edit::{Applied, Candidate, Change, Edit, EditError, EditPolicy, Editor, Extent, FileEdit, Planned};
pub use extract::{Extractor, extract_symbols};
pub use hash::{ContentHash, ContentHashError};
pub use index::{
    Admits, Answer, CacheError, Coverage, FileSymbols, Hit, Index, IndexError, IndexOptions, IndexReport,
    OnProgress, Progress, Query, SkipReason, Skipped, Skips, Surveyed, SymbolSearch, lookup, lookup_among,
    survey,
};
#[cfg(feature = "watch")]
pub use index::{Watch, WatchError};
pub use language::{Language, LanguageError, LanguageSource, ResolvedLanguage};
pub use name_path::{NamePath, NamePathError, Ordinal, Segment, Selector};
pub use outline::{Outline, OutlineNode, outline};
pub use parse::{Cancel, ExtractError, Limits};
pub use query::{definitions_named, references_named, symbol_at};
pub use range::{LineIndex, Position, SourceRange};
pub use symbol::{CodeSymbol, ParseStatus, QuerySupport, Support, SymbolExtraction, SymbolKind, SymbolRole};
