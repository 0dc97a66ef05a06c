//! What an agent sees of a file system, and the words in which it is told what it may not.

use klbr_workspace::view::{Denied, Kind, Level, MemoryTree, View};
use proptest::prelude::*;

fn tree(paths: &[&str]) -> MemoryTree {
    paths.iter().fold(MemoryTree::new(), |tree, path| {
        let kind = match (path.ends_with('/'), path.contains("repo/")) {
            (true, true) => Kind::Mount,
            (true, false) => Kind::Dir,
            (false, _) => Kind::File,
        };
        tree.with(path, kind)
    })
}

fn view(grants: &[(&str, Level)]) -> View {
    grants.iter().fold(View::new(), |view, (path, level)| view.grant(path, *level))
}

/// Runs one operation on the path; answers `ok`, or the words of the refusal.
fn answer(view: &View, tree: &MemoryTree, op: &str, path: &str) -> String {
    let answer = match op {
        "read" => view.read(tree, "/", path),
        "write" => view.write(tree, "/", path),
        "mkdir" => view.mkdir(tree, "/", path),
        "rm" => view.rm(tree, "/", path),
        "commit" => view.commit(tree, "/", path),
        "list" => view.list(tree, "/", path).map(|entries| entries.join(" ")),
        other => panic!("{other}"),
    };
    match (op, answer) {
        ("list", Ok(entries)) => entries,
        (_, Ok(_)) => "ok".to_owned(),
        (_, Err(denied)) => denied.to_string(),
    }
}

#[track_caller]
fn check(view: &View, tree: &MemoryTree, cases: &[(&str, &str, &str)]) {
    for (op, path, expected) in cases {
        assert_eq!(answer(view, tree, op, path), *expected, "{op} {path}");
    }
}

#[test]
fn levels_are_the_most_specific_grants_lowered_to_the_floor() {
    let view =
        view(&[("/", Level::Ro), ("/n", Level::Commit), ("/n/p", Level::None), ("/n/p/q/", Level::Stage)])
            .floor("/n", Level::Stage)
            .floor("/n/p/q/r", Level::None);
    for (path, level, passage) in [
        ("/", Level::Ro, false),
        ("/other", Level::Ro, false),
        ("/no", Level::Ro, false),
        ("/n", Level::Stage, false),
        ("/n/x/y", Level::Stage, false),
        ("/n/p", Level::None, true),
        ("/n/p/x", Level::None, false),
        ("/n/p/q", Level::Stage, false),
        ("/n/p/q/r", Level::None, false),
        ("/n/p/q/r/s", Level::None, false),
    ] {
        assert_eq!((view.level(path), view.is_passage(path)), (level, passage), "{path}");
    }
    // A floor that lets something through below a closed one makes a passage of it.
    let view = View::new().grant("/", Level::Stage).floor("/a", Level::None).floor("/a/b", Level::Ro);
    assert!(view.is_passage("/a"));
    assert!(!View::new().is_passage("/"));
    assert!(!View::new().grant("/a", Level::None).is_passage("/"));
}

