//! Text as the two full-text tables take it, so that scripts without spaces are found as well as those with.
//!
//! The table of words splits at what is no letter or digit. Text that is written without spaces has no such
//! places: it goes in as its overlapping pairs of characters, and is looked for as a phrase of pairs. The
//! table of parts has the trigrams of everything else.

use klbr_core::runtime::store::history::is_unspaced;

/// A text for the table of words: `東京都 v1` becomes `東京 京都 都  v1`.
pub(crate) fn spread(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    let mut inside = false;
    while let Some(c) = chars.next() {
        let unspaced = is_unspaced(c);
        if unspaced != inside && !unspaced {
            out.push(' ');
        }
        if unspaced && !inside {
            out.push(' ');
        }
        out.push(c);
        inside = unspaced;
        if unspaced && let Some(next) = chars.peek().filter(|next| is_unspaced(**next)) {
            out.push(*next);
            out.push(' ');
        }
    }
    out
}

/// A term as an expression for the table of words: a phrase, whose last character may begin a pair.
pub(crate) fn phrase(term: &str) -> String {
    let run = term.chars().rev().take_while(|c| is_unspaced(*c)).count();
    let mut spread = spread(term);
    if run > 1
        && let Some(last) = spread.rfind(' ')
    {
        // The pairs cover the last character; in a longer text it stands in a pair, not alone.
        spread.truncate(last);
    }
    let mut phrase = quoted(&spread);
    if run == 1 {
        phrase.push('*');
    }
    phrase
}

/// A text for the table of parts.
pub(crate) fn spaced_only(text: &str) -> String {
    text.chars().map(|c| if is_unspaced(c) { ' ' } else { c }).collect()
}

/// The trigrams of a term, each as an expression for the table of parts, at most `limit`.
pub(crate) fn trigrams(term: &str, limit: usize) -> Vec<String> {
    let mut trigrams = Vec::new();
    for run in term.split(is_unspaced) {
        let chars: Vec<char> = run.chars().collect();
        for three in chars.windows(3) {
            let trigram = quoted(&three.iter().collect::<String>());
            if trigrams.len() < limit && !trigrams.contains(&trigram) {
                trigrams.push(trigram);
            }
        }
    }
    trigrams
}

/// Where a piece of about `limit` bytes that begins at `start` ends: after white space if there is some in its
/// last half.
pub(crate) fn piece_end(text: &str, start: usize, limit: usize) -> usize {
    let rest = &text[start..];
    if rest.len() <= limit {
        return text.len();
    }
    let limit = rest.floor_char_boundary(limit.max(4));
    let half = rest.floor_char_boundary(limit / 2);
    let space = rest[half..limit].char_indices().rev().find(|(_, c)| c.is_whitespace());
    start + space.map_or(limit, |(at, c)| half + at + c.len_utf8())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_spaces_become_pairs() {
        let words = |text| spread(text).split_whitespace().collect::<Vec<_>>().join("|");
        assert_eq!(words("東京都 v1"), "東京|京都|都|v1");
        assert_eq!(words("a日b中文c"), "a|日|b|中文|文|c");
        assert_eq!(words("plain text"), "plain|text");
        assert_eq!(spread(""), "");
    }

    #[test]
    fn terms_become_phrases_that_no_text_can_leave() {
        assert_eq!(phrase("東京都"), "\" 東京 京都\"");
        assert_eq!(phrase("東"), "\" 東\"*");
        assert_eq!(phrase("v1東"), "\"v1 東\"*");
        assert_eq!(phrase("a\" OR \"b"), "\"a\"\" OR \"\"b\"");
        assert_eq!(trigrams("a\"bc東京def", 9), ["\"a\"\"b\"", "\"\"\"bc\"", "\"def\""]);
        assert_eq!(trigrams("ab", 9).len(), 0);
        assert_eq!(trigrams("abcdef", 2).len(), 2);
    }

    #[test]
    fn pieces_end_at_spaces_and_cover_everything() {
        for text in ["word ".repeat(50), "日本語".repeat(60), "x".repeat(300)] {
            let (mut at, mut pieces) = (0, 0);
            while at < text.len() {
                let end = piece_end(&text, at, 64);
                assert!(end > at && end - at <= 64 && text.is_char_boundary(end));
                (at, pieces) = (end, pieces + 1);
            }
            assert!(pieces >= 4);
        }
    }
}
