//! Trees of files.

use klbr_codeintel::{
    CacheError, Cancel, Index, IndexError, IndexOptions, IndexReport, Query, SkipReason, SymbolKind,
    SymbolSearch, lookup,
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

pub(super) struct Tree(pub(super) tempfile::TempDir);

impl Tree {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Tree(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(super) fn build(&self, options: IndexOptions) -> (Index, IndexReport) {
        Index::build(self.0.path(), options, &Cancel::new(), &|_| {}).unwrap()
    }
}

pub(super) fn found(index: &Index, name: &str) -> Vec<String> {
    let answer = index.find(&Query::definitions(name).unwrap());
    answer
        .hits
        .iter()
        .map(|hit| format!("{}:{}", hit.path.display(), hit.symbol.name_range.start_line))
        .collect()
}

fn small() -> Tree {
    Tree::new(&[
        ("a.rs", "fn one() {}\nfn two() { one(); }\n"),
        ("sub/b.py", "def one():\n    pass\nclass C:\n    def two(self): one()\n"),
        ("sub/tool", "#!/usr/bin/env python3\ndef main(): pass\n"),
        ("sub/s.rs", "impl  From < u8 >\n for S {}\nimpl From<u8> for S {}\n"),
        ("notes.txt", "one"),
        ("out/gen.rs", "fn one() {}\n"),
        (".gitignore", "out/\n"),
    ])
}

#[test]
fn definitions_and_references_are_found_across_files() {
    let tree = small();
    let (index, report) = tree.build(IndexOptions::default());
    assert_eq!((report.files, report.parsed, report.skipped.unsupported), (4, 4, 1));
    assert_eq!(found(&index, "one"), ["a.rs:1", "sub/b.py:1"]);
    assert_eq!(found(&index, "C.two"), ["sub/b.py:4"]);
    assert_eq!(found(&index, "main"), ["sub/tool:2"]);
    let answer = index.find(&Query::references("one").unwrap());
    let places: Vec<_> =
        answer.hits.iter().map(|hit| (hit.path.to_str().unwrap(), hit.symbol.kind)).collect();
    assert_eq!(places, [("a.rs", SymbolKind::Call), ("sub/b.py", SymbolKind::Call)]);
    assert_eq!(answer.hits[1].symbol.container.as_ref().unwrap().to_string(), "C::two");
    assert_eq!(answer.searched, 4);
    let none = index.find(&Query::definitions("nowhere").unwrap());
    assert!(none.hits.is_empty() && none.searched == 4);
}

#[test]
fn answers_can_be_narrowed_and_limited() {
    let (index, _) = small().build(IndexOptions::default());
    let below = Query { below: Some("sub".into()), ..Query::definitions("one").unwrap() };
    assert_eq!(index.find(&below).hits.len(), 0, "the tree is gone, and so are its texts");
    let tree = small();
    let (index, _) = tree.build(IndexOptions::default());
    let answer = index.find(&below);
    assert_eq!((answer.hits.len(), answer.searched), (1, 3));
    let kinds = Query { kinds: vec![SymbolKind::Method], ..Query::definitions("two").unwrap() };
    assert_eq!(index.find(&kinds).hits.len(), 1);
    let one = Query { limit: 1, ..Query::definitions("one").unwrap() };
    assert!(index.find(&one).more);
    let search = SymbolSearch { text: "tw".into(), kinds: Vec::new(), below: None, limit: 10 };
    assert_eq!(index.search(&search).hits.len(), 2);
    assert_eq!(index.file(Path::new("sub/b.py")).unwrap().definitions.len(), 3);
}

#[test]
fn only_what_changed_is_parsed_again() {
    let tree = small();
    let (mut index, _) = tree.build(IndexOptions::default());
    let refresh = |index: &mut Index| {
        let report = index.refresh(&Cancel::new(), &|_| {}).unwrap();
        (report.parsed, report.touched, report.removed)
    };
    assert_eq!(refresh(&mut index), (0, 0, 0));
    tree.write("a.rs", "fn one() {}\nfn two() { one(); }\n");
    assert_eq!(refresh(&mut index), (0, 1, 0), "the same text again is no change");
    tree.write("a.rs", "\nfn one() {}\n");
    tree.write("new.py", "def one(): pass\n");
    fs::remove_file(tree.path("sub/b.py")).unwrap();
    assert_eq!(refresh(&mut index), (2, 0, 1));
    assert_eq!(found(&index, "one"), ["a.rs:2", "new.py:1"]);
    tree.write("a.rs", "\n\nfn one() {}\n");
    let told = [
        tree.path("a.rs"),
        PathBuf::from("new.py"),
        PathBuf::from("none.py"),
        PathBuf::from("/elsewhere.py"),
    ];
    let report = index.refresh_paths(&told, &Cancel::new(), &|_| {}).unwrap();
    assert_eq!((report.parsed, report.removed), (1, 0));
    assert_eq!(found(&index, "one"), ["a.rs:3", "new.py:1"]);
}

#[test]
fn an_answer_is_of_the_text_that_stands_there_now() {
    let tree = small();
    let (index, _) = tree.build(IndexOptions::default());
    tree.write("a.rs", "\n\n\nfn one() {}\n");
    let answer = index.find(&Query::definitions("one").unwrap());
    assert_eq!(answer.hits[0].symbol.name_range.start_line, 4);
    assert_eq!(answer.hits[0].hash, klbr_codeintel::ContentHash::of(b"\n\n\nfn one() {}\n"));
}

#[test]
fn a_lookup_without_an_index_gives_the_same_answer() {
    let tree = small();
    let (index, _) = tree.build(IndexOptions::default());
    for query in [
        Query::definitions("one").unwrap(),
        Query::references("one").unwrap(),
        Query::definitions("C::two").unwrap(),
        Query::definitions("impl From<u8> for S").unwrap(),
    ] {
        let direct = lookup(tree.0.path(), &IndexOptions::default(), &query, &Cancel::new()).unwrap();
        assert_eq!(direct, index.find(&query));
    }
}

#[test]
fn what_is_left_out_is_listed_with_its_reason() {
    let tree = small();
    tree.write("big.py", &"x = 1\n".repeat(400_000));
    tree.write("binary.py", "x\0");
    std::os::unix::fs::symlink("..", tree.path("sub/loop")).unwrap();
    std::os::unix::fs::symlink("nowhere.py", tree.path("broken.py")).unwrap();
    let mut options = IndexOptions { follow_links: true, ..IndexOptions::default() };
    options.limits.max_bytes = 1 << 20;
    let (index, report) = tree.build(options);
    let reasons: Vec<(String, SkipReason)> = report
        .skipped
        .first
        .iter()
        .map(|skipped| (skipped.path.display().to_string(), skipped.reason.clone()))
        .collect();
    assert!(reasons.contains(&("big.py".into(), SkipReason::TooLarge(2_400_000))), "{reasons:?}");
    assert!(reasons.contains(&("binary.py".into(), SkipReason::Binary)), "{reasons:?}");
    assert!(
        reasons.iter().any(|(path, reason)| path == "sub/loop" && matches!(reason, SkipReason::Link(_))),
        "{reasons:?}"
    );
    assert!(reasons.iter().any(|(path, _)| path == "broken.py"), "{reasons:?}");
    assert_eq!(report.skipped.total(), 4);
    assert_eq!(index.find(&Query::definitions("one").unwrap()).skipped, report.skipped);
}

#[test]
fn an_index_that_is_full_says_what_it_left_out() {
    let tree = small();
    let (mut index, report) = tree.build(IndexOptions { max_index_bytes: 400, ..IndexOptions::default() });
    assert!(report.bytes <= 400 && report.skipped.counts["index_full"] > 0);
    assert!(index.refresh(&Cancel::new(), &|_| {}).is_ok());
}

#[test]
fn progress_is_told_and_a_cancelled_build_ends() {
    let tree = small();
    let calls = AtomicUsize::new(0);
    let progress = |progress: klbr_codeintel::Progress| {
        assert!(progress.done <= progress.total && progress.total == 4);
        calls.fetch_add(1, Ordering::Relaxed);
    };
    Index::build(tree.0.path(), IndexOptions::default(), &Cancel::new(), &progress).unwrap();
    assert_eq!(calls.into_inner(), 4);
    let cancel = Cancel::new();
    cancel.cancel();
    let ended = Index::build(tree.0.path(), IndexOptions::default(), &cancel, &|_| {});
    assert!(matches!(ended, Err(IndexError::Cancelled)));
    let ended = lookup(tree.0.path(), &IndexOptions::default(), &Query::definitions("one").unwrap(), &cancel);
    assert!(matches!(ended, Err(IndexError::Cancelled)));
    let nowhere =
        Index::build(Path::new("/nowhere/at/all"), IndexOptions::default(), &Cancel::new(), &|_| {});
    assert!(matches!(nowhere, Err(IndexError::Root { .. })));
}

#[test]
fn a_cache_file_is_used_only_whole() {
    let tree = small();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("index");
    let open =
        || Index::open(tree.0.path(), IndexOptions::default(), &cache, &Cancel::new(), &|_| {}).unwrap();
    let (index, _, reason) = open();
    assert!(matches!(reason, Some(CacheError::Io { .. })));
    index.save(&cache).unwrap();
    tree.write("a.rs", "\nfn one() {}\n");
    let (again, report, reason) = open();
    assert!(reason.is_none());
    assert_eq!((report.parsed, report.files), (1, 4));
    assert_eq!(found(&again, "one"), ["a.rs:2", "sub/b.py:1"]);
    let good = fs::read(&cache).unwrap();
    for at in [0, 30, 100, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        fs::write(&cache, &bad).unwrap();
        let (index, _, reason) = open();
        assert!(matches!(reason, Some(CacheError::Damaged(_) | CacheError::Version(_))), "byte {at}");
        assert_eq!(found(&index, "one").len(), 2);
    }
    fs::write(&cache, &good[..good.len() / 2]).unwrap();
    assert!(matches!(open().2, Some(CacheError::Damaged(_))));
    fs::write(&cache, &good).unwrap();
    let other = Index::load(folder.path(), IndexOptions::default(), &cache);
    assert!(matches!(other, Err(CacheError::Foreign(_))));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_taken_whole_or_left_out() {
    let tree = small();
    struct Stop<'a>(&'a AtomicUsize);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(1, Ordering::Relaxed);
        }
    }
    let stop = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Dropped also when an assertion fails, so that the writer ends.
        let guard = Stop(&stop);
        scope.spawn(|| {
            let mut count = 0;
            while stop.load(Ordering::Relaxed) == 0 {
                count += 1;
                tree.write("a.rs", &format!("fn one() {{}}\n// {}\n", "x".repeat(count % 5000)));
            }
        });
        for _ in 0..20 {
            let (index, report) = tree.build(IndexOptions::default());
            let left_out = report.skipped.counts.get("changing").copied().unwrap_or(0);
            assert_eq!(
                report.parsed + left_out + report.skipped.counts.get("unreadable").copied().unwrap_or(0),
                4
            );
            drop(index);
        }
        drop(guard);
    });
}

#[cfg(feature = "watch")]
#[test]
fn a_watched_tree_is_followed() {
    use klbr_codeintel::Watch;
    use std::time::{Duration, Instant};
    let tree = small();
    let (mut index, _) = tree.build(IndexOptions::default());
    let watch = Watch::new(index.root()).unwrap();
    let until = |index: &mut Index, wanted: &[&str]| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while found(index, "one") != wanted {
            assert!(Instant::now() < deadline, "{:?}", found(index, "one"));
            index
                .follow(&watch, Duration::from_secs(1), Duration::from_millis(5), &Cancel::new(), &|_| {})
                .unwrap();
        }
    };
    tree.write("new/c.rs", "fn one() {}\n");
    until(&mut index, &["a.rs:1", "new/c.rs:1", "sub/b.py:1"]);
    fs::remove_file(tree.path("sub/b.py")).unwrap();
    until(&mut index, &["a.rs:1", "new/c.rs:1"]);
    fs::rename(tree.path("new"), tree.path("moved")).unwrap();
    until(&mut index, &["a.rs:1", "moved/c.rs:1"]);
    tree.write(".gitignore", "out/\nmoved/\n");
    until(&mut index, &["a.rs:1"]);
}
