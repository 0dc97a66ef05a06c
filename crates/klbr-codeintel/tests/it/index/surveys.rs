//! A tree gone through once: in order, whole, and with what it rests on.

use super::trees::Tree;
use crate::truth::corpus::{self, share};
use klbr_codeintel::{
    Cancel, CodeSymbol, Coverage, IndexError, IndexOptions, Language, NamePath, Query, Segment, SymbolRole,
    extract_symbols, lookup, survey,
};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

fn options(threads: usize) -> IndexOptions {
    IndexOptions { threads, ..IndexOptions::default() }
}

/// The definitions of each file in the order told, as long as `take` says.
fn names(path: &Path, options: &IndexOptions, take: usize) -> (Vec<String>, Coverage) {
    let mut all = Vec::new();
    let coverage = survey(
        path,
        options,
        &|_| true,
        &Cancel::new(),
        |surveyed| {
            let symbols = surveyed.symbols(Some(SymbolRole::Definition)).symbols;
            let names: Vec<String> = symbols.iter().map(|symbol| symbol.name_path.to_string()).collect();
            format!("{}: {}", surveyed.path().display(), names.join(" "))
        },
        |line| {
            all.push(line);
            if all.len() == take { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    (all, coverage.unwrap())
}

#[test]
fn files_are_told_in_the_order_of_their_paths_on_any_number_of_threads() {
    let texts: Vec<(String, String)> = (0..700)
        .map(|n| (format!("d{}/f{n:03}.py", n % 7), "def f(): pass\n".repeat(1 + 997 * (n % 13) / 12)))
        .collect();
    let tree =
        Tree::new(&texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    tree.write("d3/bytes.py", "x\0");
    tree.write("d3/words.txt", "words");
    let (one, _) = names(tree.0.path(), &options(1), usize::MAX);
    let (many, coverage) = names(tree.0.path(), &options(4), usize::MAX);
    assert_eq!(one.len(), 700);
    assert!(one.is_sorted() && one == many);
    assert_eq!((coverage.searched, coverage.left, coverage.skipped.unsupported), (700, 0, 1));
    assert_eq!(coverage.skipped.first[0].path, Path::new("d3/bytes.py"));
    for threads in [1, 4] {
        let (some, coverage) = names(tree.0.path(), &options(threads), 10);
        assert_eq!(some, one[..10]);
        assert_eq!((coverage.searched, coverage.left), (10, 690 + 1), "what was not looked at is told");
    }
}

#[test]
fn a_file_is_surveyed_alone_and_as_what_it_is_said_to_be() {
    let tree =
        Tree::new(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n"), ("c", "def three(): pass\n")]);
    assert_eq!(names(&tree.path("b.rs"), &options(0), 9).0, ["b.rs: two"]);
    let read_as = IndexOptions { read_as: Some(Language::Python), ..options(0) };
    assert_eq!(names(&tree.path("c"), &read_as, 9).0, ["c: three"]);
    let survey = |path: &Path| {
        survey(path, &options(0), &|_| true, &Cancel::new(), |_| (), |()| ControlFlow::Continue(()))
    };
    assert!(matches!(survey(&tree.path("c")), Err(IndexError::Language { .. })));
    assert!(matches!(survey(&tree.path("nowhere")), Err(IndexError::Root { .. })));
    let cancel = Cancel::new();
    cancel.cancel();
    let query = Query::definitions("one").unwrap();
    assert!(matches!(lookup(tree.0.path(), &options(0), &query, &cancel), Err(IndexError::Cancelled)));
    assert_eq!(lookup(&tree.path("a.rs"), &options(0), &query, &Cancel::new()).unwrap().hits.len(), 1);
}

#[test]
fn a_lookup_ends_when_its_limit_is_passed_and_says_what_it_left() {
    let texts: Vec<String> = (0..40).map(|n| format!("f{n:02}.rs")).collect();
    let tree = Tree::new(&texts.iter().map(|path| (path.as_str(), "fn new() {}\n")).collect::<Vec<_>>());
    let query = Query { limit: 5, ..Query::definitions("new").unwrap() };
    let answer = lookup(tree.0.path(), &options(3), &query, &Cancel::new()).unwrap();
    assert!(answer.more);
    assert_eq!(answer.hits.len(), 5);
    assert_eq!(answer.hits[4].path, Path::new("f04.rs"));
    assert_eq!((answer.searched, answer.left), (6, 34));
}

/// Every definition of both corpora stands in a text that the look at the letters lets through.
#[test]
fn a_lookup_finds_what_the_symbols_of_its_file_say() {
    let mut files: Vec<PathBuf> =
        corpus::crates().iter().step_by(7).flat_map(|root| corpus::files(root, "rs")).step_by(3).collect();
    if let Some(library) = corpus::standard_library() {
        files.extend(corpus::files(&library, "py").into_iter().step_by(9));
    }
    let tree = tempfile::tempdir().unwrap();
    let mut names = 0;
    for (number, file) in share(files).iter().enumerate() {
        let text = std::fs::read(file).unwrap();
        let ending = file.extension().unwrap().to_str().unwrap();
        let copy = tree.path().join(format!("f{number}.{ending}"));
        std::fs::write(&copy, &text).unwrap();
        let Ok(extraction) = extract_symbols(Some(&copy), &text, None) else { continue };
        let mut wanted: Vec<&CodeSymbol> = extraction.symbols.iter().collect();
        // Twins are told apart by their paths; here the name is what is looked for.
        // In a region too broken to read, a name may be torn out of a word.
        let is_word =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        wanted.retain(|symbol| {
            let name = symbol.name_range.bytes();
            !is_word(text[..name.start].last()) && !is_word(text.get(name.end))
        });
        wanted.dedup_by(|one, other| one.name == other.name && one.role == other.role);
        for symbol in wanted.iter().step_by(wanted.len() / 12 + 1) {
            let name = NamePath::new(vec![Segment::new(symbol.name.clone())], None).unwrap().to_string();
            let query = Query { role: symbol.role, limit: usize::MAX, ..Query::definitions(&name).unwrap() };
            let answer = lookup(&copy, &IndexOptions::default(), &query, &Cancel::new()).unwrap();
            assert!(answer.hits.iter().any(|hit| hit.symbol == **symbol), "{}: {name}", file.display());
            names += 1;
        }
        std::fs::remove_file(copy).unwrap();
    }
    println!("{names} names looked up");
}
