//! Parsing in a process of its own.

use super::trees::{Tree, found};
use klbr_codeintel::{IndexOptions, SkipReason, isolate::Isolation};
use std::{
    fs::File,
    time::{Duration, Instant},
};

const SERVING: &str = "KLBR_CODEINTEL_SERVING";

fn shell(script: &str) -> Isolation {
    let own = std::env::current_exe().unwrap();
    Isolation {
        program: "sh".into(),
        arguments: vec!["-c".into(), script.into(), own.into()],
        above_bytes: 0,
    }
}

/// The test program is its own parsing process: answers go through a descriptor that the test harness does not print to.
#[test]
fn a_process_answers_what_the_library_would() {
    if std::env::var_os(SERVING).is_some() {
        return klbr_codeintel::isolate::serve(
            std::io::stdin(),
            File::options().write(true).open("/dev/fd/3").unwrap(),
        )
        .unwrap();
    }
    let script = format!(
        "exec 3>&1 >/dev/null; {SERVING}=1 exec \"$0\" --exact index::isolation::a_process_answers_what_the_library_would"
    );
    let tree = Tree::new(&[("a.rs", "fn one() {}\n"), ("b.py", "def two(): pass\n"), ("c.py", "x\0")]);
    let (index, report) =
        tree.build(IndexOptions { isolation: Some(shell(&script)), ..IndexOptions::default() });
    assert_eq!((report.parsed, report.skipped.counts["binary"]), (2, 1), "{report:?}");
    assert_eq!(found(&index, "one"), ["a.rs:1"]);
    assert_eq!(found(&index, "two"), ["b.py:1"]);
}

#[test]
fn a_process_that_hangs_is_killed_and_its_file_is_listed() {
    let tree = Tree::new(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    let mut options = IndexOptions { isolation: Some(shell("exec sleep 600")), ..IndexOptions::default() };
    options.limits.max_time = Duration::from_millis(50);
    let begun = Instant::now();
    let (_, report) = tree.build(options);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(report.skipped.counts["timed_out"], 2);
}

#[test]
fn a_process_that_dies_or_talks_nonsense_loses_only_its_file() {
    for script in ["exit 1", "cat >/dev/null; echo nonsense", "head -c 8 /dev/zero; exec cat >/dev/null"] {
        let tree = Tree::new(&[("a.rs", "fn one() {}\n")]);
        let mut options = IndexOptions { isolation: Some(shell(script)), ..IndexOptions::default() };
        options.limits.max_time = Duration::from_millis(200);
        let (_, report) = tree.build(options);
        let reason = &report.skipped.first[0].reason;
        assert!(matches!(reason, SkipReason::Crashed(_) | SkipReason::TimedOut), "{script}: {reason:?}");
    }
}
