//! `klbr code defs` and `klbr code refs`: where a name is defined or mentioned.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use klbr_codeintel::{Answer, Cancel, Coverage, Query, SymbolRole, lookup};
use serde_json::{Value, json};

use super::{add, index, name, options, print_json, rests_on, shown};
use crate::args::Find;
use crate::error::{CommandError, Outcome};

/// Prints the finds.
pub(super) fn run(find: &Find, role: SymbolRole, json: bool) -> Outcome {
    let query = Query::definitions(&find.name).map_err(|error| {
        CommandError::user(
            format!("{:?}: {error}", find.name),
            "write it like read, Reader::read or impl S::new",
        )
    })?;
    let mut query = Query { role, kinds: find.kind.clone(), limit: find.limit, ..query };
    let options = options(&find.over.read)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut hits, mut coverage, mut more) = (Vec::new(), Coverage::default(), false);
    let mut count = 0;
    for path in &find.over.paths {
        let answer = match &find.index {
            Some(file) => index::opened(path, options.clone(), file)?.0.find(&query),
            None => lookup(path, &options, &query, &Cancel::new())?,
        };
        query.limit -= answer.hits.len().min(query.limit);
        count += answer.hits.len();
        more |= answer.more;
        add(&mut coverage, answer.coverage());
        match json {
            true => hits.extend(entries(path, &answer)),
            false => {
                for hit in &answer.hits {
                    let place = name(path, &hit.path);
                    let signature = hit.symbol.signature.as_deref().map(|text| format!("  {text}"));
                    let line = format!("{place}:{}{}", hit.symbol, signature.unwrap_or_default());
                    writeln!(out, "{}", shown(&line))?;
                }
            }
        }
    }
    out.flush()?;
    if json {
        return print_json(&json!({
            "hits": hits, "more": more,
            "searched": coverage.searched, "left": coverage.left, "skipped": coverage.skipped,
        }));
    }
    let mut stderr = io::stderr().lock();
    // There is nowhere left to say that the error stream is closed.
    if count == 0 {
        let what = if role == SymbolRole::Definition { "definition" } else { "mention" };
        let _ = writeln!(stderr, "no {what} of {}", shown(&find.name));
    }
    if more {
        let _ = writeln!(stderr, "there are more: --limit takes a larger number");
    }
    drop(stderr);
    rests_on(&coverage, json);
    Ok(())
}

fn entries<'a>(path: &'a Path, answer: &'a Answer) -> impl Iterator<Item = Value> + 'a {
    answer.hits.iter().map(move |hit| {
        json!({
            "path": name(path, &hit.path), "language": hit.language, "hash": hit.hash, "symbol": hit.symbol,
        })
    })
}
