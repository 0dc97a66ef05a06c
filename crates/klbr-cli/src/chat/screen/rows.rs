//! Entries as rows of a width, laid out once and again only when the width changes.

use crate::text::{width, wrap};
use crate::view::{Entry, Kind};

/// Below so many columns a label stands on a row of its own.
const NARROW: usize = 50;

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// The label, or its room; and the bar.
    pub(super) head: String,
    pub(super) text: String,
}

/// The rows of all entries so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: usize,
    entries: usize,
    rows: Vec<Row>,
}

impl Rows {
    /// Lays out what is new, everything when the width is another one. Says how many rows came.
    pub(super) fn follow(&mut self, entries: &[Entry], columns: usize) -> usize {
        if self.columns != columns {
            *self = Rows { columns, ..Rows::default() };
        }
        let before = self.rows.len();
        self.rows.extend(entries[self.entries..].iter().flat_map(|entry| of(entry, columns)));
        self.entries = entries.len();
        self.rows.len() - before
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn get(&self, at: usize) -> &Row {
        &self.rows[at]
    }
}

/// The rows of one entry.
pub(super) fn of(entry: &Entry, columns: usize) -> Vec<Row> {
    let kind = entry.kind;
    let bar = bar(kind);
    let label = kind.label();
    let row = |head: String, text: String| Row { kind, head, text };
    if columns < NARROW {
        let mut rows = vec![row(format!("{bar} {label}"), String::new())];
        rows.extend(
            wrap(&entry.text, columns.saturating_sub(2)).into_iter().map(|text| row(format!("{bar} "), text)),
        );
        return rows;
    }
    let room = Kind::LABEL;
    let lines = wrap(&entry.text, columns - room - 3);
    let head = |n: usize| format!("{:>room$} {bar} ", if n == 0 { label } else { "" });
    debug_assert!(width(label) <= room);
    lines.into_iter().enumerate().map(|(n, text)| row(head(n), text)).collect()
}

/// The bar beside the text: what is private has a broken one, what was said a heavy one.
fn bar(kind: Kind) -> char {
    match kind {
        Kind::Think | Kind::Scratch => '┊',
        Kind::Delivered => '┃',
        Kind::You
        | Kind::Heard
        | Kind::Action
        | Kind::Held
        | Kind::Nudge
        | Kind::Wait
        | Kind::Failure
        | Kind::Note => '│',
    }
}