#[test]
fn each_operation_says_why_not() {
    let tree = tree(&[
        "/d/f",
        "/d/sub/g",
        "/d/hidden/x",
        "/ro/f",
        "/ro/secret",
        "/repo/",
        "/repo/src/y",
        "/w/m/repo/",
    ]);
    let view = view(&[
        ("/", Level::Stage),
        ("/d/hidden", Level::None),
        ("/ro", Level::Ro),
        ("/ro/secret", Level::None),
        ("/repo", Level::Commit),
        ("/repo/src", Level::Stage),
        ("/repo/docs", Level::Ro),
    ]);
    check(
        &view,
        &tree,
        &[
            ("read", "/d/f", "ok"),
            ("read", "/d", "Is a directory: /d"),
            ("read", "/d/none", "No such file or directory: /d/none"),
            ("read", "/d/hidden", "No such file or directory: /d/hidden"),
            ("read", "/d/hidden/x", "No such file or directory: /d/hidden/x"),
            ("read", "/d/f/x", "No such file or directory: /d/f/x"),
            ("list", "/d", "sub/ f"),
            ("list", "/d/f", "Not a directory: /d/f"),
            ("list", "/", "d/ repo/ [mount] ro/ [read-only] w/"),
            ("write", "/d/f", "ok"),
            ("write", "/d/new/deep/file", "ok"),
            ("write", "/d/sub", "Is a directory: /d/sub"),
            ("write", "/d/f/x/y", "Not a directory: /d/f"),
            ("write", "/d/hidden", "Access denied: /d/hidden is not open to this session."),
            ("write", "/d/hidden/x", "No such file or directory: /d/hidden/x"),
            ("write", "/d/hidden/new", "No such file or directory: /d/hidden/new"),
            ("write", "/ro/f", "Read-only: /ro/f can be read in this session but not changed."),
            ("write", "/ro/new", "Read-only: /ro/new can be read in this session but not changed."),
            ("mkdir", "/d/sub", "ok"),
            ("mkdir", "/d/a/b", "ok"),
            ("mkdir", "/d/f", "Already exists: /d/f"),
            ("mkdir", "/ro/a", "Read-only: /ro/a can be read in this session but not changed."),
            ("rm", "/d/f", "ok"),
            ("rm", "/d/sub", "ok"),
            ("rm", "/d", "Access denied: /d is not open to this session."),
            ("rm", "/ro/f", "Read-only: /ro/f can be read in this session but not changed."),
            ("rm", "/d/gone", "No such file or directory: /d/gone"),
            (
                "rm",
                "/repo",
                "Not changed: /repo is a mounted repository; a session does not remove or move it.",
            ),
            (
                "rm",
                "/w",
                "Not changed: /w/m/repo is a mounted repository; a session does not remove or move it.",
            ),
            ("commit", "/repo", "ok"),
            (
                "commit",
                "/repo/src/y",
                "Not committed: this session may change /repo/src/y but not commit it; the change stays staged.",
            ),
            ("commit", "/d/f", "Nothing to commit: /d/f is not in a repository."),
            ("commit", "/repo/none", "No such file or directory: /repo/none"),
        ],
    );
}

#[test]
fn under_a_passage_nothing_is_told() {
    let tree = tree(&["/a/f", "/a/b/g", "/c/h"]);
    let view = view(&[("/a/b", Level::Stage), ("/a/missing", Level::Ro)]);
    let denied = |path: &str| format!("Access denied: {path} is not open to this session.");
    for path in ["/", "/a", "/a/f", "/a/none", "/c", "/c/h", "/none", "/a/missing", "/a/f/deeper"] {
        for op in ["read", "list", "rm", "commit"] {
            assert_eq!(answer(&view, &tree, op, path), denied(path), "{op} {path}");
        }
    }
    for path in ["/", "/a", "/a/f", "/a/new", "/c/h"] {
        for op in ["write", "mkdir"] {
            assert_eq!(answer(&view, &tree, op, path), denied(path), "{op} {path}");
        }
    }
    assert_eq!(answer(&view, &tree, "list", "/a/b"), "g");
    assert_eq!(answer(&View::new(), &tree, "list", "/"), denied("/"));
}

#[test]
fn a_move_needs_both_ends() {
    let tree = tree(&["/a/f", "/a/g", "/ro/f", "/repo/", "/repo/f"]);
    let view = view(&[("/", Level::Stage), ("/ro", Level::Ro)]);
    let mv = |from, to| view.mv(&tree, "/a", from, to).map_or_else(|denied| denied.to_string(), |(_, to)| to);
    assert_eq!(mv("f", "../a/h"), "/a/h");
    assert_eq!(mv("f", "g"), "Already exists: /a/g");
    assert_eq!(mv("f", "/ro/h"), "Read-only: /ro/h can be read in this session but not changed.");
    assert_eq!(mv("/ro/f", "h"), "Read-only: /ro/f can be read in this session but not changed.");
    assert_eq!(mv("none", "h"), "No such file or directory: /a/none");
    assert_eq!(view.mv(&tree, "/", "/repo/f", "/x"), Err(Denied::AcrossMounts("/repo/f".to_owned())));
    assert_eq!(view.mv(&tree, "/", "/repo", "/x"), Err(Denied::IsMount("/repo".to_owned())));
    assert_eq!(mv("/repo/f", "/repo/g"), "/repo/g");
}

