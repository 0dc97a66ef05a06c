//! Code intelligence that an agent can trust: text in, plain data out.
//!
//! [`extract_symbols`] tells every definition and mention of a text.

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
mod outline;
mod parse;
mod query;
mod range;
mod raw;
mod symbol;
mod walk;

pub use diagnostics::{Diagnostic, DiagnosticKind, Diagnostics};
pub use edit::{Applied, Candidate, Change, Edit, EditError, EditPolicy, Editor, Extent, FileEdit, Planned};
pub use extract::{Extractor, extract_symbols};
pub use hash::{ContentHash, ContentHashError};
pub use index::{
    Answer, CacheError, FileSymbols, Hit, Index, IndexError, IndexOptions, IndexReport, OnProgress, Progress,
    Query, SkipReason, Skipped, Skips, SymbolSearch, lookup,
};
pub use language::{Language, LanguageError, LanguageSource, ResolvedLanguage};
pub use name_path::{NamePath, NamePathError, Ordinal, Segment, Selector};
pub use outline::{Outline, OutlineNode, outline};
pub use parse::{Cancel, ExtractError, Limits};
pub use query::{definitions_named, references_named, symbol_at};
pub use range::{LineIndex, Position, SourceRange};
pub use symbol::{CodeSymbol, ParseStatus, QuerySupport, Support, SymbolExtraction, SymbolKind, SymbolRole};
