//! What is wrong with a manifest, where, and what to do about it.

use std::fmt;
use std::sync::Arc;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1; 0 when it is about the whole.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {} ({})", self.file, self.message, self.hint),
            line => write!(f, "{}:{line}: {} ({})", self.file, self.message, self.hint),
        }
    }
}

/// A manifest is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    /// Everything that is wrong, in the file's order.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl ManifestError {
    pub(crate) fn unless_empty(mut problems: Vec<Problem>) -> Result<(), Self> {
        problems.sort_by_key(|problem| problem.line);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ManifestError { problems }),
        }
    }
}
