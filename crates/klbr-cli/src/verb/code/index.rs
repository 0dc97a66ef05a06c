//! `klbr code index`: an index of a folder in a file, which defs and refs answer from.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use klbr_codeintel::{CacheError, Cancel, Index, IndexOptions, IndexReport, Watch};
use serde_json::json;

use super::{options, print_json, shown};
use crate::args;
use crate::error::{CommandError, Outcome};

/// How long one wait for a change is; then it is begun again.
const WAIT: Duration = Duration::from_secs(3600);
/// How long nothing may change for changes to be taken in.
const QUIET: Duration = Duration::from_millis(100);

/// Builds or refreshes it, and stays if asked to.
pub(super) fn run(asked: &args::Index, json: bool) -> Outcome {
    let options = options(&asked.read)?;
    // Watched from before the look over the tree, so that nothing falls between the two.
    let watch = asked.watch.then(|| watch(&asked.root)).transpose()?;
    let (mut index, report) = opened(&asked.root, options, &asked.file)?;
    print(&index, &report, json)?;
    let Some(watch) = watch else { return Ok(()) };
    loop {
        if let Some(report) = index.follow(&watch, WAIT, QUIET, &Cancel::new(), &|_| {})?
            && report.parsed + report.removed > 0
        {
            index.save(&asked.file)?;
            print(&index, &report, json)?;
        }
    }
}

fn watch(root: &Path) -> Outcome<Watch> {
    let root = std::fs::canonicalize(root).map_err(|error| {
        CommandError::user(format!("{} cannot be read", root.display()), "name a folder").because(error)
    })?;
    Watch::new(&root).map_err(|error| {
        CommandError::internal(
            "the folder cannot be watched",
            "run it again from time to time without --watch",
        )
        .because(error)
    })
}

/// The index in that file brought up to date, or a new one; kept when anything has changed.
pub(super) fn opened(root: &Path, options: IndexOptions, file: &Path) -> Outcome<(Index, IndexReport)> {
    if !root.is_dir() {
        return Err(CommandError::user(
            format!("{} is no folder", root.display()),
            "an index is of a folder; a file is read without one",
        ));
    }
    let (index, report, unusable) = Index::open(root, options, file, &Cancel::new(), &|_| {})?;
    let is_absent = |error: &CacheError| matches!(error, CacheError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    match &unusable {
        Some(error @ CacheError::Foreign(_)) => {
            return Err(CommandError::user(error.to_string(), "name another file; nothing was changed"));
        }
        Some(error) if !is_absent(error) => {
            // There is nowhere left to say that the error stream is closed.
            let _ = writeln!(io::stderr(), "made anew: {}", shown(&error.to_string()));
        }
        _ => {}
    }
    if unusable.is_some() || report.parsed + report.touched + report.removed > 0 {
        index.save(file)?;
    }
    Ok((index, report))
}

fn print(index: &Index, report: &IndexReport, json: bool) -> Outcome {
    if json {
        return print_json(&json!({ "root": index.root(), "report": report }));
    }
    let mut stdout = io::stdout().lock();
    writeln!(
        stdout,
        "{} files, {} symbols, {:.1} MB in memory; {} parsed, {} gone; {}",
        report.files,
        report.symbols,
        report.bytes as f64 / 1e6,
        report.parsed,
        report.removed,
        report.skipped
    )?;
    for skipped in &report.skipped.first {
        let line = format!("  {}: {}", skipped.path.display(), skipped.reason);
        writeln!(stdout, "{}", shown(&line))?;
    }
    Ok(stdout.flush()?)
}

impl From<CacheError> for CommandError {
    fn from(error: CacheError) -> Self {
        CommandError::user(error.to_string(), "name a file in a folder of yours with space left")
            .because(error)
    }
}
