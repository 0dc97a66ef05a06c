//! Looks a name up in a tree that has no index: the name's letters first, and only files that may hold it are parsed.

use super::{Admits, Answer, Hit, IndexError, IndexOptions, Query, prefilter::Prefilter, survey::each};
use crate::{assemble::Wanted, parse::Cancel};
use std::{ops::ControlFlow, path::Path};

/// Answers one question over a folder, or a file, without keeping anything. It ends when the query's limit is passed.
///
/// # Errors
/// [`IndexError`] when there is nothing to read at `path` or the caller cancelled.
pub fn lookup(
    path: &Path,
    options: &IndexOptions,
    query: &Query,
    cancel: &Cancel,
) -> Result<Answer, IndexError> {
    lookup_among(path, options, &|_| true, query, cancel)
}

/// The same over the files that `admits` lets through; the others are neither looked at nor told of.
///
/// # Errors
/// As [`lookup`].
pub fn lookup_among(
    path: &Path,
    options: &IndexOptions,
    admits: Admits<'_>,
    query: &Query,
    cancel: &Cancel,
) -> Result<Answer, IndexError> {
    let is_below = |path: &Path| query.below.as_ref().is_none_or(|below| path.starts_with(below));
    let filter = Prefilter::new(query.selector.name(), query.role);
    let wanted = Wanted { role: Some(query.role), name: Some(query.selector.name()) };
    let mut answer = Answer::default();
    let coverage = each(
        path,
        options,
        &|path| admits(path) && is_below(path),
        cancel,
        |found, text| filter.may_hold(found.language, text),
        |surveyed| {
            let extraction = surveyed.wanted(wanted);
            let language = extraction.language.name;
            let symbols = extraction.symbols.into_iter().filter(|symbol| query.takes(symbol));
            let mut hits = symbols.map(|symbol| (symbol, language)).peekable();
            let hash = hits.peek().is_some().then(|| surveyed.hash())?;
            let path = surveyed.path();
            Some(
                hits.map(|(symbol, language)| Hit { path: path.to_owned(), language, hash, symbol })
                    .collect(),
            )
        },
        |hits: Vec<Hit>| {
            answer.hits.extend(hits);
            match answer.hits.len() > query.limit {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    )?;
    answer.more = answer.hits.len() > query.limit;
    answer.hits.truncate(query.limit);
    (answer.searched, answer.left, answer.skipped) = (coverage.searched, coverage.left, coverage.skipped);
    Ok(answer)
}
