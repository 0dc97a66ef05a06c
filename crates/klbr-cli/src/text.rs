//! Text of strangers on a terminal: what could command the terminal or reorder a line is made visible
//! instead, and lines are cut where columns end.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns of a tab.
const TAB: &str = "    ";

/// The text with nothing left that a terminal obeys: control characters, escapes, and characters that
/// change the direction of what follows are shown as what they are. Line breaks stay.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\t' => out.push_str(TAB),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            // The control pictures stand in the order of the controls.
            '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => out.push('\u{2421}'),
            _ if is_hidden(c) => out.extend(format!("<U+{:04X}>", u32::from(c)).chars()),
            _ => out.push(c),
        }
    }
    out
}

/// [`clean`], in one line.
pub(crate) fn clean_line(text: &str) -> String {
    clean(text).split('\n').map(str::trim_end).collect::<Vec<_>>().join(" ⏎ ")
}

/// Whether a character works on its surroundings unseen. Joiners stay: emoji and scripts need them.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text that takes at most `columns`, with an ellipsis where something is missing.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used >= columns {
            break;
        }
        out.push_str(grapheme);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// The lines of a text in `columns`: cut between words, and inside a word only where it has no room alone.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let (mut current, mut used) = (String::new(), 0);
        for word in line.split_word_bounds() {
            let size = word.width();
            if used + size <= columns {
                current.push_str(word);
                used += size;
                continue;
            }
            if word.trim().is_empty() {
                continue;
            }
            if size <= columns {
                lines.push(std::mem::replace(&mut current, word.to_owned()));
                used = size;
                continue;
            }
            for grapheme in word.graphemes(true) {
                if used + grapheme.width() > columns && !current.is_empty() {
                    lines.push(std::mem::take(&mut current));
                    used = 0;
                }
                current.push_str(grapheme);
                used += grapheme.width();
            }
        }
        lines.push(current);
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(clean("a\x1b[31mred\x07\r\nb\tc\x7f"), "a␛[31mred␇\nb    c␡");
        assert_eq!(clean("\u{202e}evil\u{9b}2J\u{200b}"), "<U+202E>evil<U+009B>2J<U+200B>");
        assert_eq!(clean("👩\u{200d}💻 שלום ok"), "👩\u{200d}💻 שלום ok");
        assert_eq!(clean_line("a\nb\r\n"), "a ⏎ b ⏎ ");
    }

    #[test]
    fn lines_are_cut_between_words_and_never_inside_a_wide_character() {
        assert_eq!(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("日本語のテキスト", 5), ["日本", "語の", "テキ", "スト"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrap("👩\u{200d}💻👩\u{200d}💻", 2), ["👩\u{200d}💻", "👩\u{200d}💻"]);
    }

    #[test]
    fn what_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(fit("hello", 5), "hello");
        assert_eq!(fit("hello!", 5), "hell…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("x", 0), "");
    }
}
