//! Whether a Python text is shallow enough for a tree that is read and given back by calls on top of each other.
//!
//! A node stands in another one due to a token: a bracket, a block, or a word or sign since the last comma or line end.
//! Counting them bounds the tree's depth from above.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer::lex};

/// The deepest tree taken, in units of such tokens.
const MAX_DEPTH: usize = 200;

/// What may be open at one level of brackets.
#[derive(Default)]
struct Level {
    words: usize,
    /// A lambda goes on behind a comma.
    lambda: bool,
}

pub(super) fn is_shallow(text: &str) -> bool {
    let mut lexer = lex(text, Mode::Module);
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    // The depth of blocks and of the outer levels together.
    let (mut blocks, mut below) = (0usize, 0usize);
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return true,
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::Newline | TokenKind::Semi => level = Level::default(),
            TokenKind::Comma if !level.lambda => level.words = 0,
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                // A call of what a call gives is one deeper.
                level.words += 1;
                below += level.words;
                outer.push(std::mem::take(&mut level));
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                level = outer.pop().unwrap_or_default();
                below -= level.words.min(below);
            }
            kind if kind.is_operator() || kind.is_keyword() => {
                level.words += 1;
                level.lambda |= kind == TokenKind::Lambda;
            }
            _ => {}
        }
        if blocks + below + level.words > MAX_DEPTH {
            return false;
        }
    }
}
