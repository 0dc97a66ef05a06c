//! Whether a text may hold a name at all, seen from its letters alone: never a wrong no, and few a wrong yes.

mod members;

use crate::{language::Language, symbol::SymbolRole};
use memchr::memmem::Finder;
use std::{cell::OnceCell, ops::Range};

/// Words after which Rust introduces a name.
const RUST_WORDS: &[&[u8]] = &[
    b"fn", b"struct", b"enum", b"union", b"trait", b"mod", b"type", b"const", b"static", b"mut", b"let",
    b"ref", b"crate", b"as", b"pub", b"macro",
];

pub(crate) struct Prefilter<'a> {
    finder: Finder<'a>,
    /// Whether the letters are the name itself and not a piece of it.
    whole: bool,
    role: SymbolRole,
}

impl<'a> Prefilter<'a> {
    pub(crate) fn new(name: &'a str, role: SymbolRole) -> Self {
        let literal = literal(name);
        // An `extern` block is named by the words that it begins with.
        let whole = literal == name && name != "extern";
        Prefilter { finder: Finder::new(literal), whole, role }
    }

    pub(crate) fn may_hold(&self, language: Language, text: &[u8]) -> bool {
        let length = self.finder.needle().len();
        if !self.whole || length == 0 {
            return self.finder.find(text).is_some();
        }
        let members = Members { text, regions: OnceCell::new() };
        self.finder.find_iter(text).any(|at| {
            let (before, after) = (&text[..at], &text[at + length..]);
            if before.last().is_some_and(is_word) || after.first().is_some_and(is_word) {
                return false;
            }
            match (self.role, language) {
                (SymbolRole::Definition, Language::Rust) => rust_may_define(before, after, &members),
                (SymbolRole::Definition, Language::Python) => python_may_define(before, after),
                _ => true,
            }
        })
    }
}

/// The longest word of a name: what must stand in a text for the name to be in it, however its spaces are set.
fn literal(name: &str) -> &str {
    let words = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.max_by_key(|word| word.len()).unwrap_or(name)
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80
}

/// Where a text may have fields and variants, sought when it is first asked for.
struct Members<'t> {
    text: &'t [u8],
    regions: OnceCell<Vec<Range<usize>>>,
}

impl Members<'_> {
    fn hold(&self, at: usize) -> bool {
        self.regions.get_or_init(|| members::regions(self.text)).iter().any(|region| region.contains(&at))
    }
}

/// A name follows a keyword of its own on its line, or is a field or variant, which stands behind a brace, a comma or
/// the like. What a line above ends with tells nothing.
fn rust_may_define(before: &[u8], after: &[u8], members: &Members<'_>) -> bool {
    let at = before.len();
    let may_be_member = |after| may_be_member(after) && members.hold(at);
    let before = before.strip_suffix(b"r#").unwrap_or(before);
    let trimmed = before.trim_ascii_end();
    let length = trimmed.iter().rev().take_while(|byte| is_word(byte)).count();
    let word = &trimmed[trimmed.len() - length..];
    let is_keyword = RUST_WORDS.contains(&word);
    match trimmed.last() {
        Some(_) if word == b"let" || word == b"mut" => may_be_bound(after),
        Some(_) if word == b"pub" || word == b"unsafe" => may_be_member(after),
        Some(_) if is_keyword => true,
        Some(_) if before[trimmed.len()..].contains(&b'\n') => may_be_member(after),
        Some(b'!' | b'"') | None => true,
        Some(b'{' | b',' | b')' | b']' | b'}' | b';' | b'/') => may_be_member(after),
        Some(_) => false,
    }
}

/// Of what `let` binds only closures are told. A type that is written down, or a comment, is not looked into.
fn may_be_bound(after: &[u8]) -> bool {
    match after.trim_ascii_start() {
        [b'=', value @ ..] => match value.trim_ascii_start() {
            [b'|' | b'/' | b'#', ..] => true,
            value => [&b"move"[..], b"async", b"static", b"for"].iter().any(|word| value.starts_with(word)),
        },
        [b':' | b'/', ..] | [] => true,
        _ => false,
    }
}

/// A field has a type, a variant has fields, a value, or ends.
fn may_be_member(after: &[u8]) -> bool {
    match after.trim_ascii_start() {
        [b':', b':', ..] | [b'=', b'=' | b'>', ..] => false,
        [b':' | b',' | b'(' | b'{' | b'}' | b'=' | b'/' | b'#', ..] | [] => true,
        _ => false,
    }
}

/// A name follows `def`, `class` or `type`, or something is said of it: a value, a type, or more targets.
fn python_may_define(before: &[u8], after: &[u8]) -> bool {
    let trimmed = before.trim_ascii_end();
    if [&b"def"[..], b"class", b"type"].iter().any(|word| trimmed.ends_with(word)) {
        return true;
    }
    let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match &after[blanks..] {
        [b'=', b'=', ..] => false,
        [b'=' | b':' | b',' | b')' | b']' | b'#' | b'\\' | b'\n' | b'\r', ..] | [] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_define(language: Language, name: &str, text: &str) -> bool {
        Prefilter::new(name, SymbolRole::Definition).may_hold(language, text.as_bytes())
    }

    #[test]
    fn mentions_alone_are_passed_over() {
        for text in [
            "x.len()",
            "Vec::len(x)",
            "(a + len)",
            "is_len len_of",
            "return len",
            "&len",
            "#[x] // relen",
            "let len = x",
            "f(len, x)",
            "{ len => 1 }",
            ";\n    len.x()",
            "struct S { a: u8 } fn f() { S { len: 1 } }",
            "enum E { A } fn f() { match x { len(1) => 2 } }",
        ] {
            assert!(!may_define(Language::Rust, "len", text), "{text}");
        }
        for text in ["len(x)", "x.len()", "if len == 1", "return len + 1"] {
            assert!(!may_define(Language::Python, "len", text), "{text}");
        }
        assert!(Prefilter::new("len", SymbolRole::Reference).may_hold(Language::Rust, b"x.len()"));
    }

    #[test]
    fn what_may_define_is_let_through() {
        for text in [
            "static ref len: u8",
            "let len = |x| x",
            "fn len",
            "fn r#len",
            "struct S { len: u8 }",
            "struct S { pub len: u8 }",
            "struct S { unsafe len: u8 }",
            "union U {\n/// Text.\nlen: u8 }",
            "enum E {A, len}",
            "fn\nlen",
        ] {
            assert!(may_define(Language::Rust, "len", text), "{text}");
        }
        for text in
            ["def len():", "self.len = 1", "len: int", "len, x = 1, 2", "(len) = 1", "len \\\n = 1", "len"]
        {
            assert!(may_define(Language::Python, "len", text), "{text}");
        }
    }

    #[test]
    fn a_composed_name_is_sought_by_its_longest_word() {
        let filter = Prefilter::new("impl From<u8> for Stamp", SymbolRole::Definition);
        assert!(filter.may_hold(Language::Rust, b"impl  From<u8>\n    for Stamp {}"));
        assert!(!filter.may_hold(Language::Rust, b"impl From<u8> for S {}"));
    }
}
