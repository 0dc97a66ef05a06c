//! `klbr code`: what it prints for people and for programs, what it refuses, and that it needs no home.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::program::{Ended, Home, await_that, files};

const LIB: &str = "/// A store.\npub struct Store {\n    size: u8,\n}\n\nimpl Store {\n    pub fn size(&self) -> u8 {\n        self.size\n    }\n}\n\n#[cfg(unix)]\nfn open() {}\n#[cfg(windows)]\nfn open() {}\n";
const APP: &str = "class App:\n    def run(self):\n        return self.run()\n";

/// A folder of code beside a home that is never made.
struct Tree(Home);

impl Tree {
    fn new() -> Self {
        let tree = Tree(Home::new());
        tree.write("src/lib.rs", LIB.as_bytes());
        tree.write("app.py", APP.as_bytes());
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.beside("tree").join(name)
    }

    fn write(&self, name: &str, text: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.klbr(arguments).output().unwrap();
        assert!(!self.0.path().exists(), "{arguments:?} made a home");
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn klbr(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.0.klbr(&[&["code"], arguments].concat());
        command.current_dir(self.path(""));
        command
    }

    /// Both streams of a run that went well.
    #[track_caller]
    fn check(&self, arguments: &[&str], expected: &Expect) {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        expected.assert_eq(&format!("{}---\n{}", ended.out, ended.err));
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(&[arguments, &["--json"]].concat());
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{arguments:?}: {ended:?}");
        serde_json::from_str(&ended.out).unwrap()
    }

    fn hash(&self, name: &str) -> String {
        self.json(&["outline", name])["files"][0]["hash"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], code: i32, error: &str, hint: &str) {
        let before = files(&self.path(""));
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains(error), "{arguments:?} does not say {error:?}: {}", ended.err);
        assert!(ended.err.contains(hint), "{arguments:?} does not hint {hint:?}: {}", ended.err);
        assert_eq!(ended.out, "");
        assert!(before == files(&self.path("")), "{arguments:?} changed something");
    }

