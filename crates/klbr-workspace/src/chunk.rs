//! Text cut into pieces for a search index, measured in tokens.
//!
//! Owns where the cuts are. Refuses to know any one tokenizer: a [`Tokenizer`] says where the tokens of a text
//! stand, and [`Words`] and [`Estimate`] are there when no other is. With the feature `tokenizers` there is also
//! one that reads a model's `tokenizer.json`.

#[cfg(feature = "tokenizers")]
mod file;

use std::ops::Range;

#[cfg(feature = "tokenizers")]
pub use file::{FileTokenizer, NotATokenizer};

/// Says where the tokens of a text stand.
pub trait Tokenizer {
    /// The byte ranges of the tokens, in order. An edge inside of a character is read as that character's beginning.
    fn tokens(&self, text: &str) -> Vec<Range<usize>>;
}

/// A stand-in: a token is a run of characters that are not whitespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words;

impl Tokenizer for Words {
    fn tokens(&self, text: &str) -> Vec<Range<usize>> {
        let mut tokens = Vec::new();
        let mut start = None;
        for (at, c) in text.char_indices() {
            match (start, c.is_whitespace()) {
                (None, false) => start = Some(at),
                (Some(from), true) => {
                    tokens.push(from..at);
                    start = None;
                }
                (None, true) | (Some(_), false) => {}
            }
        }
        tokens.extend(start.map(|from| from..text.len()));
        tokens
    }
}

/// An estimate where a server does not say: a token for every two bytes of UTF-8, and for one that is left over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate;

impl Tokenizer for Estimate {
    fn tokens(&self, text: &str) -> Vec<Range<usize>> {
        (0..text.len()).step_by(2).map(|start| start..(start + 2).min(text.len())).collect()
    }
}

/// How pieces are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The most tokens of a piece; read as 16 when smaller.
    pub size: usize,
    /// How many tokens a piece repeats of the one before; at most half the size.
    pub overlap: usize,
}

impl Default for Cut {
    /// 480 tokens, which leaves room for an embedder's own marks under 512, and 64 repeated.
    fn default() -> Self {
        Cut { size: 480, overlap: 64 }
    }
}

/// The smallest size of a piece, in tokens.
const MIN_SIZE: usize = 16;
/// A piece of fewer characters is dropped, unless it is the whole text.
const MIN_CHARS: usize = 40;
/// Where a cut is best, the best first; it stands just after.
const BREAKS: [&str; 3] = ["\n\n", "\n", ". "];

/// Cuts a text into pieces: CRLF read as LF, the text and every piece trimmed, short pieces dropped.
pub fn chunks(text: &str, cut: Cut, tokenizer: &impl Tokenizer) -> Vec<String> {
    let size = cut.size.max(MIN_SIZE);
    let overlap = cut.overlap.min(size / 2);
    let text = text.replace("\r\n", "\n");
    let text = text.trim();
    let tokens = tokenizer.tokens(text);
    if tokens.len() <= size {
        return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    }
    let mut pieces = Vec::new();
    let mut first = 0;
    loop {
        let start = text.floor_char_boundary(tokens[first].start);
        let last = (first + size).min(tokens.len());
        let (end, next) = match last == tokens.len() {
            true => (text.len(), None),
            false => {
                let end = text.floor_char_boundary(tokens[last - 1].end);
                let end = best_cut(&text[start..end]).map_or(end, |cut| start + cut);
                let before = tokens.partition_point(|token| token.start < end);
                // Always forward, also where the cut leaves fewer tokens than are repeated.
                (end, Some(before.saturating_sub(overlap).max(first + 1)))
            }
        };
        let piece = text[start..end].trim();
        if piece.chars().count() >= MIN_CHARS {
            pieces.push(piece.to_owned());
        }
        match next {
            Some(next) => first = next,
            None => return pieces,
        }
    }
}

/// Splits a piece that an embedder still refuses in two, at the best place about its middle; nothing is dropped.
///
/// None when the piece has fewer than two characters.
pub fn halves(piece: &str) -> Option<(&str, &str)> {
    let middle = piece.char_indices().nth(piece.chars().count() / 2)?.0;
    let (before, after) = piece.split_at(middle);
    // The last third of the first half, else the middle itself.
    match best_cut(before) {
        Some(at) => Some(piece.split_at(at)),
        None => (!before.is_empty()).then_some((before, after)),
    }
}

/// Where to cut a window: just after the last paragraph, line or sentence that ends in its last third.
fn best_cut(window: &str) -> Option<usize> {
    let chars = window.chars().count();
    let from = window.char_indices().nth(chars * 2 / 3).map_or(window.len(), |(at, _)| at);
    BREAKS.iter().find_map(|mark| window[from..].rfind(mark).map(|at| from + at + mark.len()))
}
