//! Where things stand in a text: byte spans, lines, and columns in the three units that callers count in.
//!
//! Lines count from 1 and end at `\n` alone (a `\r` before it belongs to the line). Columns count from 0.

use serde::{Deserialize, Serialize};

/// A region of a text (K14): bytes half-open, lines from 1, columns in bytes from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceRange {
    /// First byte of the region.
    pub start_byte: usize,
    /// The byte after the region.
    pub end_byte: usize,
    /// Line of the first byte, from 1.
    pub start_line: usize,
    /// Bytes between the line's start and the first byte.
    pub start_column: usize,
    /// Line of the region's end, from 1.
    pub end_line: usize,
    /// Bytes between that line's start and the region's end.
    pub end_column: usize,
}

impl SourceRange {
    /// The bytes of the region, as a range that indexes the text.
    pub fn bytes(&self) -> std::ops::Range<usize> {
        self.start_byte..self.end_byte
    }

    /// Whether `byte` stands in the region; its end does not.
    pub fn contains(&self, byte: usize) -> bool {
        self.bytes().contains(&byte)
    }
}

/// One place in a text with its column in each unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Offset in bytes from the start of the text.
    pub byte: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 0.
    pub column: usize,
    /// Column in UTF-16 code units, from 0 (what language servers count).
    pub column_utf16: usize,
    /// Column in Unicode scalar values, from 0 (what Python counts).
    pub column_chars: usize,
}

/// A half-open byte span of a file below 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    pub(crate) fn of(node: &tree_sitter::Node<'_>) -> Self {
        Span::new(node.start_byte(), node.end_byte())
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn slice(self, source: &[u8]) -> &[u8] {
        source.get(self.range()).unwrap_or(&[])
    }

    pub(crate) fn text(self, source: &[u8]) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.slice(source))
    }
}

/// The starts of a text's lines, from which every position is derived.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<u32>,
    length: usize,
}

impl LineIndex {
    /// Finds the lines of `source`. Texts of 4 GiB and more are outside this crate's bounds.
    pub fn new(source: &[u8]) -> Self {
        let mut starts = Vec::with_capacity(source.len() / 32 + 1);
        starts.push(0);
        starts.extend(memchr::memchr_iter(b'\n', source).map(|at| at as u32 + 1));
        LineIndex { starts, length: source.len() }
    }

    /// How many lines there are; an empty text has one.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// The line of `byte`, from 1.
    pub fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= byte)
    }

    /// The first byte of `line` (from 1), or `None` past the end.
    pub fn line_start(&self, line: usize) -> Option<usize> {
        self.starts.get(line.checked_sub(1)?).map(|start| *start as usize)
    }

    /// The bytes of `line` without its terminator.
    pub fn line_bytes<'a>(&self, source: &'a [u8], line: usize) -> &'a [u8] {
        let Some(start) = self.line_start(line) else { return &[] };
        let end = self.line_start(line + 1).map_or(self.length, |next| next - 1);
        let text = source.get(start..end).unwrap_or(&[]);
        text.strip_suffix(b"\r").unwrap_or(text)
    }

    /// The region between two byte offsets.
    pub fn range(&self, bytes: std::ops::Range<usize>) -> SourceRange {
        let start_line = self.line(bytes.start);
        let next = self.starts.get(start_line).map_or(usize::MAX, |next| *next as usize);
        let end_line = if bytes.end < next { start_line } else { self.line(bytes.end) };
        SourceRange {
            start_byte: bytes.start,
            end_byte: bytes.end,
            start_line,
            start_column: bytes.start - self.starts[start_line - 1] as usize,
            end_line,
            end_column: bytes.end - self.starts[end_line - 1] as usize,
        }
    }

    /// The place of `byte` in all units. Invalid UTF-8 counts as its replacement characters do.
    pub fn position(&self, source: &[u8], byte: usize) -> Position {
        let byte = byte.min(self.length);
        let line = self.line(byte);
        let start = self.starts[line - 1] as usize;
        let before = String::from_utf8_lossy(source.get(start..byte).unwrap_or(&[]));
        Position {
            byte,
            line,
            column: byte - start,
            column_utf16: before.encode_utf16().count(),
            column_chars: before.chars().count(),
        }
    }

    /// The byte at `line` (from 1) and a column in bytes, clamped to the line; `None` past the last line.
    pub fn byte_at(&self, source: &[u8], line: usize, column: usize) -> Option<usize> {
        let start = self.line_start(line)?;
        Some(start + column.min(self.line_bytes(source, line).len()))
    }

    /// The byte at `line` (from 1) and a column in UTF-16 units, clamped to the line.
    pub fn byte_at_utf16(&self, source: &[u8], line: usize, column: usize) -> Option<usize> {
        self.byte_by(source, line, column, char::len_utf16)
    }

    /// The byte at `line` (from 1) and a column in characters, clamped to the line.
    pub fn byte_at_chars(&self, source: &[u8], line: usize, column: usize) -> Option<usize> {
        self.byte_by(source, line, column, |_| 1)
    }

    fn byte_by(&self, source: &[u8], line: usize, column: usize, width: fn(char) -> usize) -> Option<usize> {
        let start = self.line_start(line)?;
        let (mut byte, mut seen) = (start, 0);
        for chunk in self.line_bytes(source, line).utf8_chunks() {
            for letter in chunk.valid().chars() {
                if seen >= column {
                    return Some(byte);
                }
                seen += width(letter);
                byte += letter.len_utf8();
            }
            if !chunk.invalid().is_empty() {
                if seen >= column {
                    return Some(byte);
                }
                seen += 1;
                byte += chunk.invalid().len();
            }
        }
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_in_bytes_utf16_and_characters() {
        let source = "a\r\nπ𝒳 = 1\n".as_bytes();
        let lines = LineIndex::new(source);
        let byte = 3 + "π𝒳".len();
        let place = lines.position(source, byte);
        assert_eq!((place.line, place.column, place.column_utf16, place.column_chars), (2, 6, 3, 2));
        assert_eq!(lines.byte_at(source, 2, 6), Some(byte));
        assert_eq!(lines.byte_at_utf16(source, 2, 3), Some(byte));
        assert_eq!(lines.byte_at_chars(source, 2, 2), Some(byte));
        assert_eq!(lines.line_bytes(source, 1), b"a");
        assert_eq!(lines.byte_at(source, 9, 0), None);
        assert_eq!(lines.lines(), 3);
    }

    #[test]
    fn invalid_bytes_are_one_column_each_way() {
        let source = b"x\xffy";
        let lines = LineIndex::new(source);
        assert_eq!(lines.position(source, 2).column_chars, 2);
        assert_eq!(lines.byte_at_chars(source, 1, 2), Some(2));
    }
}
