//! Whether a text may hold a name at all, seen from its letters alone: never a wrong no, and few a wrong yes.

use crate::{language::Language, symbol::SymbolRole};
use memchr::memmem::Finder;

/// Words after which Rust introduces a name.
const RUST_WORDS: &[&[u8]] = &[
    b"fn", b"struct", b"enum", b"union", b"trait", b"mod", b"type", b"const", b"static", b"mut", b"let",
    b"ref", b"crate", b"as", b"pub", b"macro",
];

pub(super) struct Prefilter<'a> {
    finder: Finder<'a>,
    /// Whether the letters are the name itself and not a piece of it.
    whole: bool,
    role: SymbolRole,
}

impl<'a> Prefilter<'a> {
    pub(super) fn new(name: &'a str, role: SymbolRole) -> Self {
        let literal = literal(name);
        Prefilter { finder: Finder::new(literal), whole: literal == name, role }
    }

    pub(super) fn may_hold(&self, language: Language, text: &[u8]) -> bool {
        let length = self.finder.needle().len();
        if !self.whole || length == 0 {
            return self.finder.find(text).is_some();
        }
        self.finder.find_iter(text).any(|at| {
            let (before, after) = (&text[..at], &text[at + length..]);
            if before.last().is_some_and(is_word) || after.first().is_some_and(is_word) {
                return false;
            }
            match (self.role, language) {
                (SymbolRole::Definition, Language::Rust) => rust_may_define(before),
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

/// A name follows a keyword of its own on its line, or stands behind a bracket, a comma or the like; it never follows
/// another word, an operator, a dot or a path's colons. What a line above ends with tells nothing.
fn rust_may_define(before: &[u8]) -> bool {
    let before = before.strip_suffix(b"r#").unwrap_or(before);
    let trimmed = before.trim_ascii_end();
    let Some(last) = trimmed.last().filter(|_| !before[trimmed.len()..].contains(&b'\n')) else {
        return true;
    };
    match is_word(last) {
        true => {
            let length = trimmed.iter().rev().take_while(|byte| is_word(byte)).count();
            RUST_WORDS.contains(&&trimmed[trimmed.len() - length..])
        }
        false => !b".:&*=<>+-|%^?@~$'".contains(last),
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
        for text in
            ["x.len()", "Vec::len(x)", "(a + len)", "is_len len_of", "return len", "&len", "#[x] // relen"]
        {
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
            "fn len",
            "fn r#len",
            "{ len: u8 }",
            "pub len: u8",
            "/// Text.\nlen: u8",
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
