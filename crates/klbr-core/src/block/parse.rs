//! Reads blocks back: the inverse of the writer, and of nothing else.
//!
//! Owns the grammar of what [`super::render`] writes. Refuses everything else, so that a text that parses is
//! exactly the text that its blocks are written as.

use std::collections::BTreeSet;

use super::escape::{begins_tag, escape, read_attribute, unescape};
use super::{Attribute, Block, Content, MAX_DEPTH, Name, is_attribute_name};

/// Why a text is not what a list of blocks is written as; offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Between and around outermost blocks stands nothing but one line break.
    #[error("text outside of a block at byte {0}")]
    Stray(usize),
    /// A tag is not written as the writer does.
    #[error("malformed tag at byte {0}")]
    Tag(usize),
    /// A block ends that has not begun, or under another name.
    #[error("unexpected end of a block at byte {0}")]
    Close(usize),
    /// The text ends inside a block.
    #[error("a block named {0} is not closed")]
    Unclosed(Name),
    /// Text inside a block is escaped or laid out otherwise than the writer does.
    #[error("contents written otherwise before byte {0}")]
    Layout(usize),
    /// Blocks nest deeper than [`MAX_DEPTH`].
    #[error("blocks nest too deep at byte {0}")]
    Depth(usize),
}

/// Reads blocks as [`super::render`] writes them.
///
/// # Errors
///
/// Fails on any text that no list of blocks is written as.
pub fn parse(text: &str) -> Result<Vec<Block>, ParseError> {
    let mut blocks = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let tag_at = match open.last_mut() {
            Some(top) => {
                let tag_at = next_tag(text, at).ok_or(ParseError::Unclosed(top.block.name))?;
                top.raw = &text[at..tag_at];
                tag_at
            }
            None if blocks.is_empty() => at,
            None if text[at..].starts_with('\n') => at + 1,
            None => return Err(ParseError::Stray(at)),
        };
        let block = if text[tag_at..].starts_with("</") {
            let top = open.pop().ok_or(ParseError::Close(tag_at))?;
            at = read_end(text, tag_at, top.block.name)?;
            top.close(tag_at)?
        } else if begins_tag(&text[tag_at..]) {
            let (block, end, is_empty) = read_tag(text, tag_at)?;
            at = end;
            if open.len() == MAX_DEPTH {
                return Err(ParseError::Depth(tag_at));
            }
            if let Some(parent) = open.last_mut() {
                parent.begin_child(tag_at)?;
            }
            if !is_empty {
                open.push(Open { block, raw: "" });
                continue;
            }
            block
        } else {
            return Err(ParseError::Stray(tag_at));
        };
        match open.last_mut() {
            Some(parent) => parent.block.contents.push(Content::Block(block)),
            None => blocks.push(block),
        }
    }
    match open.last() {
        Some(top) => Err(ParseError::Unclosed(top.block.name)),
        None => Ok(blocks),
    }
}

/// A block whose end has not come yet.
struct Open<'t> {
    block: Block,
    /// What stands between the last tag and the next.
    raw: &'t str,
}

impl Open<'_> {
    /// Takes what stands before a nested block: a line break, or a text between two line breaks.
    fn begin_child(&mut self, at: usize) -> Result<(), ParseError> {
        if self.raw == "\n" { Ok(()) } else { self.text_between_breaks(at) }
    }

    /// Takes what stands before the end: as before a nested block, or a text alone.
    fn close(mut self, at: usize) -> Result<Block, ParseError> {
        let alone = self.block.contents.is_empty();
        let inline = alone && self.block.name == Name::Message;
        match self.raw.matches('\n').count() {
            0 if inline && !self.raw.is_empty() => self.text(self.raw, at)?,
            1 if !alone && self.raw == "\n" => {}
            2 if inline => return Err(ParseError::Layout(at)),
            _ => self.text_between_breaks(at)?,
        }
        Ok(self.block)
    }

    fn text_between_breaks(&mut self, at: usize) -> Result<(), ParseError> {
        let text = self.raw.strip_prefix('\n').and_then(|raw| raw.strip_suffix('\n'));
        self.text(text.filter(|text| !text.is_empty()).ok_or(ParseError::Layout(at))?, at)
    }

    fn text(&mut self, raw: &str, at: usize) -> Result<(), ParseError> {
        let text = unescape(raw);
        if escape(&text) != raw {
            return Err(ParseError::Layout(at));
        }
        self.block.push_text(&text);
        Ok(())
    }
}

/// Reads a closing tag of a name; answers where it ends.
fn read_end(text: &str, at: usize, name: Name) -> Result<usize, ParseError> {
    let rest = text[at..].strip_prefix("</").and_then(|rest| rest.strip_prefix(name.as_str()));
    let rest = rest.and_then(|rest| rest.strip_prefix('>')).ok_or(ParseError::Close(at))?;
    Ok(text.len() - rest.len())
}

/// Where the next `<` stands that begins a tag, or pretends to.
fn next_tag(text: &str, from: usize) -> Option<usize> {
    text[from..].match_indices('<').map(|(at, _)| from + at).find(|&at| begins_tag(&text[at..]))
}

/// Reads an opening tag: the block so far, where the tag ends, and whether it closes itself.
fn read_tag(text: &str, at: usize) -> Result<(Block, usize, bool), ParseError> {
    let malformed = ParseError::Tag(at);
    let rest = text[at..].strip_prefix('<').ok_or(malformed.clone())?;
    let name_len = rest.find([' ', '>', '/']).ok_or(malformed.clone())?;
    let name =
        Name::ALL.into_iter().find(|name| name.as_str() == &rest[..name_len]).ok_or(malformed.clone())?;
    let mut block = Block::new(name);
    let mut names = BTreeSet::new();
    let mut rest = &rest[name_len..];
    while let Some(attribute) = rest.strip_prefix(' ') {
        let (name, value) = attribute.split_once("=\"").ok_or(malformed.clone())?;
        let (raw, after) = value.split_once('"').ok_or(malformed.clone())?;
        if !is_attribute_name(name) || !names.insert(name) {
            return Err(malformed);
        }
        let value = read_attribute(raw).ok_or(malformed.clone())?;
        block.attributes.push(Attribute { name: name.to_owned(), value });
        rest = after;
    }
    let (rest, empty) = match rest.strip_prefix("/>") {
        Some(rest) => (rest, true),
        None => (rest.strip_prefix('>').ok_or(malformed)?, false),
    };
    Ok((block, text.len() - rest.len(), empty))
}
