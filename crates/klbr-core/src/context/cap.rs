//! How much of a long result is inserted.

use serde::{Deserialize, Serialize};

use super::ResultId;
use super::lines::{CUT, bare, chars, first_chars, fitting, lines};

/// The numbers of the context's measures; characters are code points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// A result of more lines is capped.
    pub max_lines: u64,
    /// A result of more characters is capped.
    pub max_chars: u64,
    /// The most lines that a capped result keeps of its beginning.
    pub head_lines: u64,
    /// The most characters that a capped result keeps of its beginning.
    pub head_chars: u64,
    /// The most lines that a capped result keeps of its end.
    pub tail_lines: u64,
    /// The most characters that a capped result keeps of its end.
    pub tail_chars: u64,
    /// The most lines that one read or recall shows.
    pub window_lines: u64,
    /// The most characters that one read or recall shows: whole lines, or the beginning of one that is longer.
    pub window_chars: u64,
    /// The most rows of the table that follows a summary.
    pub table_rows: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_lines: 400,
            max_chars: 40_000,
            head_lines: 200,
            head_chars: 20_000,
            tail_lines: 100,
            tail_chars: 10_000,
            window_lines: 2_000,
            window_chars: 200_000,
            table_rows: 50,
        }
    }
}

/// A long text without its middle; nothing when it fits, or when head and tail are all of it.
pub(super) fn cap(text: &str, id: ResultId, limits: &Limits) -> Option<String> {
    let lines = lines(text);
    if lines.len() as u64 <= limits.max_lines && chars(text) <= limits.max_chars {
        return None;
    }
    let first_is_cut = lines.first().is_some_and(|line| chars(bare(line)) > limits.head_chars);
    let head = match first_is_cut {
        true => 1,
        false => fitting(lines.iter().copied(), limits.head_lines, limits.head_chars),
    };
    let rest = &lines[head..];
    let tail = fitting(rest.iter().rev().copied(), limits.tail_lines, limits.tail_chars);
    let elided = rest.len() - tail;
    if elided == 0 && !first_is_cut {
        return None;
    }
    let mut out = String::new();
    match first_is_cut {
        true => out.extend([first_chars(lines[0], limits.head_chars), CUT, "\n"]),
        false => out.extend(lines[..head].iter().copied()),
    }
    out.push_str(&format!("[{elided} lines elided, full output {id}]"));
    if tail > 0 {
        out.push('\n');
        out.extend(rest[elided..].iter().copied());
    }
    Some(out)
}
