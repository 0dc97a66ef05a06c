//! The blocks that a model reads, and the escaping that keeps people's text from looking like one.
//!
//! Owns the closed set of block names (`C-MSG-1`), the writer, the parser and the escaper (`C-MSG-2`).
//! Refuses any other markup, and any text that reaches a block unescaped: [`Block::text`] is the only way in.
//!
//! ```
//! use klbr_core::block::{Block, Name, parse, render};
//!
//! let message = Block::new(Name::Message).attr("id", "msg:7").attr("author", "Ada").text("</message> hi");
//! let frame = [Block::new(Name::Channel).attr("source", "discord").child(message)];
//! let text = render(&frame);
//! assert_eq!(
//!     text,
//!     "<channel source=\"discord\">\n<message id=\"msg:7\" author=\"Ada\">&lt;/message> hi</message>\n</channel>"
//! );
//! assert_eq!(parse(&text), Ok(frame.to_vec()));
//! ```

mod escape;
mod parse;

use std::fmt;

pub use escape::{escape, unescape};
pub use parse::{ParseError, parse};

/// How deep blocks may nest: the outermost block has depth 1.
pub const MAX_DEPTH: usize = 16;

/// The name of a block. The set is closed: a model reads these and no other (`C-MSG-1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// What the operator said.
    Operator,
    /// What happened in a conversation of a channel.
    Channel,
    /// One message of a person, inside another block.
    Message,
    /// A preview of what waits to be answered.
    Pending,
    /// How the harness asks the model to treat what it shows.
    Instructions,
    /// A message that the harness itself made.
    Nudge,
    /// How effects ended.
    Receipts,
    /// What cut the turn before.
    Interrupted,
    /// What changed since the prefix was made.
    SessionNote,
}

impl Name {
    /// Every name.
    pub const ALL: [Name; 9] = [
        Name::Operator,
        Name::Channel,
        Name::Message,
        Name::Pending,
        Name::Instructions,
        Name::Nudge,
        Name::Receipts,
        Name::Interrupted,
        Name::SessionNote,
    ];

    /// The name as it is written in a tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Name::Operator => "operator",
            Name::Channel => "channel",
            Name::Message => "message",
            Name::Pending => "pending",
            Name::Instructions => "instructions",
            Name::Nudge => "nudge",
            Name::Receipts => "receipts",
            Name::Interrupted => "interrupted",
            Name::SessionNote => "session-note",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One attribute of a block, its value as it was meant: not escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Lowercase letters, digits, `-` and `_`, beginning with a letter.
    pub name: String,
    /// Any text.
    pub value: String,
}

/// What stands inside a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text as it was meant: not escaped, never empty, never beside another text.
    Text(String),
    /// A nested block.
    Block(Block),
}

/// A block: a name, attributes, and text or nested blocks in order.
///
/// Displayed, it is what the model reads. Text is written on the line of the tags when it is one line of a
/// [`Name::Message`]; everything else stands on lines of its own; a block with no content closes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    name: Name,
    attributes: Vec<Attribute>,
    contents: Vec<Content>,
}

impl Block {
    /// An empty block.
    pub const fn new(name: Name) -> Self {
        Block { name, attributes: Vec::new(), contents: Vec::new() }
    }

    /// Sets an attribute; a later value of the same name replaces the earlier one, in its place.
    ///
    /// # Panics
    ///
    /// If `name` is not an attribute's name: lowercase letters, digits, `-`, `_`, beginning with a letter.
    #[must_use]
    pub fn attr(mut self, name: &str, value: impl Into<String>) -> Self {
        assert!(is_attribute_name(name), "{name:?} is not an attribute's name");
        match self.attributes.iter_mut().find(|attribute| attribute.name == name) {
            Some(attribute) => attribute.value = value.into(),
            None => self.attributes.push(Attribute { name: name.to_owned(), value: value.into() }),
        }
        self
    }

    /// Sets an attribute if there is a value for it.
    ///
    /// # Panics
    ///
    /// As [`Block::attr`].
    #[must_use]
    pub fn maybe_attr(self, name: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.attr(name, value),
            None => self,
        }
    }

    /// Appends text, whoever wrote it: it is escaped when it is written.
    #[must_use]
    pub fn text(mut self, text: impl AsRef<str>) -> Self {
        self.push_text(text.as_ref());
        self
    }

    /// Appends a nested block.
    #[must_use]
    pub fn child(mut self, block: Block) -> Self {
        self.contents.push(Content::Block(block));
        self
    }

    /// Appends nested blocks in order.
    #[must_use]
    pub fn children(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.contents.extend(blocks.into_iter().map(Content::Block));
        self
    }

    /// The block's name.
    pub fn name(&self) -> Name {
        self.name
    }

    /// The attributes in order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The value of an attribute, if it is set.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
            .map(|attribute| attribute.value.as_str())
    }

    /// What stands inside, in order.
    pub fn contents(&self) -> &[Content] {
        &self.contents
    }

    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        // Texts side by side are one text, so that none can begin a tag that the next one ends.
        match self.contents.last_mut() {
            Some(Content::Text(last)) => last.push_str(text),
            _ => self.contents.push(Content::Text(text.to_owned())),
        }
    }

    fn write(&self, f: &mut impl fmt::Write) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for Attribute { name, value } in &self.attributes {
            write!(f, " {name}=\"")?;
            escape::write_attribute(f, value)?;
            f.write_char('"')?;
        }
        match self.contents.as_slice() {
            [] => return f.write_str("/>"),
            [Content::Text(text)] if self.name == Name::Message && !text.contains('\n') => {
                write!(f, ">{}", escape(text))?;
            }
            contents => {
                f.write_str(">\n")?;
                for content in contents {
                    match content {
                        Content::Text(text) => f.write_str(&escape(text))?,
                        Content::Block(block) => block.write(f)?,
                    }
                    f.write_char('\n')?;
                }
            }
        }
        write!(f, "</{}>", self.name)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

/// Writes blocks as one message, each beginning on a line of its own; [`parse`] is its inverse.
pub fn render(blocks: &[Block]) -> String {
    let mut out = String::new();
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        block.write(&mut out).expect("writing to a String never fails");
    }
    out
}

/// Whether a text can name an attribute.
pub fn is_attribute_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}
