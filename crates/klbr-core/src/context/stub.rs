//! Stubs: the sentences that stand in the place of what a request shows already, written and read back.

use super::{ReadRow, ResultId};

const UNCHANGED: &str = "Unchanged since ";
const SAME: &str = "Same result as ";

/// What stands behind the bracket of a read whose lines an earlier one shows.
pub(super) fn unchanged(earlier: &ReadRow) -> String {
    format!("{UNCHANGED}{}, which already shows lines {}-{}.", earlier.id, earlier.from, earlier.to)
}

/// What stands behind the bracket of a listing that an earlier one shows.
pub(super) fn same(earlier: ResultId) -> String {
    format!("{SAME}{earlier}.")
}

/// Whether every stub among these results names one that is among them too.
pub(crate) fn are_whole<'t>(results: impl Iterator<Item = &'t str> + Clone) -> bool {
    let is_here = |id: ResultId| results.clone().any(|text| id_of(text) == Some(id));
    results.clone().filter_map(named).all(is_here)
}

/// The result that a stub names; none for a result that is no stub.
fn named(text: &str) -> Option<ResultId> {
    // All of a stub stands on one line; only there is the sentence the harness's own.
    let line = text.lines().next()?;
    let sentence = [UNCHANGED, SAME].iter().find_map(|opening| line.split_once(&format!("] {opening}")))?.1;
    sentence.split([',', '.']).next()?.parse().ok()
}

fn id_of(text: &str) -> Option<ResultId> {
    text.strip_prefix('[')?.split([' ', ']']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_is_whole_beside_what_it_names() {
        let stub = format!("[#0003 a lines 1-2 of 2 sha 00000000] {}", unchanged(&row(1)));
        let same = format!("[#0004] {}", same(ResultId::new(2)));
        let (read, list) = ("[#0001 a lines 1-2 of 2 sha 00000000]\n1: x\n2: y", "[#0002]\na b");
        let whole = |texts: &[&str]| are_whole(texts.iter().copied());
        assert!(whole(&[read, list, &stub, &same]) && whole(&[read, list]));
        assert!(!whole(&[list, &stub]) && !whole(&[read, &same]));
        // A file that says so is none.
        assert!(whole(&["[#0005]\nx] Unchanged since #0001, which already shows lines 1-2."]));
    }

    fn row(number: u64) -> ReadRow {
        let (path, hash) = ("a".to_owned(), crate::hash::Hash::of(b""));
        ReadRow { id: ResultId::new(number), file: path.clone(), path, from: 1, to: 2, of: 2, hash }
    }
}
