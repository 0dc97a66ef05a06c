//! Ground truth: what CPython's `ast` and `syn` say of the same files, symbol by symbol.

pub(crate) mod corpus;
mod python;
mod rust;

use std::collections::BTreeMap;

/// A symbol as both sides can tell it: the line of its name, what it is, its name.
pub(crate) type Fact = (usize, String, String);

/// How many facts both sides share, and those that only one has.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) files: usize,
    pub(crate) agreed: usize,
    pub(crate) missed: Vec<String>,
    pub(crate) invented: Vec<String>,
}

impl Tally {
    pub(crate) fn compare(&mut self, file: &str, truth: Vec<Fact>, found: Vec<Fact>) {
        self.files += 1;
        let mut balance: BTreeMap<Fact, i64> = BTreeMap::new();
        let total = truth.len();
        truth.into_iter().for_each(|fact| *balance.entry(fact).or_default() += 1);
        found.into_iter().for_each(|fact| *balance.entry(fact).or_default() -= 1);
        let mut missed = 0;
        for ((line, kind, name), count) in balance {
            let side = match count {
                1.. => &mut self.missed,
                ..0 => &mut self.invented,
                0 => continue,
            };
            missed += count.max(0) as usize;
            (0..count.abs()).for_each(|_| side.push(format!("{file}:{line} {kind} {name}")));
        }
        self.agreed += total - missed;
    }

    /// Prints the score and what differs, and fails below `least`.
    pub(crate) fn judge(&self, what: &str, least: f64) {
        let truth = self.agreed + self.missed.len();
        let found = self.agreed + self.invented.len();
        let recall = self.agreed as f64 / truth as f64;
        let precision = self.agreed as f64 / found as f64;
        println!(
            "{what}: {} files, {truth} symbols, recall {recall:.6}, precision {precision:.6}",
            self.files
        );
        for (title, list) in [("missed", &self.missed), ("invented", &self.invented)] {
            println!("  {title}: {}", list.len());
            list.iter().take(60).for_each(|line| println!("    {line}"));
        }
        assert!(truth > 0, "no symbol was compared");
        assert!(recall >= least && precision >= least, "{what}: below {least}");
    }
}