#[test]
fn a_tree_is_listed_depth_by_depth() {
    let tree =
        tree(&["/docs/guide/index.md", "/docs/a.md", "/repo/", "/repo/x", "/README.md", "/B", "/a", "/h/s"]);
    let view = view(&[("/", Level::Stage), ("/README.md", Level::Ro), ("/h", Level::None)]);
    let list = |depth| view.list_tree(&tree, "/", "/", depth).unwrap().join("\n");
    assert_eq!(list(1), "docs/\nrepo/ [mount]\nB\nREADME.md [read-only]\na");
    assert_eq!(list(0), list(1));
    assert_eq!(list(2), "docs/\n  guide/\n  a.md\nrepo/ [mount]\n  x\nB\nREADME.md [read-only]\na");
    assert_eq!(
        list(99),
        "docs/\n  guide/\n    index.md\n  a.md\nrepo/ [mount]\n  x\nB\nREADME.md [read-only]\na"
    );
    let many = (0..401).fold(MemoryTree::new(), |tree, n| tree.with(&format!("/{n}"), Kind::File));
    let lines = view.list_tree(&many, "/", "/", 1).unwrap();
    assert_eq!((lines.len(), lines[400].as_str()), (401, "(more entries — list a directory further down)"));
    let full = (0..400).fold(MemoryTree::new(), |tree, n| tree.with(&format!("/{n}"), Kind::File));
    assert_eq!(view.list_tree(&full, "/", "/", 1).unwrap().len(), 400);
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "repo", "x.md"]);
    prop::collection::vec(name, 0..4).prop_map(|names| format!("/{}", names.join("/")))
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![Level::None, Level::Ro, Level::Stage, Level::Commit])
}

proptest! {
    /// Adding or removing what an agent cannot see changes no answer but that to making the very same name.
    #[test]
    fn what_is_hidden_reads_as_what_is_missing(
        files in prop::collection::vec(path(), 0..8),
        grants in prop::collection::vec((path(), level()), 0..5),
        floor in prop::collection::vec((path(), level()), 0..3),
        asked in path(),
        op in prop::sample::select(vec!["read", "list", "commit"]),
    ) {
        let view = grants.iter().fold(View::new(), |view, (path, level)| view.grant(path, *level));
        let view = floor.iter().fold(view, |view, (path, most)| view.floor(path, *most));
        let tree = |files: &mut dyn Iterator<Item = &String>| {
            files.fold(MemoryTree::new(), |tree, path| tree.with(&format!("{path}/f"), Kind::File))
        };
        let all = tree(&mut files.iter());
        let visible = tree(&mut files.iter().filter(|path| {
            // Kept: what can be seen itself, or has something that can be seen above or in it.
            let file = format!("{path}/f");
            (0..=file.len()).any(|end| file.is_char_boundary(end) && view.level(&file[..end]) >= Level::Ro)
        }));
        prop_assert_eq!(answer(&view, &all, op, &asked), answer(&view, &visible, op, &asked));
    }

    #[test]
    fn an_answer_never_lets_more_than_the_level(
        files in prop::collection::vec(path(), 0..8),
        grants in prop::collection::vec((path(), level()), 0..5),
        asked in path(),
    ) {
        let view = grants.iter().fold(View::new(), |view, (path, level)| view.grant(path, *level));
        let tree = files.iter().fold(MemoryTree::new(), |tree, path| tree.with(&format!("{path}/f"), Kind::File));
        for (op, least) in
            [("read", Level::Ro), ("write", Level::Stage), ("mkdir", Level::Stage), ("rm", Level::Stage), ("commit", Level::Commit)]
        {
            if answer(&view, &tree, op, &asked) == "ok" {
                prop_assert!(view.level(&asked) >= least, "{}", op);
            }
        }
    }
}
