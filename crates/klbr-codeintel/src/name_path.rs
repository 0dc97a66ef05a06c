//! The address of a definition within its file, printed and parsed by one grammar (B-CODE-2).
//!
//! ```text
//! path      = segment *("::" segment) [ordinal]        "." is read as "::", never printed
//! segment   = (bare / "`" quoted "`") ["[" quoted "]"] a name, and what tells it from its twins
//! ordinal   = "#" number "@" 8 hex digits              the n-th of equals, and the hash of its text
//! ```
//!
//! A bare name may hold spaces and angle brackets (`impl From<u8> for S`) but none of `` ` \ : . # [ ] `` and no
//! control character; `r#type` is bare too. In quotes `\` escapes itself, `` ` ``, `]`, and `\u{…}` any character.
//! Twins are told apart by content where there is any (`value[setter]`, `open[cfg(unix)]`), else by an ordinal whose
//! hash makes a stale one match nothing.

mod parse;
mod select;

pub use parse::NamePathError;
pub use select::Selector;
pub(crate) use select::same_name;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, sync::Arc};

/// One step of a path: a name and what tells it from others of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    name: Arc<str>,
    qualifier: Option<Arc<str>>,
}

impl Segment {
    /// A segment of that name; any text is a name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Segment { name: name.into(), qualifier: None }
    }

    /// The same segment, told apart by `qualifier`.
    pub fn qualified(self, qualifier: impl Into<Arc<str>>) -> Self {
        Segment { qualifier: Some(qualifier.into()), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells it from its twins: `setter`, `cfg(unix)`, ….
    pub fn qualifier(&self) -> Option<&str> {
        self.qualifier.as_deref()
    }
}

/// Which of several otherwise equal definitions is meant, and a hash of its text so that a stale one is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal {
    /// Its place among its equals in the file, from 1.
    pub number: u32,
    /// The first 32 bits of the SHA-256 of the definition with what is attached to it.
    pub hash: u32,
}

/// The address of a definition; prints as the grammar above has it, and is that text on the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePath {
    segments: Arc<[Segment]>,
    ordinal: Option<Ordinal>,
}

impl NamePath {
    /// A path of these segments, or `None` when there are none.
    pub fn new(segments: impl Into<Arc<[Segment]>>, ordinal: Option<Ordinal>) -> Option<Self> {
        let segments = segments.into();
        (!segments.is_empty()).then_some(NamePath { segments, ordinal })
    }

    pub(crate) fn single(name: &str) -> Self {
        NamePath { segments: Arc::from([Segment::new(name)]), ordinal: None }
    }

    /// Reads a printed path.
    ///
    /// # Errors
    /// [`NamePathError`] names the byte at which the text leaves the grammar.
    pub fn parse(text: &str) -> Result<Self, NamePathError> {
        parse::parse(text)
    }

    /// The steps from the file's top to the definition; never empty.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The last step's name.
    pub fn name(&self) -> &str {
        self.segments.last().map_or("", Segment::name)
    }

    /// Which of several equals is meant.
    pub fn ordinal(&self) -> Option<Ordinal> {
        self.ordinal
    }
}

fn is_bare(name: &str) -> bool {
    // Nearly all names.
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return true;
    }
    let plain = name.strip_prefix("r#").filter(|rest| starts_identifier(rest)).unwrap_or(name);
    !plain.is_empty()
        && plain.trim() == plain
        && !plain
            .chars()
            .any(|letter| letter.is_control() || matches!(letter, '`' | '\\' | ':' | '.' | '#' | '[' | ']'))
}

fn starts_identifier(text: &str) -> bool {
    text.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_')
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str, close: char) -> fmt::Result {
    for letter in text.chars() {
        match letter {
            _ if letter == close || letter == '\\' => write!(f, "\\{letter}")?,
            _ if letter.is_control() => write!(f, "\\u{{{:x}}}", letter as u32)?,
            _ => write!(f, "{letter}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare(&self.name) {
            f.write_str(&self.name)?;
        } else {
            f.write_str("`")?;
            write_quoted(f, &self.name, '`')?;
            f.write_str("`")?;
        }
        if let Some(qualifier) = &self.qualifier {
            f.write_str("[")?;
            write_quoted(f, qualifier, ']')?;
            f.write_str("]")?;
        }
        Ok(())
    }
}

impl fmt::Display for NamePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 {
                f.write_str("::")?;
            }
            segment.fmt(f)?;
        }
        if let Some(Ordinal { number, hash }) = self.ordinal {
            write!(f, "#{number}@{hash:08x}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for NamePath {
    type Err = NamePathError;

    fn from_str(text: &str) -> Result<Self, NamePathError> {
        NamePath::parse(text)
    }
}

impl Serialize for NamePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NamePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        NamePath::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, printed: &str) {
        assert_eq!(NamePath::parse(text).unwrap().to_string(), printed);
    }

    #[test]
    fn paths_print_as_people_write_them() {
        check("Reader::read", "Reader::read");
        check("Reader.read", "Reader::read");
        check("impl From<u8> for S::from", "impl From<u8> for S::from");
        check("`impl From<io::Error> for S`::from", "`impl From<io::Error> for S`::from");
        check("C::value[setter]", "C::value[setter]");
        check("r#type::f#2@00c0ffee", "r#type::f#2@00c0ffee");
        check("größe", "größe");
    }

    #[test]
    fn what_leaves_the_grammar_is_refused_where_it_does() {
        for (text, at) in [
            ("", 0),
            ("a::", 3),
            ("a:b", 1),
            ("a`b", 1),
            ("`a", 2),
            ("f#0@00000000", 2),
            ("f#1", 3),
            ("f#1@12", 4),
        ] {
            assert_eq!(NamePath::parse(text).unwrap_err().at, at, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_path_parses_to_itself(
            segments in prop::collection::vec(("(?s).{0,12}|[a-z`\\[\\]:.#@\\\\ ]{0,8}|r#[a-z0-9]{0,3}", prop::option::of("(?s).{0,8}|[\\[\\]`\\\\]{0,4}")), 1..5),
            ordinal in prop::option::of((1u32.., any::<u32>())),
        ) {
            let segments: Vec<Segment> = segments
                .into_iter()
                .map(|(name, qualifier)| Segment { name: name.into(), qualifier: qualifier.map(Into::into) })
                .collect();
            let path = NamePath::new(segments, ordinal.map(|(number, hash)| Ordinal { number, hash })).unwrap();
            prop_assert_eq!(NamePath::parse(&path.to_string()).unwrap(), path);
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "(?s).{0,24}") {
            if let Ok(path) = NamePath::parse(&text) {
                prop_assert_eq!(NamePath::parse(&path.to_string()).unwrap(), path);
            }
        }
    }
}
