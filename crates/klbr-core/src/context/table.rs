//! The table of reads that follows a summary.

use super::ReadRow;
use super::content::short;

const HEADING: &str = "## Files read before this summary";
const LINE: &str = "Read a file again for its content; recall shows a result by its id.";

/// The newest read of each file, newest last, at most so many; nothing when there are none.
pub(super) fn table<'r>(reads: impl DoubleEndedIterator<Item = &'r ReadRow>, rows: u64) -> Option<String> {
    let mut files = std::collections::BTreeSet::new();
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let newest = reads.rev().filter(|row| files.insert(row.file.as_str()));
    let mut newest: Vec<&ReadRow> = newest.take(rows).collect();
    newest.reverse();
    if newest.is_empty() {
        return None;
    }
    let mut out = format!("{HEADING}\n\n{LINE}\n\n| Path | Lines | sha | Result |\n|---|---|---|---|");
    for row in newest {
        let path = row.path.replace('|', "\\|");
        let lines = match row.of {
            0 => "empty".to_owned(),
            of => format!("{}-{} of {of}", row.from, row.to),
        };
        out.push_str(&format!("\n| {path} | {lines} | {} | {} |", short(row.hash), row.id));
    }
    Some(out)
}
