//! Checked edits of symbols (B-CODE-3): planned on a text, applied to files.
//!
//! An edit is refused rather than guessed: when its target is ambiguous or degraded, when the file is not the one it
//! was planned against, when the result parses worse, or when it would move a definition that it does not name.

mod apply;
mod error;
mod fit;
mod plan;
mod rename;
mod write;

pub use apply::{Applied, EditPolicy, FileEdit};
pub use error::{Candidate, EditError};
pub use plan::{Change, Planned};

use crate::{
    extract::Extractor,
    parse::{Cancel, Limits},
};
use serde::{Deserialize, Serialize};

/// How much of a definition is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// The definition; its decorators, attributes and doc comments stay.
    #[default]
    Definition,
    /// The definition with what is attached to it.
    Attached,
}

/// One edit of one symbol. A target is a [`crate::Selector`]'s text and must name exactly one definition.
///
/// Texts are fitted to the file: its line endings, and the target's indentation where the text has none. Lines inside
/// string literals are never shifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "edit")]
pub enum Edit {
    /// Puts `text` in the place of the whole definition; an empty text removes it and what is attached.
    ReplaceSymbol {
        /// Which definition.
        target: String,
        /// The new definition.
        text: String,
        /// Whether what is attached goes too.
        #[serde(default)]
        extent: Extent,
    },
    /// Puts `text` in the place of the body: a block with or without its braces, a suite with its docstring.
    ReplaceSymbolBody {
        /// Which definition.
        target: String,
        /// The new body.
        text: String,
    },
    /// Puts `text` on lines of its own before the definition and what is attached to it.
    InsertBefore {
        /// Which definition.
        target: String,
        /// What is inserted.
        text: String,
    },
    /// Puts `text` on lines of its own after the definition.
    InsertAfter {
        /// Which definition.
        target: String,
        /// What is inserted.
        text: String,
    },
    /// Renames the definition and its mentions within this file, where the file leaves no doubt which those are.
    RenameInFile {
        /// Which definition.
        target: String,
        /// Its new name.
        name: String,
    },
}

impl Edit {
    /// The text that names the edit's target.
    pub fn target(&self) -> &str {
        match self {
            Edit::ReplaceSymbol { target, .. }
            | Edit::ReplaceSymbolBody { target, .. }
            | Edit::InsertBefore { target, .. }
            | Edit::InsertAfter { target, .. }
            | Edit::RenameInFile { target, .. } => target,
        }
    }
}

/// Plans and applies edits. Not shared between threads; locks on the files keep several editors apart.
#[derive(Debug, Default)]
pub struct Editor {
    extractor: Extractor,
    policy: EditPolicy,
}

impl Editor {
    /// An editor within those bounds.
    pub fn new(limits: Limits, policy: EditPolicy) -> Self {
        Editor { extractor: Extractor::new(limits), policy }
    }

    /// The same, ended early by `cancel`; a batch that has begun to write is finished or undone.
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Editor { extractor: self.extractor.with_cancel(cancel), ..self }
    }
}
