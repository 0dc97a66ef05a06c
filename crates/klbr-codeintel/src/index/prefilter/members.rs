//! Where fields and variants may stand in a Rust text: between the braces behind `struct`, `enum` and `union`.
//!
//! It reads from each of those words to the end of what it opens, and nothing else. A word that is no keyword there (in a
//! comment, in a text) only makes a region too many.

use super::is_word;
use memchr::memmem::find_iter;
use std::ops::Range;

/// How often a text is read at most, as texts go that people write.
const MAX_READINGS: usize = 8;

/// The regions, some of which may hold others; all of a text whose words would have it read too often.
pub(super) fn regions(text: &[u8]) -> Vec<Range<usize>> {
    let mut regions = Vec::new();
    let mut left = MAX_READINGS * text.len();
    for word in [&b"struct"[..], b"enum", b"union"] {
        for at in find_iter(text, word) {
            let (before, after) = (text[..at].last(), text.get(at + word.len()));
            if before.is_some_and(is_word) || after.is_some_and(is_word) {
                continue;
            }
            let (region, end) = region(text, at + word.len());
            regions.extend(region);
            left = left.saturating_sub(end - at);
            if left == 0 {
                return std::iter::once(0..text.len()).collect();
            }
        }
    }
    regions
}

/// The braces that open behind `from` to where they close, or to the end of the text when they do not; and how far was
/// read for that.
fn region(text: &[u8], from: usize) -> (Option<Range<usize>>, usize) {
    let (mut at, mut open, mut begun) = (from, 0usize, None);
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' => {
                begun = begun.or((open == 0).then_some(at));
                open += 1;
            }
            b'(' | b'[' => open += 1,
            b'}' | b')' | b']' if open == 0 => return (None, at),
            b'}' | b')' | b']' => open -= 1,
            b';' if open == 0 => return (None, at),
            b'/' | b'"' | b'\'' | b'#' => {
                at = past(text, at);
                continue;
            }
            _ => {}
        }
        at += 1;
        if let Some(start) = begun.filter(|_| open == 0) {
            match text[at..].trim_ascii_start().first() {
                // A constant among the parameters.
                Some(b'>' | b',') => begun = None,
                _ => return (Some(start..at), at),
            }
        }
    }
    (begun.map(|begun| begun..text.len()), text.len())
}

/// The place behind the comment or literal that begins at `at`, or the next one where none does.
fn past(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let find = |what: &[u8]| memchr::memmem::find(rest, what).map_or(text.len(), |end| at + end + what.len());
    match rest {
        [b'/', b'/', ..] => find(b"\n"),
        [b'/', b'*', ..] => comment(text, at),
        [b'"', tail @ ..] if text[..at].ends_with(b"r") => {
            at + 1 + memchr::memchr(b'"', tail).map_or(tail.len(), |end| end + 1)
        }
        [b'"', ..] => at + 1 + string(&rest[1..]),
        // A raw text; its hashes end it.
        [b'#', ..] if text[..at].ends_with(b"r") => {
            let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
            match rest.get(hashes) {
                Some(b'"') => find(&[b"\"".as_slice(), &rest[..hashes]].concat()),
                _ => at + hashes,
            }
        }
        [b'\'', b'\\', _, tail @ ..] => {
            at + 3 + tail.iter().position(|byte| *byte == b'\'').map_or(tail.len(), |end| end + 1)
        }
        [b'\'', _, b'\'', ..] => at + 3,
        _ => at + 1,
    }
}

/// The place behind the quote that ends a text.
fn string(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
        match rest[at + found] {
            b'"' => return at + found + 1,
            _ => at = (at + found + 2).min(rest.len()),
        }
    }
    rest.len()
}

/// The place behind a comment in which others may stand.
fn comment(text: &[u8], from: usize) -> usize {
    let (mut at, mut open) = (from, 0usize);
    while let Some(found) = memchr::memchr2(b'/', b'*', &text[at..]) {
        at += found;
        match &text[at..] {
            [b'/', b'*', ..] => (open, at) = (open + 1, at + 2),
            [b'*', b'/', ..] => {
                (open, at) = (open - 1, at + 2);
                if open == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_the_braces_of_what_has_members() {
        let told = |text: &str| -> Vec<String> {
            regions(text.as_bytes()).into_iter().map(|region| text[region].to_owned()).collect()
        };
        assert_eq!(
            told(
                "struct S; struct T(u8); enum E<const N: usize = { 1 }> where [u8; { N }]: { A, B(u8) } fn f() { A }"
            ),
            ["{ A, B(u8) }"]
        );
        assert_eq!(
            told("struct S { /* } /* } */ */ a: &'a [u8; { 1 }], // }\n b: u8 } x"),
            ["{ /* } /* } */ */ a: &'a [u8; { 1 }], // }\n b: u8 }"]
        );
        let literals = "enum E { A = f('}', '\\'', '\\u{7d}', \"}\\\"}\", r#\"}\"}\"#, r\"\\\"), r#type }";
        assert_eq!(told(literals), [literals.strip_prefix("enum E ").unwrap()]);
        assert_eq!(told("union U { a: u8"), ["{ a: u8"], "what does not close goes to the end");
        let nested = "enum E {".repeat(100);
        assert_eq!(told(&nested).concat(), nested, "is not read a hundred times");
        assert!(told("constructed enums union_find").is_empty());
    }
}
