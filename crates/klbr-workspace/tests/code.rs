//! The code actions as an agent meets them: a scripted model calls, and what it is then told is the transcript.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail where they stand, like the test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use expect_test::{Expect, expect};
use klbr_core::config::Config;
use klbr_core::runtime::AgentBuilder;
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::update::Happening;
use klbr_workspace::code::Code;
use klbr_workspace::view::Level;
use serde_json::{Value, json};

const LIB: &str = "/// A store.\npub struct Store;\n\nimpl Store {\n    /// Its size.\n    pub fn size(&self) -> u8 {\n        1\n    }\n}\n\nfn open() -> Store {\n    Store.size();\n    Store\n}\n";

fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("code/src/lib.rs", LIB.as_bytes());
    write("code/app.py", b"class App:\n    def run(self): pass\n");
    write("code/bytes.py", b"def run(): pass\0");
    write("code/hidden/secret.rs", b"fn secret_size() {}\n");
    write("outside.rs", b"fn outside() {}\n");
    symlink(folder.path().join("outside.rs"), folder.path().join("code/link.rs")).unwrap();
    folder
}

fn code(folder: &Path, level: Level) -> Code {
    Code::new(&folder.join("code"), level).unwrap().with("hidden", Level::None)
}

/// What each call is answered, one turn of one step each; `between` is done in front of the call of that number.
async fn answers(code: &Code, calls: &[(&str, Value)], between: impl Fn(usize)) -> Vec<String> {
    let model = ScriptedModel::new([]);
    let mut answers = Vec::new();
    let script: Vec<Scripted> = calls
        .iter()
        .flat_map(|(name, arguments)| {
            let wait = Scripted::calls(&[("wait_and_continue", r#"{"duration":"10m"}"#)]);
            [Scripted::calls(&[(name, &arguments.to_string())]), wait]
        })
        .collect();
    script.into_iter().for_each(|reply| model.then(reply));
    let agent = AgentBuilder::new(Config::new("ada".parse().unwrap(), "scripted"), MemoryStore::new(), model);
    let agent = code.give_to(agent).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    for number in 0..calls.len() {
        between(number);
        agent.handle().say(&format!("call-{number}"), "Go on.").await.unwrap();
        loop {
            match updates.next().await.unwrap().unwrap().happening {
                Happening::ActionEnded { result, .. } if answers.len() == number => {
                    answers.push(result.to_string())
                }
                Happening::Waiting { .. } => break,
                _ => {}
            }
        }
    }
    agent.shutdown().await;
    answers
}

async fn check(code: &Code, calls: &[(&str, Value)], expected: &Expect) {
    let answers = answers(code, calls, |_| {}).await;
    expected.assert_eq(&(answers.join("\n=====\n") + "\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_read_by_its_symbols_within_what_may_be_seen() {
    let folder = tree();
    let calls = [
        ("code_outline", json!({})),
        ("code_symbols", json!({ "text": "siz", "kinds": ["method", "function"] })),
        ("code_definitions", json!({ "name": "size", "text": true })),
        ("code_references", json!({ "name": "size", "path": "src" })),
        ("code_diagnostics", json!({ "path": "app.py" })),
        ("code_definitions", json!({ "name": "secret_size" })),
    ];
    check(
        &code(folder.path(), Level::Ro),
        &calls,
        &expect![[r#"
        app.py (python)
          1-2        class        class App:
          2            method       def run(self):
        src/lib.rs (rust)
          1-2        struct       pub struct Store;
          4-9        impl         impl Store
          5-8          method       pub fn size(&self) -> u8
          11-14      function     fn open() -> Store
        (2 files searched, 1 skipped (1 binary), 0 of no known language)
          bytes.py: binary
        =====
        src/lib.rs:6:12: method impl Store::size
        (2 files searched, 1 skipped (1 binary), 0 of no known language)
          bytes.py: binary
        =====
        5:     /// Its size.
        6:     pub fn size(&self) -> u8 {
        7:         1
        8:     }

        (6 more lines — read again with offset 9)
        =====
        src/lib.rs:12:11: call Store::size
        =====
        (none)
        =====
        (none)
        (3 files searched, 0 skipped, 0 of no known language)
    "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_seen_or_makes_no_sense_is_refused() {
    let folder = tree();
    let calls = [
        ("code_outline", json!({ "path": "hidden" })),
        ("code_outline", json!({ "path": "../outside.rs" })),
        ("code_outline", json!({ "path": "link.rs" })),
        ("code_outline", json!({ "path": "nowhere.rs" })),
        ("code_symbols", json!({ "kinds": ["thing"] })),
        ("code_definitions", json!({ "name": "a::" })),
        (
            "code_edit_symbol",
            json!({ "path": "src/lib.rs", "symbol": "open", "edit": "replace_symbol_body", "text": "" }),
        ),
    ];
    let answers = answers(&code(folder.path(), Level::Ro), &calls, |_| {}).await;
    let answers =
        answers.join("\n=====\n").replace(folder.path().canonicalize().unwrap().to_str().unwrap(), "~");
    expect![[r#"
        No such file or directory: ~/code/hidden
        =====
        Access denied: ~/outside.rs is not open to this session.
        =====
        Access denied: ~/code/link.rs is not open to this session.
        =====
        No such file or directory: ~/code/nowhere.rs
        =====
        Not done: there is no kind "thing"; kinds: module, function, method, static_method, class_method, constructor, property, closure, lambda, class, struct, enum, variant, union, trait, interface, impl, extern_block, extern_crate, associated_type, associated_const, type_alias, constant, static, variable, attribute, field, macro, heading, key, call, macro_call, path, type, import, access, decorator, annotation, name.
        =====
        Not done: "a::" is no name: not a name path at byte 3: a name is missing.
        =====
        Read-only: ~/code/src/lib.rs can be read in this session but not changed.
    "#]].assert_eq(&(answers + "\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_changed_only_as_the_agent_has_seen_it() {
    let folder = tree();
    let file = folder.path().join("code/src/lib.rs");
    let edit = |symbol: &str, text: &str| {
        let arguments =
            json!({ "path": "src/lib.rs", "symbol": symbol, "edit": "replace_symbol_body", "text": text });
        ("code_edit_symbol", arguments)
    };
    let read = ("code_definitions", json!({ "name": "open", "text": true }));
    let calls = [
        edit("open", "Store"),
        read.clone(),
        edit("open", "Store"),
        // What it wrote itself it knows.
        edit("size", "2"),
        // Somebody else writes; it is told where the symbol is now.
        edit("size", "3"),
        read,
        edit("size", "{ if {"),
        edit("size", "3"),
        (
            "code_edit_symbol",
            json!({ "path": "src/lib.rs", "symbol": "open", "edit": "rename_in_file", "text": "opened" }),
        ),
    ];
    let answers = answers(&code(folder.path(), Level::Stage), &calls, |number| {
        if number == 4 {
            fs::write(&file, format!("// New.\n{}", fs::read_to_string(&file).unwrap())).unwrap();
        }
    })
    .await;
    let answers =
        answers.join("\n=====\n").replace(folder.path().canonicalize().unwrap().to_str().unwrap(), "~");
    expect![[r#"
        ~/code/src/lib.rs exists and has not been read in this session. Read it first. open stands at lines 11-14 now.
        =====
        11: fn open() -> Store {
        12:     Store.size();
        13:     Store
        14: }
        =====
        @@ -9,6 +9,5 @@
         }

         fn open() -> Store {
        -    Store.size();
             Store
         }
        =====
        @@ -4,7 +4,7 @@
         impl Store {
             /// Its size.
             pub fn size(&self) -> u8 {
        -        1
        +        2
             }
         }

        =====
        ~/code/src/lib.rs changed since you last read it. Read it again before changing it. impl Store::size stands at lines 6-9 now.
        =====
        12: fn open() -> Store {
        13:     Store
        14: }
        =====
        Not changed: the result would parse worse (0 problems before, 1 after), first: 1:1: cannot read "// New.\n/// A store.\npub struct Store;\n\nimpl Store {\n    ///".
        =====
        @@ -5,7 +5,7 @@
         impl Store {
             /// Its size.
             pub fn size(&self) -> u8 {
        -        2
        +        3
             }
         }

        =====
        @@ -9,6 +9,6 @@
             }
         }

        -fn open() -> Store {
        +fn opened() -> Store {
             Store
         }
    "#]].assert_eq(&(answers.replace("\n \n", "\n\n") + "\n"));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("3\n    }") && text.contains("fn opened() -> Store {\n    Store\n}"), "{text}");
}
