//! What a walk writes down: compact records of byte spans, from which every answer is made.

use crate::{range::Span, symbol::SymbolKind};
use serde::{Deserialize, Serialize};

/// The text of a definition's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Label {
    /// As it stands in the source.
    At(Span),
    /// Composed, as an impl's heading is.
    Composed(Box<str>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Def {
    pub(crate) label: Label,
    pub(crate) kind: SymbolKind,
    pub(crate) name: Span,
    pub(crate) range: Span,
    /// First byte of what is attached to it; `range.start` when nothing is.
    pub(crate) attached: u32,
    pub(crate) body: Option<Span>,
    /// A docstring's literal, where the language has such.
    pub(crate) docs: Option<Span>,
    pub(crate) container: Option<u32>,
    pub(crate) via_macro: Option<Span>,
    pub(crate) degraded: bool,
}

impl Def {
    pub(crate) fn new(kind: SymbolKind, name: Span, range: Span) -> Self {
        Def {
            label: Label::At(name),
            kind,
            name,
            range,
            attached: range.start,
            body: None,
            docs: None,
            container: None,
            via_macro: None,
            degraded: false,
        }
    }

    pub(crate) fn name<'a>(&'a self, source: &'a [u8]) -> std::borrow::Cow<'a, str> {
        match &self.label {
            Label::At(span) => span.text(source),
            Label::Composed(text) => std::borrow::Cow::Borrowed(text),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ref {
    pub(crate) name: Span,
    pub(crate) kind: SymbolKind,
    pub(crate) container: Option<u32>,
}

/// A region that does not follow the grammar, or a token that should have been there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) span: Span,
    pub(crate) missing: Option<Box<str>>,
}

/// Everything one walk found, each list in the order of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raws {
    pub(crate) defs: Vec<Def>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) problems: Vec<Problem>,
}
