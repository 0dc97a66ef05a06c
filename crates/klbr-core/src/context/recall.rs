//! How a stored result is shown again.

use super::lines::{bare, chars, first_chars, index};
use super::{Limits, Recall, ResultId};

/// The bracket of a recall, and what follows it on lines of its own; a bare sentence stands beside the bracket.
pub(super) enum Shown<'a> {
    Lines { header: String, text: &'a str },
    Sentence(String),
}

pub(super) fn show<'a>(recall: &'a Recall, id: ResultId, limits: &Limits) -> Shown<'a> {
    let target = match recall.target.parse::<ResultId>() {
        Ok(target) => target.to_string(),
        Err(_) => format!("#{}", recall.target.trim().trim_start_matches('#')),
    };
    let Some(stored) = &recall.stored else {
        return Shown::Sentence(format!("No stored result {target} in this session."));
    };
    match window(stored, recall.offset, recall.limit, limits) {
        Ok(Window { from, to, of, text }) => {
            Shown::Lines { header: format!("[{id} recall {target} lines {from}-{to} of {of}]"), text }
        }
        Err(0) => Shown::Lines { header: format!("[{id} recall {target} empty]"), text: "" },
        Err(of) => {
            let from = recall.offset.unwrap_or(1);
            Shown::Sentence(format!("Offset {from} is past the end: {target} has {of} lines."))
        }
    }
}

/// The window of a stored text: which pieces it has, and the text itself.
struct Window<'t> {
    from: u64,
    to: u64,
    of: u64,
    text: &'t str,
}

/// The part of a stored text that one recall shows, byte for byte; none when the offset is past its end.
///
/// A line longer than `head_chars` counts as several, so that every byte can be reached.
fn window<'t>(
    stored: &'t str,
    offset: Option<u64>,
    limit: Option<u64>,
    limits: &Limits,
) -> Result<Window<'t>, u64> {
    let pieces = fold(stored, limits.head_chars.min(limits.window_chars).max(1));
    let of = pieces.len() as u64;
    let from = offset.unwrap_or(1).max(1);
    if from > of {
        return Err(of);
    }
    let limit = limit.unwrap_or(limits.window_lines).clamp(1, limits.window_lines.max(1));
    let mut used = 0;
    let mut to = from - 1;
    for piece in pieces[index(from)..].iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        used += chars(piece);
        if to >= from && used > limits.window_chars {
            break;
        }
        to += 1;
    }
    let start: usize = pieces[..index(from)].iter().map(|piece| piece.len()).sum();
    let len: usize = pieces[index(from)..=index(to)].iter().map(|piece| piece.len()).sum();
    let text = &stored[start..start + len];
    Ok(Window { from, to, of, text: if to < of { bare(text) } else { text } })
}

fn fold(text: &str, width: u64) -> Vec<&str> {
    let mut pieces = Vec::new();
    for mut line in text.split_inclusive('\n') {
        loop {
            let (piece, rest) = line.split_at(first_chars(line, width).len());
            if bare(rest).is_empty() {
                pieces.push(line);
                break;
            }
            pieces.push(piece);
            line = rest;
        }
    }
    pieces
}
