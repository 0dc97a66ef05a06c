//! Fits a given text to the file: line endings, indentation, lines of its own.
//!
//! Where one text can be meant in several ways, each is offered and the parser decides.

use super::plan::Piece;
use crate::{language::Language, parse::new_parser, walk::visit};
use std::ops::Range;

pub(super) struct Fit<'a> {
    language: Language,
    source: &'a [u8],
    ending: &'static str,
}

impl<'a> Fit<'a> {
    pub(super) fn new(language: Language, source: &'a [u8]) -> Self {
        let lines = memchr::memchr_iter(b'\n', source).count();
        let carriage = memchr::memmem::find_iter(source, b"\r\n").count();
        Fit { language, source, ending: if carriage * 2 > lines { "\r\n" } else { "\n" } }
    }

    /// The white space that begins the line of `byte`.
    fn indent(&self, byte: usize) -> &'a str {
        let start = self.line_start(byte);
        let rest = &self.source[start..];
        let rest = rest.strip_prefix(b"\xef\xbb\xbf").filter(|_| start == 0).unwrap_or(rest);
        let length = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        std::str::from_utf8(&rest[..length]).unwrap_or_default()
    }

    fn line_start(&self, byte: usize) -> usize {
        memchr::memrchr(b'\n', &self.source[..byte]).map_or(0, |at| at + 1)
    }

    fn finish(&self, text: &str) -> Vec<u8> {
        let text = text.replace("\r\n", "\n");
        match self.ending {
            "\n" => text.into_bytes(),
            ending => text.replace('\n', ending).into_bytes(),
        }
    }

    /// Ways of putting `text` in the place of those bytes.
    pub(super) fn replacement(&self, text: &str, at: Range<usize>) -> Vec<Vec<u8>> {
        let indent = self.indent(at.start);
        let mut text = text.replace("\r\n", "\n");
        if !self.source[at].ends_with(b"\n") {
            text.truncate(text.trim_end_matches('\n').len());
        }
        let text = text.trim_start_matches('\n');
        let base = leading(text);
        let own = self.shift(text, base, indent);
        let mut ways = Vec::new();
        if base.is_empty() {
            ways.push(self.finish(text));
        }
        let shifted = self.finish(own.strip_prefix(indent).unwrap_or(&own));
        if !ways.contains(&shifted) {
            ways.push(shifted);
        }
        ways
    }

    /// Ways of putting `text` in the place of a body.
    pub(super) fn body(&self, text: &str, at: Range<usize>, owner: usize) -> Vec<Vec<u8>> {
        let old = &self.source[at.clone()];
        let trimmed = text.trim();
        let indent = self.indent(owner);
        if old.starts_with(b"{") {
            let block = |text: &str| {
                let inner =
                    self.shift(text.trim_matches('\n').trim_end(), margin(text), &format!("{indent}    "));
                self.finish(&if trimmed.is_empty() {
                    "{}".to_owned()
                } else {
                    format!("{{\n{inner}\n{indent}}}")
                })
            };
            return match trimmed.starts_with('{') && trimmed.ends_with('}') {
                true => vec![self.finish(trimmed), block(text)],
                false => vec![block(text)],
            };
        }
        let header = self.line_start(at.start) == self.line_start(owner);
        if header && trimmed.contains('\n') && self.language == Language::Python {
            let inner =
                self.shift(text.trim_matches('\n').trim_end(), margin(text), &format!("{indent}    "));
            return vec![self.finish(&format!("\n{inner}")), self.finish(trimmed)];
        }
        self.replacement(text, at)
    }

    /// Ways of putting `text` on lines before what begins at `start`.
    pub(super) fn before(&self, text: &str, start: usize) -> Vec<Vec<Piece>> {
        let line = self.line_start(start);
        let indent = self.indent(start);
        let text = lines_of(text);
        let bom = if line == 0 && self.source.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        if self.source[line + bom..start].iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            let at = line + bom..line + bom;
            let fitted = self.finish(&self.shift(&text, margin(&text), indent));
            let given = self.finish(&text);
            return vec![vec![Piece { at: at.clone(), text: fitted }], vec![Piece { at, text: given }]];
        }
        let inline = format!("{} ", text.trim());
        vec![vec![Piece { at: start..start, text: self.finish(&inline) }]]
    }

    /// Ways of putting `text` on lines after what ends at `end`, past the separator and comment on its line.
    pub(super) fn after(&self, text: &str, start: usize, end: usize) -> Vec<Vec<Piece>> {
        let rest = &self.source[end..];
        let rest = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
        let space = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let mut past = space(rest);
        if matches!(rest.get(past), Some(b',' | b';')) {
            past += 1;
        } else {
            past = 0;
        }
        let tail = &rest[past + space(&rest[past..])..];
        let text = lines_of(text);
        let comment: &[u8] = match self.language {
            Language::Python => b"#",
            Language::Rust => b"//",
            #[cfg(feature = "_table")]
            other if matches!(other.name(), "bash" | "toml" | "yaml") => b"#",
            #[cfg(feature = "_table")]
            _ => b"//",
        };
        let whole = tail.is_empty() || tail.starts_with(comment);
        if !whole {
            let at = end + past..end + past;
            return vec![vec![Piece { at, text: self.finish(&format!(" {}", text.trim())) }]];
        }
        let at = end + rest.len()..end + rest.len();
        let fitted = self.shift(&text, margin(&text), self.indent(start));
        let piece = |text: &str| {
            vec![Piece { at: at.clone(), text: self.finish(&format!("\n{}", text.trim_end_matches('\n'))) }]
        };
        vec![piece(&fitted), piece(&text)]
    }

    /// The text with `remove` taken from the start of its lines and `add` put there, but for blank lines and those that
    /// begin inside a literal.
    fn shift(&self, text: &str, remove: &str, add: &str) -> String {
        if remove == add {
            return text.to_owned();
        }
        let literals = self.literals(text);
        let (mut shifted, mut at) = (String::with_capacity(text.len() + 64), 0);
        for line in text.split_inclusive('\n') {
            let inside = literals.iter().any(|literal| literal.start < at && at < literal.end);
            match inside || line.trim().is_empty() {
                true => shifted.push_str(line),
                false => {
                    shifted.push_str(add);
                    shifted.push_str(
                        line.strip_prefix(remove).unwrap_or_else(|| line.trim_start_matches([' ', '\t'])),
                    );
                }
            }
            at += line.len();
        }
        shifted
    }

    /// The literals and comments of a text that span lines.
    fn literals(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let Some(tree) = text.contains('\n').then(|| new_parser(self.language).parse(text, None)).flatten()
        else {
            return found;
        };
        visit(&tree, |node| {
            let literal =
                node.kind().contains("string") || matches!(node.kind(), "block_comment" | "heredoc_body");
            if literal && node.start_position().row < node.end_position().row {
                found.push(node.byte_range());
            }
            !literal
        });
        found
    }
}

fn leading(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches([' ', '\t']).len()]
}

/// The white space that the first of a text's lines begins with.
fn margin(text: &str) -> &str {
    text.split('\n').find(|line| !line.trim().is_empty()).map_or("", leading)
}

/// The text as whole lines: no blank ones around it but those before and after its own, one line ending at its end.
fn lines_of(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    format!("{}\n", text.strip_suffix('\n').unwrap_or(&text))
}
