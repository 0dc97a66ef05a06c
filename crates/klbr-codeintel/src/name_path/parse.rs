//! Reads the grammar of name paths; refuses everything else with the byte where it went wrong.

use super::{NamePath, Ordinal, Segment, is_bare, starts_identifier};

/// A text that is not a name path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a name path at byte {at}: {problem}")]
pub struct NamePathError {
    /// The byte at which the text leaves the grammar.
    pub at: usize,
    /// What was found or missed there.
    pub problem: &'static str,
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn fail<T>(&self, problem: &'static str) -> Result<T, NamePathError> {
        Err(NamePathError { at: self.at, problem })
    }

    fn quoted(&mut self, close: char) -> Result<String, NamePathError> {
        let mut name = String::new();
        loop {
            let Some(letter) = self.rest().chars().next() else { return self.fail("the quote does not end") };
            self.at += letter.len_utf8();
            match letter {
                _ if letter == close => return Ok(name),
                '\\' if self.take("u{") => name.push(self.scalar()?),
                '\\' => {
                    let Some(escaped) = self.rest().chars().next() else {
                        return self.fail("nothing to escape");
                    };
                    if !matches!(escaped, '\\' | '`' | ']') {
                        return self.fail("no such escape");
                    }
                    self.at += escaped.len_utf8();
                    name.push(escaped);
                }
                _ => name.push(letter),
            }
        }
    }

    fn scalar(&mut self) -> Result<char, NamePathError> {
        let digits = self.rest().find('}').map(|end| &self.rest()[..end]);
        let letter = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match (digits, letter) {
            (Some(digits), Some(letter)) => {
                self.at += digits.len() + 1;
                Ok(letter)
            }
            _ => self.fail("not a character's number"),
        }
    }

    fn bare(&mut self) -> Result<&'a str, NamePathError> {
        let rest = self.rest();
        let skip = match rest.strip_prefix("r#") {
            Some(raw) if starts_identifier(raw) => 2,
            _ => 0,
        };
        let stop = |letter: char| matches!(letter, '`' | '\\' | ':' | '.' | '#' | '[' | ']');
        let end = rest[skip..].find(stop).map_or(rest.len(), |end| end + skip);
        let name = rest[..end].trim();
        if !is_bare(name) {
            return self.fail("a name is missing");
        }
        self.at += end;
        Ok(name)
    }

    fn segment(&mut self) -> Result<Segment, NamePathError> {
        let segment = match self.take("`") {
            true => Segment::new(self.quoted('`')?),
            false => Segment::new(self.bare()?),
        };
        Ok(match self.take("[") {
            true => segment.qualified(self.quoted(']')?),
            false => segment,
        })
    }

    fn number<T>(&mut self, length: Option<usize>, read: fn(&str) -> Option<T>) -> Result<T, NamePathError> {
        let rest = self.rest();
        let end = length.unwrap_or_else(|| rest.find('@').unwrap_or(rest.len()));
        let digits = rest.get(..end).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(read) {
            Some(value) => {
                self.at += end;
                Ok(value)
            }
            None => self.fail("not a number"),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<NamePath, NamePathError> {
    let mut cursor = Cursor { text, at: 0 };
    let mut segments = vec![cursor.segment()?];
    while cursor.take("::") || cursor.take(".") {
        segments.push(cursor.segment()?);
    }
    let mut ordinal = None;
    if cursor.take("#") {
        let number = cursor.number(None, |digits| digits.parse().ok().filter(|number| *number > 0))?;
        if !cursor.take("@") {
            return cursor.fail("an ordinal needs its hash");
        }
        ordinal = Some(Ordinal {
            number,
            hash: cursor.number(Some(8), |digits| u32::from_str_radix(digits, 16).ok())?,
        });
    }
    match cursor.rest() {
        "" => Ok(NamePath { segments: segments.into(), ordinal }),
        _ => cursor.fail("the path should end or go on with ::"),
    }
}
