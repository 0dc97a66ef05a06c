//! Where a text leaves its grammar.

use crate::{
    language::ResolvedLanguage,
    range::{LineIndex, SourceRange},
    raw::{Problem, Raws},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum DiagnosticKind {
    /// A region that the grammar cannot read.
    Error {
        /// How it begins.
        text: String,
    },
    /// A token that should stand here.
    Missing {
        /// The token, or the name of the construct.
        token: String,
    },
    /// Bytes that are no UTF-8.
    InvalidUtf8,
}

/// One problem and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The region; empty for a missing token.
    pub range: SourceRange,
    /// What is wrong.
    #[serde(flatten)]
    pub kind: DiagnosticKind,
}

/// The problems of one text, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// The language it was read as.
    pub language: ResolvedLanguage,
    /// The problems; syntax only, never types or names.
    pub items: Vec<Diagnostic>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.range.start_line, self.range.start_column + 1)?;
        match &self.kind {
            DiagnosticKind::Error { text } => write!(f, "cannot read {text:?}"),
            DiagnosticKind::Missing { token } => write!(f, "missing {token:?}"),
            DiagnosticKind::InvalidUtf8 => f.write_str("not UTF-8"),
        }
    }
}

/// The longest excerpt of a broken region, in characters.
const EXCERPT: usize = 60;

pub(crate) fn diagnostics(source: &[u8], raws: &Raws) -> Vec<Diagnostic> {
    let lines = LineIndex::new(source);
    let mut items: Vec<Diagnostic> =
        raws.problems.iter().map(|problem| syntax(source, &lines, problem)).collect();
    let mut at = 0;
    for chunk in source.utf8_chunks() {
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            let range = lines.range(at..at + chunk.invalid().len());
            items.push(Diagnostic { range, kind: DiagnosticKind::InvalidUtf8 });
        }
        at += chunk.invalid().len();
    }
    items.sort_by_key(|item| (item.range.start_byte, item.range.end_byte));
    items
}

fn syntax(source: &[u8], lines: &LineIndex, problem: &Problem) -> Diagnostic {
    let kind = match &problem.missing {
        Some(token) => DiagnosticKind::Missing { token: token.to_string() },
        None => {
            DiagnosticKind::Error { text: problem.span.text(source).trim().chars().take(EXCERPT).collect() }
        }
    };
    Diagnostic { range: lines.range(problem.span.range()), kind }
}
