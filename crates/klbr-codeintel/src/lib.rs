//! Code intelligence that an agent can trust: text in, plain data out.
//!
//! [`extract_symbols`] tells every definition and mention of a text.

mod assemble;
mod extract;
mod lang;
mod language;
mod name_path;
mod parse;
mod query;
mod range;
mod raw;
mod symbol;
mod walk;

pub use extract::{Extractor, extract_symbols};
pub use language::{Language, LanguageError, LanguageSource, ResolvedLanguage};
pub use name_path::{NamePath, NamePathError, Ordinal, Segment, Selector};
pub use parse::{Cancel, ExtractError, Limits};
pub use query::{definitions_named, references_named, symbol_at};
pub use range::{LineIndex, Position, SourceRange};
pub use symbol::{CodeSymbol, ParseStatus, QuerySupport, Support, SymbolExtraction, SymbolKind, SymbolRole};
