//! How a text becomes messages of a length that Discord takes (`B-DIS-8`, `B-DIS-9`).

use std::ops::Range;

/// The longest message in code points, as Discord counts.
pub(crate) const LONGEST: usize = 2_000;

/// What begins and ends a block of code.
const FENCE: &str = "```";

/// Cuts a text into messages: one, unless it is too long and `may_split`. A cut is made between paragraphs, else
/// lines, else words, else characters, and never inside a code fence; blanks at a cut are left out.
///
/// # Errors
///
/// Fails with the length when the text is empty, too long, or has a block of code that fits in no message.
pub(crate) fn split(text: &str, may_split: bool) -> Result<Vec<String>, String> {
    let length = text.chars().count();
    if text.trim().is_empty() {
        return Err("the content is empty".to_owned());
    }
    if length <= LONGEST {
        return Ok(vec![text.to_owned()]);
    }
    if !may_split {
        return Err(format!(
            "the content has {length} characters, {LONGEST} are the most; shorten it, or set split to true"
        ));
    }
    let fences = fences(text);
    let mut parts = Vec::new();
    let mut start = skip_blank(text, 0);
    while start < text.len() {
        let end = match text[start..].char_indices().nth(LONGEST) {
            None => text.len(),
            Some((window, _)) => cut(text, start, start + window, &fences)?,
        };
        let part = text[start..end].trim_end();
        if !part.is_empty() {
            parts.push(part.to_owned());
        }
        start = skip_blank(text, end);
    }
    Ok(parts)
}

/// Where to cut a text that begins at `start` and has to end at `limit`.
fn cut(text: &str, start: usize, limit: usize, fences: &[Range<usize>]) -> Result<usize, String> {
    let window = &text[start..limit];
    let is_outside = |at: usize| !fences.iter().any(|fence| fence.start < at && at < fence.end);
    let last = |separator: &str, least: usize| {
        let found = window.rmatch_indices(separator).map(|(at, _)| start + at);
        found.filter(|&at| at > start + least && is_outside(at)).max()
    };
    for least in [window.len() / 2, 0] {
        for separator in ["\n\n", "\n", " "] {
            if let Some(at) = last(separator, least) {
                return Ok(at);
            }
        }
    }
    let before_fence =
        fences.iter().find(|fence| fence.start > start && fence.start < limit && fence.end > limit);
    if let Some(fence) = before_fence {
        return Ok(fence.start);
    }
    if is_outside(limit) {
        return Ok(limit);
    }
    let fence = fences.iter().find(|fence| fence.start <= start && fence.end > limit);
    let length = fence.map_or(0, |fence| text[fence.clone()].chars().count());
    Err(format!("a block of code in it has {length} characters, {LONGEST} are the most, and code is not cut"))
}

/// Where the text has blocks of code, fences included; one that is not closed lasts to the end.
fn fences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find(FENCE).map(|open| at + open) {
        let inside = open + FENCE.len();
        let end = text[inside..].find(FENCE).map_or(text.len(), |close| inside + close + FENCE.len());
        found.push(open..end);
        at = end;
    }
    found
}

fn skip_blank(text: &str, at: usize) -> usize {
    // Indentation is kept: only whole blank lines and the blanks at the cut itself go.
    let rest = &text[at..];
    let lines = rest.len() - rest.trim_start_matches([' ', '\n', '\r']).len();
    match rest[..lines].rfind('\n') {
        Some(newline) => at + newline + 1,
        None => at + lines,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b_dis_8_two_thousand_code_points_are_the_most() {
        assert_eq!(split(&"é".repeat(2_000), false).unwrap().len(), 1);
        // A family emoji is one picture and seven code points.
        assert_eq!(split(&"👨‍👩‍👧‍👦".repeat(285), false).unwrap().len(), 1);
        let error = split(&"x".repeat(4_000), false).unwrap_err();
        assert!(error.contains("4000 characters") && error.contains("split"), "{error}");
        assert_eq!(split(" \n ", true), Err("the content is empty".to_owned()));
    }

    #[test]
    fn b_dis_9_a_long_text_is_cut_between_paragraphs_lines_or_words() {
        let paragraph = |letter: &str| letter.repeat(1_200);
        let text = format!("{}\n\n{}", paragraph("a"), paragraph("b"));
        assert_eq!(split(&text, true).unwrap(), [paragraph("a"), paragraph("b")]);
        let words = "word ".repeat(900);
        let parts = split(&words, true).unwrap();
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.ends_with("word") && part.starts_with("word")));
        assert_eq!(split(&"x".repeat(4_500), true).unwrap().len(), 3);
    }

    #[test]
    fn b_dis_9_code_is_never_cut() {
        let code = format!("```rust\n{}```", "let x = 1;\n\n".repeat(100));
        let text = format!("{}\n\n{code}\nand so on", "a ".repeat(700));
        let parts = split(&text, true).unwrap();
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert!(parts[1].starts_with("```rust") && parts[1].ends_with("and so on"));
        let huge = format!("see ```{}```", "y\n".repeat(1_500));
        assert!(split(&huge, true).unwrap_err().contains("code is not cut"));
        let open = format!("{}\n```\n{}", "a ".repeat(900), "y\n".repeat(400));
        assert_eq!(split(&open, true).unwrap().len(), 2, "a fence that is not closed is kept whole too");
    }

    proptest! {
        #[test]
        fn b_dis_9_nothing_but_blanks_is_lost_and_every_part_fits(
            pieces in prop::collection::vec(prop_oneof!["[a-zé]{1,40}", "\\PC{1,60}", Just("\n\n".to_owned()),
                Just("\n".to_owned()), Just(" ".to_owned()), Just("```\ncode\n\nmore\n```".to_owned()),
                "[x]{500,900}"], 1..120)
        ) {
            let text = pieces.concat();
            if let Ok(parts) = split(&text, true) {
                let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
                prop_assert_eq!(solid(&parts.concat()), solid(&text));
                for part in &parts {
                    prop_assert!(part.chars().count() <= LONGEST && !part.trim().is_empty());
                }
                if parts.len() > 1 && text.matches(FENCE).count() % 2 == 0 {
                    prop_assert!(parts.iter().all(|part| part.matches(FENCE).count() % 2 == 0));
                }
            }
        }
    }
}
