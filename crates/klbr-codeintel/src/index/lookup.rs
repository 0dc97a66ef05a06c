//! Looks a name up in a tree that has no index: the name's letters first, and only files that hold them are parsed.

use super::{
    Answer, Hit, IndexError, IndexOptions, Query, Skipped, Skips,
    scan::{Found, scan},
    work::{Hand, threads},
};
use crate::{
    assemble,
    hash::ContentHash,
    language::LanguageSource,
    language::ResolvedLanguage,
    parse::{Cancel, ExtractError},
};
use memchr::memmem::Finder;
use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

#[derive(Default)]
struct Part {
    hits: Vec<Hit>,
    skipped: Vec<Skipped>,
    searched: usize,
}

/// Answers one question over a tree without keeping anything.
///
/// # Errors
/// [`IndexError`] when the root cannot be read or the caller cancelled.
pub fn lookup(
    root: &Path,
    options: &IndexOptions,
    query: &Query,
    cancel: &Cancel,
) -> Result<Answer, IndexError> {
    let root = root.canonicalize().map_err(|source| IndexError::Root { root: root.to_owned(), source })?;
    let scan = scan(&root, options, cancel)?;
    let below = |found: &&Found| query.below.as_ref().is_none_or(|below| found.path.starts_with(below));
    let files: Vec<&Found> = scan.files.iter().filter(below).collect();
    let finder = Finder::new(literal(query.selector.name()));
    let (next, parts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let mut hand = Hand::new(options, cancel);
        let mut part = Part::default();
        while let Some(found) =
            files.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !cancel.is_cancelled())
        {
            if let Err(reason) = hand.read(&root.join(&found.path), found.stamp) {
                part.skipped.push(Skipped { path: found.path.clone(), reason });
                continue;
            }
            if finder.find(&hand.text).is_some() {
                match hand.symbols(found) {
                    Ok(symbols) => {
                        let hash = ContentHash::of(&hand.text);
                        let language = ResolvedLanguage { name: found.language, by: LanguageSource::Path };
                        let extraction = assemble::extraction(language, &hand.text, &symbols.raws());
                        let taken = extraction.symbols.into_iter().filter(|symbol| query.takes(symbol));
                        part.hits.extend(taken.map(|symbol| Hit {
                            path: found.path.clone(),
                            language: found.language,
                            hash,
                            symbol,
                        }));
                    }
                    Err(ExtractError::Cancelled) => break,
                    Err(error) => {
                        part.skipped.push(Skipped { path: found.path.clone(), reason: error.into() });
                        continue;
                    }
                }
            }
            part.searched += 1;
        }
        parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(part);
    };
    match threads(options, files.len()) {
        1 => work(),
        threads => std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work)))),
    }
    if cancel.is_cancelled() {
        return Err(IndexError::Cancelled);
    }
    let mut skipped = Skips { unsupported: scan.unsupported, ..Skips::default() };
    scan.strays.into_iter().for_each(|stray| skipped.add(stray));
    let mut answer = Answer { hits: Vec::new(), more: false, searched: 0, skipped };
    for part in parts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        answer.hits.extend(part.hits);
        answer.searched += part.searched;
        part.skipped.into_iter().for_each(|skipped| answer.skipped.add(skipped));
    }
    answer.hits.sort_by(|one, other| {
        (&one.path, one.symbol.range.start_byte).cmp(&(&other.path, other.symbol.range.start_byte))
    });
    answer.more = answer.hits.len() > query.limit;
    answer.hits.truncate(query.limit);
    Ok(answer)
}

/// The longest word of a name: what must stand in a text for the name to be in it, however its spaces are set.
fn literal(name: &str) -> &str {
    let words = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.max_by_key(|word| word.len()).unwrap_or(name)
}
