//! How a read is shown: its bracket, its lines, and what it says about the rest.

use super::content::short;
use super::lines::{CUT, bare, first_chars, fitting, index, lines};
use super::{Limits, Read, ReadRow, ResultId};
use crate::hash::Hash;

/// A read, cut to its window but not yet compared with earlier ones.
pub(super) struct Shown {
    pub(super) row: Option<ReadRow>,
    pub(super) hash: Hash,
    /// The bracket.
    pub(super) header: String,
    /// What follows it, as it would be inserted.
    pub(super) body: String,
    /// What is stored when it is more than the body.
    pub(super) whole: Option<String>,
    /// Whether the body has the lines to the byte.
    pub(super) exact: bool,
}

pub(super) fn show(read: &Read, id: ResultId, limits: &Limits) -> Shown {
    let hash = read.content.hash();
    let path = printable(&read.path);
    let lines = lines(read.content.text());
    let of = lines.len() as u64;
    let from = read.offset.unwrap_or(1).max(1);
    let row = |from, to| ReadRow { id, path: path.clone(), file: read.file.clone(), from, to, of, hash };
    if of == 0 {
        let header = format!("[{id} {path} empty sha {}]", short(hash));
        let body = "(empty file)".to_owned();
        return Shown { row: Some(row(0, 0)), hash, header, body, whole: None, exact: true };
    }
    if from > of {
        let body = format!("Offset {from} is past the end: {path} has {of} lines.");
        return Shown { row: None, hash, header: format!("[{id}]"), body, whole: None, exact: true };
    }
    let limit = read.limit.unwrap_or(limits.window_lines).clamp(1, limits.window_lines.max(1));
    let asked_to = from.saturating_add(limit - 1).min(of);
    let asked = &lines[index(from)..index(asked_to) + 1];
    let fits = fitting(asked.iter().copied(), u64::MAX, limits.window_chars);
    let to = from + (fits.max(1) as u64 - 1);
    let is_lossy = !read.content.is_exact();
    let body = |lines: &[&str], to: u64| {
        let mut body = numbered(lines, from);
        if to < of {
            body.push_str(&format!("\n\n({} more lines — read again with offset {})", of - to, to + 1));
        }
        if is_lossy {
            body.push_str("\n\n(not valid UTF-8: bytes that could not be read are shown as \u{fffd})");
        }
        body
    };
    let cut = (fits == 0).then(|| format!("{}{CUT}", first_chars(bare(asked[0]), limits.window_chars)));
    Shown {
        row: Some(row(from, to)),
        hash,
        header: format!("[{id} {path} lines {from}-{to} of {of} sha {}]", short(hash)),
        body: match &cut {
            Some(cut) => body(&[cut.as_str()], to),
            None => body(&asked[..fits], to),
        },
        whole: (fits < asked.len()).then(|| body(asked, asked_to)),
        exact: cut.is_none() && !is_lossy,
    }
}

/// A path in a bracket: control characters are escaped, so that it stays on its line.
pub(super) fn printable(path: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    path.chars().map(escape).collect()
}

fn numbered(lines: &[&str], from: u64) -> String {
    let mut out = String::new();
    for (number, line) in (from..).zip(lines) {
        if number > from {
            out.push('\n');
        }
        out.push_str(&format!("{number}: {}", bare(line)));
    }
    out
}
