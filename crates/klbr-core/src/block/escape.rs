//! The escaper: what in a text could pass for a block's tag, and how it is written instead.
//!
//! Owns the two notations, for text and for attributes. Each is reversible, and takes time linear in the text.

use std::borrow::Cow;
use std::fmt;

use super::Name;

/// The letters of the longest name, and a few more so that nothing is cut.
const LONGEST: usize = 16;

/// Escapes a text so that nothing in it can end a block or begin another (`C-MSG-2`).
///
/// Touched are exactly: each `<` that stands directly before one of the block names or before `/` and a name,
/// in any case, with invisible characters and combining marks ignored, also where the word goes on
/// (`<messages>`), which becomes `&lt;`; and each `&lt;` already there, itself escaped any number of times
/// (`&lt;`, `&amp;lt;`, …), which gains one `amp;`. [`unescape`] is its inverse on every text.
///
/// ```
/// use klbr_core::block::{escape, unescape};
///
/// assert_eq!(escape("a < b, <b>, </Mess\u{200b}age>"), "a < b, <b>, &lt;/Mess\u{200b}age>");
/// assert_eq!(escape("&lt;nudge> &amp;lt; &amp;"), "&amp;lt;nudge> &amp;amp;lt; &amp;");
/// assert_eq!(unescape(&escape("<nudge> &lt;")), "<nudge> &lt;");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    rewrite(text, |rest| {
        if begins_tag(rest) {
            return Some(("&lt;", 1));
        }
        // `&` becomes `&amp;`, and what follows it stays.
        escaped_lt(rest).map(|_| ("&amp;", 1))
    })
}

/// Undoes [`escape`]; text that no [`escape`] has written is undone as far as it looks like it.
pub fn unescape(text: &str) -> Cow<'_, str> {
    rewrite(text, |rest| match escaped_lt(rest)? {
        0 => Some(("<", "&lt;".len())),
        _ => Some(("&", "&amp;".len())),
    })
}

/// Whether a text begins with `<` or `</` before a block's name, however disguised.
pub(super) fn begins_tag(rest: &str) -> bool {
    let Some(after) = rest.strip_prefix('<') else { return false };
    let mut letters = [0_u8; LONGEST];
    let mut count = 0;
    let mut slash = false;
    let visible = after.chars().filter(|&c| !is_invisible(c));
    for folded in visible.flat_map(fold).filter(|&c| !is_invisible(c)) {
        match u8::try_from(folded) {
            Ok(b'/') if count == 0 && !slash => slash = true,
            Ok(byte) if byte.is_ascii_uppercase() || byte == b'-' => {
                letters[count] = byte.to_ascii_lowercase();
                count += 1;
                if count == LONGEST {
                    break;
                }
            }
            _ => break,
        }
    }
    let letters = &letters[..count];
    Name::ALL.iter().any(|name| letters.starts_with(name.as_str().as_bytes()))
}

/// Writes an attribute's value between double quotes: every character of markup and every control as a reference.
pub(super) fn write_attribute(f: &mut impl fmt::Write, value: &str) -> fmt::Result {
    for c in value.chars() {
        match c {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '"' => f.write_str("&quot;")?,
            '\'' => f.write_str("&apos;")?,
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => write!(f, "&#{};", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    Ok(())
}

/// Reads what [`write_attribute`] wrote, and nothing else.
pub(super) fn read_attribute(raw: &str) -> Option<String> {
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        value.push_str(&rest[..at]);
        let (reference, after) = rest[at + 1..].split_once(';')?;
        value.push(match reference {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            number => char::from_u32(number.strip_prefix('#')?.parse().ok()?)?,
        });
        rest = after;
    }
    value.push_str(rest);
    let mut canonical = String::with_capacity(raw.len());
    write_attribute(&mut canonical, &value).ok()?;
    (canonical == raw).then_some(value)
}

/// How often the `&lt;` that a text begins with was escaped: 0 for `&lt;`, 1 for `&amp;lt;`.
fn escaped_lt(rest: &str) -> Option<usize> {
    let mut rest = rest.strip_prefix('&')?;
    let mut times = 0;
    while let Some(inner) = rest.strip_prefix("amp;") {
        rest = inner;
        times += 1;
    }
    rest.starts_with("lt;").then_some(times)
}

/// Copies a text; where `replace` answers for what begins at a `<` or `&`, it writes that instead of so many bytes.
fn rewrite(text: &str, replace: impl Fn(&str) -> Option<(&'static str, usize)>) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(['<', '&']) {
        if let Some((new, len)) = replace(&text[at..]) {
            out.push_str(&text[copied..at]);
            out.push_str(new);
            copied = at + len;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// A character's letters without case: `ſ`, `ı` and `ß` too are written so that they read as `s`, `i` and `ss`.
fn fold(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase)
}

/// Whether a character takes no room of its own: controls, Unicode's default-ignorable characters, other format
/// characters, and combining marks.
fn is_invisible(c: char) -> bool {
    (c.is_control() && !c.is_whitespace())
        || matches!(c,
            '\u{ad}'
            | '\u{300}'..='\u{36f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{fe20}'..='\u{fe2f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}
