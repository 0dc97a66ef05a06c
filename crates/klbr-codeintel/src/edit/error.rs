//! Why an edit is refused. A refused edit has written nothing.

use crate::{
    diagnostics::Diagnostic, hash::ContentHash, name_path::NamePathError, parse::ExtractError,
    range::SourceRange, symbol::SymbolKind,
};
use serde::{Deserialize, Serialize};
use std::{fmt, io, path::PathBuf};

/// A definition that a target may have meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// A target that names it alone.
    pub target: String,
    /// What kind of thing it is.
    pub kind: SymbolKind,
    /// Where it is.
    pub range: SourceRange,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, line {})", self.target, self.kind, self.range.start_line)
    }
}

struct List<'a>(&'a [Candidate]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, candidate) in self.0.iter().take(12).enumerate() {
            write!(f, "{}{candidate}", if index > 0 { ", " } else { "" })?;
        }
        match self.0.len() {
            0 => f.write_str("none"),
            1..=12 => Ok(()),
            more => write!(f, " and {} more", more - 12),
        }
    }
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The target is no selector.
    #[error("{target:?}: {source}")]
    Target {
        /// As given.
        target: String,
        /// Where it leaves the grammar.
        source: NamePathError,
    },
    /// The text could not be parsed at all.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// Nothing answers to the target.
    #[error("no definition {target:?} in this file; similar: {}", List(similar))]
    NotFound {
        /// As given.
        target: String,
        /// Definitions of the same last name, or near it.
        similar: Vec<Candidate>,
    },
    /// Several definitions answer.
    #[error("{target:?} names {} definitions: {}", candidates.len(), List(candidates))]
    Ambiguous {
        /// As given.
        target: String,
        /// All that answer.
        candidates: Vec<Candidate>,
    },
    /// A broken region leaves the target's place or extent in doubt.
    #[error("{target} stands in or after a broken region; repair that first: {problem}")]
    Degraded {
        /// The definition.
        target: Candidate,
        /// The first problem of the file.
        problem: String,
    },
    /// The target has no body.
    #[error("{0} has no body")]
    NoBody(Candidate),
    /// The result would have more faults than the text has.
    #[error("the result would parse worse ({before} problems before, {after} after), first: {}", first.as_ref().map_or("none".into(), ToString::to_string))]
    ParsesWorse {
        /// Problems of the text as it is.
        before: usize,
        /// Problems of the result.
        after: usize,
        /// The first of those, placed in the result.
        first: Option<Diagnostic>,
    },
    /// The result would move or drop a definition that the edit does not name.
    #[error("the new text does not stand by itself: it would move or drop {0}")]
    MovesOthers(Candidate),
    /// Two edits of a batch touch the same bytes.
    #[error("two edits touch the same text, bytes {} to {}", range.start_byte, range.end_byte)]
    Overlap {
        /// Where they meet.
        range: SourceRange,
    },
    /// The new name is no identifier of the language.
    #[error("{0:?} is no identifier here")]
    NotAnIdentifier(String),
    /// The file alone does not tell which mentions are of the target.
    #[error("cannot rename safely: {reason}, at {}", places(found))]
    RenameInDoubt {
        /// What is in doubt.
        reason: &'static str,
        /// Where.
        found: Vec<SourceRange>,
    },
    /// The file is not the one that the edit was planned against.
    #[error("{} has changed: it is now {found}", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// Its hash now.
        found: ContentHash,
        /// Where the target is now, when exactly one definition answers.
        target: Option<SourceRange>,
    },
    /// The same file stands twice in a batch with different hashes.
    #[error("{} stands twice in the batch with different hashes", .0.display())]
    Contradiction(PathBuf),
    /// The file may not be written.
    #[error("{} is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// Another editor held the file for too long.
    #[error("{} is locked by another editor", .0.display())]
    Locked(PathBuf),
    /// Reading or writing failed; every file of the batch is as it was.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Writing failed midway and these files could not be put back.
    #[error("{}: {source}; not restored: {}", path.display(), not_restored.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    HalfWritten {
        /// The file that could not be written.
        path: PathBuf,
        /// What failed.
        source: io::Error,
        /// Files that keep their new text; their old text is beside them.
        not_restored: Vec<PathBuf>,
    },
}

fn places(found: &[SourceRange]) -> String {
    let places = found.iter().take(8).map(|range| format!("{}:{}", range.start_line, range.start_column + 1));
    places.collect::<Vec<_>>().join(", ")
}
