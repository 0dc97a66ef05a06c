//! Lines, as every count in a bracket means them: ended by `\n`, the last one also by the end of the text.

/// The lines of a text with their line breaks; an empty text has none.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A line without its line break; a `\r` before it is content.
pub(super) fn bare(line: &str) -> &str {
    line.strip_suffix('\n').unwrap_or(line)
}

/// How many characters (code points) a text has.
pub(super) fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The first characters of a text, at most so many.
pub(super) fn first_chars(text: &str, count: u64) -> &str {
    match usize::try_from(count).ok().and_then(|count| text.char_indices().nth(count)) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// What the mark says where a line was cut.
pub(super) const CUT: &str = " […cut]";

/// How many of these lines, without the last one's break, fit so many lines and characters.
pub(super) fn fitting<'t>(lines: impl Iterator<Item = &'t str>, max_lines: u64, max_chars: u64) -> usize {
    let mut used = 0_u64;
    let mut count = 0;
    for line in lines {
        let separator = u64::from(count > 0);
        used = used.saturating_add(separator).saturating_add(chars(bare(line)));
        if count as u64 >= max_lines || used > max_chars {
            break;
        }
        count += 1;
    }
    count
}

/// Where a line stands among its text's lines; lines count from 1.
pub(super) fn index(line: u64) -> usize {
    usize::try_from(line - 1).expect("a line of a text that is in memory")
}
