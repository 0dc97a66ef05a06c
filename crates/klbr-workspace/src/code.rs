//! Code by its symbols, as actions of an agent: outlines, definitions, mentions, syntax faults, checked edits.
//!
//! Owns what an agent reads of an answer, and that it reads and changes only what its [`View`] lets it, links
//! followed. Refuses to change a file that the agent has not seen as it is, and to guess which symbol is meant.
//!
//! | action | what it does |
//! | --- | --- |
//! | `code_outline` | files as trees of what they define |
//! | `code_symbols` | definitions whose names hold a text |
//! | `code_definitions` | where a name is defined; one alone with its text, which counts as having read the file |
//! | `code_references` | where a name is mentioned |
//! | `code_diagnostics` | where files leave their grammar |
//! | `code_edit_symbol` | one definition changed, by its name |

mod ask;
mod disk;
mod edit;
mod find;
mod list;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use klbr_codeintel::isolate::{Isolation, serve};
use klbr_core::context::paths::resolve;
use klbr_core::runtime::AgentBuilder;

use crate::view::{Level, View};
pub use edit::{CodeEditSymbol, EditArguments};
pub use find::{CodeDefinitions, CodeReferences, DefinitionArguments, ReferenceArguments};
pub use list::{CodeDiagnostics, CodeOutline, CodeSymbols, ListArguments, SymbolArguments};

/// A folder of code, and what of it an agent may see and change. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Code(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Canonical and UTF-8.
    root: String,
    view: View,
    isolation: Option<Isolation>,
}

impl Code {
    /// The code below a folder, at this level.
    ///
    /// # Errors
    ///
    /// Fails when the folder cannot be found, or its path is not UTF-8.
    pub fn new(root: &Path, level: Level) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let root = root.into_os_string().into_string();
        let root = root.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))?;
        let view = View::new().grant(&root, level);
        Ok(Code(Arc::new(Inner { root, view, isolation: None })))
    }

    /// The same at another level at a path (relative to the root) and below.
    #[must_use]
    pub fn with(self, path: &str, level: Level) -> Self {
        let path = resolve(&self.0.root, path);
        let view = self.0.view.clone().grant(&path, level);
        Code(Arc::new(Inner { root: self.0.root.clone(), view, isolation: self.0.isolation.clone() }))
    }

    /// The same with hard files parsed in a process that can be killed.
    #[must_use]
    pub fn isolated(self, isolation: Isolation) -> Self {
        let (root, view) = (self.0.root.clone(), self.0.view.clone());
        Code(Arc::new(Inner { root, view, isolation: Some(isolation) }))
    }

    /// Gives an agent all actions over this code; always the same, whatever it may change.
    #[must_use]
    pub fn give_to(&self, agent: AgentBuilder) -> AgentBuilder {
        agent
            .tool(CodeOutline(self.clone()))
            .tool(CodeSymbols(self.clone()))
            .tool(CodeDefinitions(self.clone()))
            .tool(CodeReferences(self.clone()))
            .tool(CodeDiagnostics(self.clone()))
            .tool(CodeEditSymbol(self.clone()))
    }
}
