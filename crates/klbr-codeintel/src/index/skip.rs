//! What an answer does not rest on, and why.

use crate::parse::ExtractError;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Why a file was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// Above the size bound; its bytes.
    TooLarge(u64),
    /// Not a text.
    Binary,
    /// Cannot be read; the system's word.
    Unreadable(String),
    /// Not parsed within the time bound.
    TimedOut,
    /// Its parser's process died.
    Crashed(String),
    /// It changed at each try to read it.
    Changing,
    /// The index holds as much as it may.
    IndexFull,
    /// A link that leads back to a folder around it, or nowhere.
    Link(String),
}

impl SkipReason {
    /// The reason's name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            SkipReason::TooLarge(_) => "too_large",
            SkipReason::Binary => "binary",
            SkipReason::Unreadable(_) => "unreadable",
            SkipReason::TimedOut => "timed_out",
            SkipReason::Crashed(_) => "crashed",
            SkipReason::Changing => "changing",
            SkipReason::IndexFull => "index_full",
            SkipReason::Link(_) => "link",
        }
    }

    /// Whether another try may do better though the file is the same.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, SkipReason::Unreadable(_) | SkipReason::Changing | SkipReason::IndexFull)
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::TooLarge(bytes) => write!(f, "too large: {bytes} bytes"),
            SkipReason::Binary => f.write_str("binary"),
            SkipReason::Unreadable(why) => write!(f, "unreadable: {why}"),
            SkipReason::TimedOut => f.write_str("not parsed in time"),
            SkipReason::Crashed(why) => write!(f, "its parser died: {why}"),
            SkipReason::Changing => f.write_str("changed each time it was read"),
            SkipReason::IndexFull => f.write_str("the index is full"),
            SkipReason::Link(why) => write!(f, "link: {why}"),
        }
    }
}

impl From<ExtractError> for SkipReason {
    fn from(error: ExtractError) -> Self {
        match error {
            ExtractError::TooLarge { bytes, .. } => SkipReason::TooLarge(bytes),
            ExtractError::Binary { .. } => SkipReason::Binary,
            ExtractError::TimedOut(_) | ExtractError::Cancelled => SkipReason::TimedOut,
            ExtractError::Crashed(reason) => SkipReason::Crashed(reason),
            ExtractError::Language(error) => SkipReason::Unreadable(error.to_string()),
        }
    }
}

/// A file that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file, relative to the root where it is below it.
    pub path: PathBuf,
    /// Why.
    pub reason: SkipReason,
}

/// How many files are left out by reason, and the first of them by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skips {
    /// Files of no language in this build; not listed.
    pub unsupported: usize,
    /// How many for each reason.
    pub counts: BTreeMap<String, usize>,
    /// The first [`Skips::LISTED`] of them.
    pub first: Vec<Skipped>,
}

impl Skips {
    /// How many files are listed by name.
    pub const LISTED: usize = 100;

    pub(super) fn add(&mut self, skipped: Skipped) {
        *self.counts.entry(skipped.reason.name().to_owned()).or_default() += 1;
        if self.first.len() < Skips::LISTED {
            self.first.push(skipped);
        }
    }

    /// Takes another answer's into this one.
    pub fn merge(&mut self, other: Skips) {
        self.unsupported += other.unsupported;
        other.counts.into_iter().for_each(|(reason, count)| *self.counts.entry(reason).or_default() += count);
        let room = Skips::LISTED.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }

    /// Whether nothing at all is left out.
    pub fn is_empty(&self) -> bool {
        self.unsupported == 0 && self.counts.is_empty()
    }

    /// All that are left out, unsupported ones apart.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }
}

impl fmt::Display for Skips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} skipped", self.total())?;
        for (index, (reason, count)) in self.counts.iter().enumerate() {
            write!(f, "{}{count} {reason}", if index == 0 { " (" } else { ", " })?;
        }
        write!(
            f,
            "{}, {} of no known language",
            if self.counts.is_empty() { "" } else { ")" },
            self.unsupported
        )
    }
}
