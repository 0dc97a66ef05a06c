//! The ids of results.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The id of a result: its number in the agent's life, counting from 1, never reused.
///
/// Shown as `#` and lowercase hex, at least four digits: `#0001`, `#000a`, `#10000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultId(u64);

impl ResultId {
    /// The id of the result with this number.
    pub const fn new(number: u64) -> Self {
        ResultId(number)
    }

    /// The result's number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:04x}", self.0)
    }
}

/// What a model wrote is not the id of any result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of a result")]
pub struct InvalidId(String);

impl FromStr for ResultId {
    type Err = InvalidId;

    /// Reads an id as a model writes it: the `#` may be left out, and the case of the digits is free.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits = text.trim().trim_start_matches('#');
        let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let number = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
        number.map(ResultId).ok_or_else(|| InvalidId(text.to_owned()))
    }
}
