//! Turns bytes into a syntax tree within bounds of size and time, and stops when told.

use crate::language::{Language, LanguageError};
use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// A flag that its holders share: once raised, the work that watches it ends early.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is down.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Raises it, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The bounds of one file's extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest text taken, in bytes; never above `u32::MAX`.
    pub max_bytes: usize,
    /// The longest that parser and walk may take together. The parser looks at the clock between steps; error recovery
    /// over a hostile text can take long within one step, which only [`crate::isolate`] ends.
    pub max_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_bytes: 8 << 20, max_time: Duration::from_secs(10) }
    }
}

/// Why a text gave no symbols at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// No language, or none of this build.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// Above the size bound.
    #[error("{bytes} bytes are more than the {limit} allowed")]
    TooLarge {
        /// The text's size.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// A NUL among the first bytes: not a text.
    #[error("binary: a NUL stands at byte {at}")]
    Binary {
        /// Where.
        at: usize,
    },
    /// Above the time bound.
    #[error("not finished within {0:?}")]
    TimedOut(Duration),
    /// The caller raised its [`Cancel`].
    #[error("cancelled")]
    Cancelled,
    /// The process that parsed it died, or answered nonsense.
    #[error("the parsing process failed: {0}")]
    Crashed(String),
}

/// A moment after which work ends, and the flag that ends it before.
pub(crate) struct Watch<'a> {
    started: Instant,
    limit: Duration,
    cancel: Option<&'a Cancel>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(limit: Duration, cancel: Option<&'a Cancel>) -> Self {
        Watch { started: Instant::now(), limit, cancel }
    }

    pub(crate) fn check(&self) -> Result<(), ExtractError> {
        if self.cancel.is_some_and(Cancel::is_cancelled) {
            return Err(ExtractError::Cancelled);
        }
        match self.started.elapsed() > self.limit {
            true => Err(ExtractError::TimedOut(self.limit)),
            false => Ok(()),
        }
    }
}

/// How far into a text a NUL makes it a binary file; later ones are treated as broken regions.
const BINARY_WINDOW: usize = 8000;

pub(crate) fn admit(source: &[u8], limits: &Limits) -> Result<(), ExtractError> {
    let limit = limits.max_bytes.min(u32::MAX as usize - 1);
    if source.len() > limit {
        return Err(ExtractError::TooLarge { bytes: source.len() as u64, limit: limit as u64 });
    }
    match memchr::memchr(0, &source[..source.len().min(BINARY_WINDOW)]) {
        Some(at) => Err(ExtractError::Binary { at }),
        None => Ok(()),
    }
}

pub(crate) fn new_parser(language: Language) -> Parser {
    let mut parser = Parser::new();
    parser
        .set_language(&language.grammar())
        .expect("the pinned grammars have a version that the pinned parser reads");
    parser
}

pub(crate) fn parse(parser: &mut Parser, source: &[u8], watch: &Watch<'_>) -> Result<Tree, ExtractError> {
    let mut stopped = None;
    let mut progress = |_: &ParseState| match watch.check() {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            stopped = Some(error);
            ControlFlow::Break(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree = parser.parse_with_options(&mut |at, _| source.get(at..).unwrap_or(&[]), None, Some(options));
    if tree.is_none() {
        parser.reset();
    }
    tree.ok_or_else(|| stopped.unwrap_or(ExtractError::TimedOut(watch.limit)))
}