    /// Applies an edit whose text comes from standard input.
    fn edit(&self, arguments: &[&str], text: &str) -> Ended {
        use std::io::Write as _;
        let mut command = self.klbr(&[&["edit"], arguments].concat());
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn files_are_shown_as_trees_with_the_hash_that_an_edit_names() {
    let tree = Tree::new();
    tree.check(
        &["outline"],
        &expect![[r#"
        app.py (python, b34feb24cdf54c85bd30d6e7c1a1e4592e3250289442690fe956f6064bb4d45b)
          1-3        class        class App:
          2-3          method       def run(self):
        src/lib.rs (rust, 36e133237422ab3ebde9b6f332ea991f99d89e4a62b55ccf9e6594930e8dac73)
          1-4        struct       pub struct Store
          3            field        size: u8
          6-10       impl         impl Store
          7-9          method       pub fn size(&self) -> u8
          12-13      function     fn open()
          14-15      function     fn open()
        ---
        2 files searched, 0 skipped, 0 of no known language
    "#]],
    );
    let told = tree.json(&["outline", "app.py"]);
    assert_eq!(told["files"][0]["outline"][0]["children"][0]["path"], "App::run");
    assert_eq!(told["searched"], 1);
}

#[test]
fn symbols_are_listed_by_role_and_kind() {
    let tree = Tree::new();
    tree.check(
        &["symbols", "."],
        &expect![[r#"
        app.py:1:7: class App
        app.py:2:9: method App::run
        src/lib.rs:2:12: struct Store
        src/lib.rs:3:5: field Store::size
        src/lib.rs:6:6: impl impl Store
        src/lib.rs:7:12: method impl Store::size
        src/lib.rs:13:4: function open[cfg(unix)]
        src/lib.rs:15:4: function open[cfg(windows)]
        ---
        2 files searched, 0 skipped, 0 of no known language
    "#]],
    );
    tree.check(
        &["symbols", "src", "--kind", "field,method"],
        &expect![[r#"
        src/lib.rs:3:5: field Store::size
        src/lib.rs:7:12: method impl Store::size
        ---
    "#]],
    );
    tree.check(
        &["symbols", "app.py", "--refs"],
        &expect![[r#"
        app.py:3:16: name self
        app.py:3:21: call self::run
        ---
    "#]],
    );
    let all = tree.json(&["symbols", "app.py", "--all"]);
    let roles: Vec<&str> =
        all["files"][0]["symbols"].as_array().unwrap().iter().map(|s| s["role"].as_str().unwrap()).collect();
    assert!(roles.contains(&"definition") && roles.contains(&"reference"), "{all}");
}

#[test]
fn names_are_found_with_what_the_answer_rests_on() {
    let tree = Tree::new();
    tree.write("large.py", &b"x = 1\n".repeat(1_500_000));
    tree.write("bytes.rs", b"fn open() {}\0");
    tree.write("notes", b"words");
    tree.check(
        &["defs", "Store::size"],
        &expect![[r#"
        src/lib.rs:3:5: field Store::size  size: u8
        src/lib.rs:7:12: method impl Store::size  pub fn size(&self) -> u8
        ---
        3 files searched, 1 skipped (1 too_large), 1 of no known language
          large.py: too large: 9000000 bytes
    "#]],
    );
    tree.check(
        &["refs", "run"],
        &expect![[r#"
        app.py:3:21: call self::run
        ---
        3 files searched, 1 skipped (1 too_large), 1 of no known language
          large.py: too large: 9000000 bytes
    "#]],
    );
    tree.check(
        &["defs", "nowhere"],
        &expect![[r#"
        ---
        no definition of nowhere
        3 files searched, 1 skipped (1 too_large), 1 of no known language
          large.py: too large: 9000000 bytes
    "#]],
    );
    let told = tree.json(&["defs", "open"]);
    let paths: Vec<&str> =
        told["hits"].as_array().unwrap().iter().map(|h| h["symbol"]["name_path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["open[cfg(unix)]", "open[cfg(windows)]"]);
    assert_eq!((&told["searched"], &told["skipped"]["counts"]["binary"]), (&2.into(), &1.into()), "{told}");
    tree.check(
        &["defs", "open", "src", "--limit", "1"],
        &expect![[r#"
        src/lib.rs:13:4: function open[cfg(unix)]  fn open()
        ---
        there are more: --limit takes a larger number
    "#]],
    );
    tree.refused(&["defs", "a::"], 2, "not a name path at byte 3", "Reader::read");
    tree.refused(&["defs", "a", "nowhere"], 2, "nowhere", "can be read");
    tree.refused(&["outline", "notes"], 2, "neither the file's name", "--language");
    tree.refused(&["symbols", "--kind", "thing"], 2, "thing", "method");
    tree.refused(&["symbols", "notes", "--language", "cobol"], 2, "cobol", "python");
}

#[test]
fn an_index_answers_as_the_files_do_and_stays_true() {
    let tree = Tree::new();
    let file = tree.0.beside("index");
    let file = file.to_str().unwrap();
    let built = tree.json(&["index", "--file", file]);
    assert_eq!((&built["report"]["files"], &built["report"]["parsed"]), (&2.into(), &2.into()), "{built}");
    tree.write("app.py", b"def moved(): pass\nclass App: pass\n");
    let found = tree.json(&["defs", "App", "--index", file]);
    assert_eq!(found["hits"][0]["symbol"]["name_range"]["start_line"], 2, "{found}");
    assert_eq!(tree.json(&["index", "--file", file])["report"]["parsed"], 0, "it was kept up to date");
    fs::write(file, "damaged").unwrap();
    let ended = tree.run(&["index", "--file", file]);
    assert!(ended.code == Some(0) && ended.err.contains("made anew"), "{ended:?}");
    let other = tree.path("src");
    tree.refused(&["index", other.to_str().unwrap(), "--file", file], 2, "another tree", "another file");
    tree.refused(&["index", "app.py", "--file", file], 2, "no folder", "index is of a folder");
}

#[test]
fn a_watched_index_takes_in_what_changes() {
    let tree = Tree::new();
    let file = tree.0.beside("index");
    let arguments = ["index", "--file", file.to_str().unwrap(), "--watch"];
    let out = fs::File::create(tree.0.beside("out")).unwrap();
    let mut child = tree.klbr(&arguments).stdout(out).spawn().unwrap();
    let said = || fs::read_to_string(tree.0.beside("out")).unwrap();
    await_that("the index", || said().contains("2 files"));
    tree.write("src/new.rs", b"fn fresh() {}\n");
    await_that("the new file", || said().contains("3 files"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_definition_is_replaced_and_the_difference_is_printed() {
    let tree = Tree::new();
    let hash = tree.hash("src/lib.rs");
    let ended = tree
        .edit(&["replace-symbol-body", "src/lib.rs", "impl Store::size", "--hash", &hash], "self.size + 1");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    expect![[r#"
        --- a/src/lib.rs
        +++ b/src/lib.rs
        @@ -5,7 +5,7 @@

         impl Store {
             pub fn size(&self) -> u8 {
        -        self.size
        +        self.size + 1
             }
         }

        hash a3d3e3cc05608ce31e93fca4cf396e3c208b8068276e3136e4f9a2c9ff69c7d4
    "#]]
    .assert_eq(&ended.out.replace("\n \n", "\n\n"));
    let text = fs::read_to_string(tree.path("src/lib.rs")).unwrap();
    assert_eq!(text, LIB.replace("self.size\n", "self.size + 1\n"));
    // The hash that it printed is what the next edit names.
    let hash = ended.out.trim_end().rsplit(' ').next().unwrap().to_owned();
    fs::write(tree.0.beside("new.rs"), "fn close() {}\n").unwrap();
    let new = tree.0.beside("new.rs");
    let told = tree.json(&[
        "edit",
        "insert-after",
        "src/lib.rs",
        "open[cfg(windows)]",
        "--hash",
        &hash,
        "--text",
        new.to_str().unwrap(),
    ]);
    assert_eq!(told["before"], hash.as_str());
    let text = fs::read_to_string(tree.path("src/lib.rs")).unwrap();
    assert!(text.ends_with("fn open() {}\nfn close() {}\n"), "{text}");
    let hash = tree.hash("src/lib.rs");
    let ended = tree.run(&["edit", "rename-in-file", "src/lib.rs", "close", "shut", "--hash", &hash]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let hash = tree.hash("src/lib.rs");
    let ended = tree.edit(&["insert-before", "src/lib.rs", "shut", "--hash", &hash], "const A: u8 = 1;");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let hash = tree.hash("src/lib.rs");
    let ended = tree.edit(&["replace-symbol", "src/lib.rs", "Store", "--attached", "--hash", &hash], "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = fs::read_to_string(tree.path("src/lib.rs")).unwrap();
    assert!(!text.contains("A store") && text.contains("const A: u8 = 1;\nfn shut() {}\n"), "{text}");
}

#[test]
fn edits_that_are_in_doubt_are_refused_and_change_nothing() {
    let tree = Tree::new();
    let hash = tree.hash("src/lib.rs");
    let rename = |target: &'static str, hash: &str| {
        ["edit", "rename-in-file", "src/lib.rs", target, "other", "--hash", hash].map(str::to_owned)
    };
    let refused = |arguments: [String; 7], code, error: &str, hint: &str| {
        tree.refused(&arguments.each_ref().map(String::as_str), code, error, hint);
    };
    refused(rename("open", &hash), 2, "names 2 definitions", "name one of them");
    refused(rename("opne", &hash), 2, "no definition \"opne\"", "klbr code outline");
    refused(rename("a::", &hash), 2, "\"a::\"", "nothing was changed");
    refused(rename("open", "12"), 2, "64 hex digits", "--help");
    let stale = "0".repeat(64);
    refused(
        rename("impl Store::size", &stale),
        2,
        "has changed",
        &format!("lines 7 to 9 now; look at it, then name --hash {hash}"),
    );
    tree.refused(
        &["edit", "rename-in-file", "nowhere.rs", "a", "b", "--hash", &hash],
        2,
        "nowhere.rs",
        "is there",
    );
    let before = files(&tree.path(""));
    let ended =
        tree.edit(&["replace-symbol-body", "src/lib.rs", "impl Store::size", "--hash", &hash], "{ if {");
    assert!(ended.code == Some(2) && ended.err.contains("parse worse"), "{ended:?}");
    tree.write("broken.rs", b"fn a() {\n    if x {\n}\nfn b() {}\n");
    let hash = tree.hash("broken.rs");
    tree.refused(
        &["edit", "rename-in-file", "broken.rs", "b", "c", "--hash", &hash],
        2,
        "broken region",
        "nothing",
    );
    fs::remove_file(tree.path("broken.rs")).unwrap();
    assert!(before == files(&tree.path("")));
    tree.write("fixed.rs", b"fn a() {}\n");
    let hash = tree.hash("fixed.rs");
    fs::set_permissions(tree.path("fixed.rs"), fs::Permissions::from_mode(0o444)).unwrap();
    tree.refused(
        &["edit", "rename-in-file", "fixed.rs", "a", "b", "--hash", &hash],
        2,
        "read-only",
        "writable",
    );
    let told: Value = serde_json::from_str(
        &tree.run(&["edit", "rename-in-file", "fixed.rs", "a", "b", "--hash", &hash, "--json"]).err,
    )
    .unwrap();
    assert_eq!(told["error"]["class"], "user");
}

#[test]
fn faults_of_syntax_are_listed_and_names_of_strangers_command_no_terminal() {
    let tree = Tree::new();
    tree.write("bad\u{1b}[2J.py", b"def f(:\n    pass\n");
    tree.check(
        &["diagnostics"],
        &expect![[r#"
        bad␛[2J.py:1:7: missing ")"
        ---
        3 files searched, 0 skipped, 0 of no known language
    "#]],
    );
    let told = tree.json(&["diagnostics"]);
    assert_eq!((told["files"].as_array().unwrap().len(), &told["searched"]), (1, &3.into()), "{told}");
}

/// A text above the bound for it is parsed by a second process, and all that is told of it comes through.
#[test]
fn hard_files_are_parsed_in_a_process_of_their_own() {
    let tree = Tree::new();
    let text = "def f(x):\n    return g(x)\n".repeat(20_000) + "def last(:\n    pass\n";
    tree.write("hard.py", text.as_bytes());
    let told = tree.json(&["symbols", "hard.py", "--all"]);
    assert_eq!(told["skipped"]["counts"], serde_json::json!({}), "{}", told["skipped"]);
    assert_eq!(told["files"][0]["symbols"].as_array().unwrap().len() / 10_000, 6);
    assert!(told["files"][0]["status"].to_string().contains("recovered"), "{}", told["files"][0]["status"]);
    let told = tree.json(&["diagnostics", "hard.py"]);
    assert_eq!(told["files"][0]["diagnostics"][0]["range"]["start_line"], 40_001);
    assert_eq!(tree.json(&["defs", "last", "hard.py"])["hits"][0]["path"], "hard.py");
}
