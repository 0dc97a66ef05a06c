//! A file's content as text, with the hash that decides whether it is unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::Hash;

/// A whole file: its text, and the SHA-256 of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    text: Arc<str>,
    hash: Hash,
    exact: bool,
}

impl Content {
    /// Reads bytes as text. What is not UTF-8 becomes `\u{fffd}`; a byte order mark, carriage returns and NULs stay.
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let exact = matches!(text, Cow::Borrowed(_));
        Content { text: text.into(), hash: Hash::of(bytes), exact }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the bytes.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Whether the text is the bytes, none of them replaced.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

/// The first eight hex digits of a hash: what a model is shown.
pub(super) fn short(hash: Hash) -> String {
    let mut digits = hash.to_string();
    digits.truncate(8);
    digits
}
