//! Tokens as a model's own tokenizer has them, read from the `tokenizer.json` that comes with it.

use std::ops::Range;

use super::{Estimate, Tokenizer};

/// A tokenizer in the `tokenizer.json` format.
pub struct FileTokenizer(tokenizers::Tokenizer);

/// A file is not a tokenizer.
#[derive(Debug, thiserror::Error)]
#[error("not a tokenizer.json")]
pub struct NotATokenizer(#[source] Box<dyn std::error::Error + Send + Sync>);

impl FileTokenizer {
    /// Reads the bytes of a `tokenizer.json`. What it says of truncation and padding does not hold here.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are not a tokenizer.
    pub fn from_json(bytes: &[u8]) -> Result<Self, NotATokenizer> {
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(bytes).map_err(NotATokenizer)?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(NotATokenizer)?;
        Ok(FileTokenizer(tokenizer))
    }
}

impl Tokenizer for FileTokenizer {
    /// A text that the tokenizer has no tokens for is estimated.
    fn tokens(&self, text: &str) -> Vec<Range<usize>> {
        match self.0.encode(text, false) {
            Ok(encoding) => {
                let offsets = encoding.get_offsets().iter().map(|&(start, end)| start..end);
                offsets.filter(|range| !range.is_empty()).collect()
            }
            Err(_) => Estimate.tokens(text),
        }
    }
}
