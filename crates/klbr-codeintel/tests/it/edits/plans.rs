//! Plans on texts.

use klbr_codeintel::{Edit, EditError, Editor, Extent};

const RUST: &str = "\
struct S;

/// Makes one.
#[inline]
fn make(n: u8) -> S {
    other(n);
    S
}

impl S {
    fn a(&self) -> u8 {
        1
    }

    fn b(&self) -> u8 {
        self.a()
    }
}
";

const PYTHON: &str = "\
class C:
    @property
    def v(self):
        \"\"\"Doc.\"\"\"
        return 1

    def w(self): return self.v

def f(a):
    return a
";

fn plan(language: &str, source: &str, edits: &[Edit]) -> Result<String, EditError> {
    let planned = Editor::default().plan(None, source.as_bytes(), Some(language), edits)?;
    Ok(String::from_utf8(planned.text).unwrap())
}

fn replace(target: &str, text: &str) -> Edit {
    Edit::ReplaceSymbol { target: target.into(), text: text.into(), extent: Extent::Definition }
}

fn body(target: &str, text: &str) -> Edit {
    Edit::ReplaceSymbolBody { target: target.into(), text: text.into() }
}

fn before(target: &str, text: &str) -> Edit {
    Edit::InsertBefore { target: target.into(), text: text.into() }
}

fn after(target: &str, text: &str) -> Edit {
    Edit::InsertAfter { target: target.into(), text: text.into() }
}

fn rename(target: &str, name: &str) -> Edit {
    Edit::RenameInFile { target: target.into(), name: name.into() }
}

#[test]
fn a_replaced_definition_keeps_what_is_attached_unless_told() {
    let text = plan("rust", RUST, &[replace("make", "fn make() -> S { S }\n")]).unwrap();
    assert_eq!(text, RUST.replace("fn make(n: u8) -> S {\n    other(n);\n    S\n}", "fn make() -> S { S }"));
    let all =
        Edit::ReplaceSymbol { target: "make".into(), text: "fn make() {}".into(), extent: Extent::Attached };
    let text = plan("rust", RUST, &[all]).unwrap();
    assert!(text.contains("struct S;\n\nfn make() {}\n\nimpl S"), "{text}");
}

#[test]
fn a_body_is_taken_with_or_without_braces() {
    let wanted = RUST.replace("    other(n);\n    S\n", "    S\n");
    for given in ["{\n    S\n}", "S", "    S\n", "\n    S"] {
        assert_eq!(plan("rust", RUST, &[body("make", given)]).unwrap(), wanted, "{given:?}");
    }
}

#[test]
fn a_python_body_is_indented_where_it_stands_and_strings_are_not() {
    let text = plan("python", PYTHON, &[body("C.v", "x = '''a\nb'''\nif x:\n    return 2")]).unwrap();
    let wanted = "    def v(self):\n        x = '''a\nb'''\n        if x:\n            return 2\n\n    def w";
    assert!(text.contains(wanted), "{text}");
    let text = plan("python", PYTHON, &[body("w", "x = 1\nreturn x")]).unwrap();
    assert!(text.contains("    def w(self): \n        x = 1\n        return x\n\ndef f"), "{text}");
}

#[test]
fn a_method_written_at_the_margin_is_moved_to_its_class() {
    let text = plan("python", PYTHON, &[replace("w", "def w(self):\n    return 2\n")]).unwrap();
    assert!(text.contains("\n    def w(self):\n        return 2\n\ndef f"), "{text}");
}

#[test]
fn insertions_stand_on_lines_of_their_own_around_what_is_attached() {
    let text = plan("rust", RUST, &[before("make", "fn first() {}\n\n"), after("S::a", "\nfn c(&self) {}")])
        .unwrap();
    assert!(text.contains("struct S;\n\nfn first() {}\n\n/// Makes one."), "{text}");
    assert!(text.contains("        1\n    }\n\n    fn c(&self) {}\n\n    fn b"), "{text}");
    let text = plan("python", PYTHON, &[before("C::v", "x = 1\n")]).unwrap();
    assert!(text.contains("class C:\n    x = 1\n    @property"), "{text}");
    let text = plan("rust", "enum E {\n    A, // one\n    B,\n}", &[after("E::A", "C,")]).unwrap();
    assert_eq!(text, "enum E {\n    A, // one\n    C,\n    B,\n}");
    assert_eq!(plan("rust", "fn a() {}", &[after("a", "fn b() {}")]).unwrap(), "fn a() {}\nfn b() {}");
}

#[test]
fn crlf_a_byte_order_mark_and_invalid_bytes_outside_are_kept() {
    let source = b"\xef\xbb\xbffn a() {\r\n    1;\r\n}\r\n// \xff\xfe\r\nfn b() {}\r\n";
    let edits = [replace("a", "fn a() {\n    2;\n}"), before("a", "fn z() {}\n")];
    let planned = Editor::default().plan(None, source, Some("rust"), &edits).unwrap();
    let wanted = b"\xef\xbb\xbffn z() {}\r\nfn a() {\r\n    2;\r\n}\r\n// \xff\xfe\r\nfn b() {}\r\n";
    assert_eq!(planned.text, wanted);
    assert_eq!(planned.changes.len(), 2);
}

#[test]
fn the_answer_tells_the_regions_and_the_difference() {
    let planned =
        Editor::default().plan(None, RUST.as_bytes(), Some("rust"), &[body("S::a", "{ 2 }")]).unwrap();
    let change = &planned.changes[0];
    assert_eq!(&planned.text[change.after.bytes()], b"{ 2 }");
    assert_eq!((change.before.start_line, change.before.end_line, change.after.end_line), (11, 13, 11));
    assert!(
        planned.diff.contains("-    fn a(&self) -> u8 {\n-        1\n-    }\n+    fn a(&self) -> u8 { 2 }\n"),
        "{}",
        planned.diff
    );
}

#[test]
fn a_rename_follows_mentions_macros_and_format_captures() {
    let source = "fn old(n: u8) {}\nfn user() { old(1); let f = old; println!(\"{}\", old(2)); }\nconst K: u8 = 1;\nfn k() { println!(\"{K}\"); }\n";
    let text = plan("rust", source, &[rename("old", "new")]).unwrap();
    assert_eq!(text, source.replace("old", "new"));
    assert_eq!(plan("rust", source, &[rename("K", "L")]).unwrap(), source.replace('K', "L"));
    let text = plan("python", PYTHON, &[rename("C.v", "value")]).unwrap();
    assert_eq!(text, PYTHON.replace("def v(", "def value(").replace("self.v\n", "self.value\n"));
}

#[test]
fn a_rename_in_doubt_is_refused_with_the_places() {
    let doubtful = [
        ("rust", "fn a() {}\nfn b() {}", "a", "b"),
        ("rust", "fn a() {}\nfn f(a: u8) -> u8 { a }", "a", "z"),
        ("rust", "fn a() {}\nfn f(s: S) { s.a() }", "a", "z"),
        ("rust", "struct S { a: u8 }\nfn f(s: S) { let S { a } = s; }", "S::a", "z"),
        ("python", "def a(): pass\ndef f(a): return a", "a", "z"),
        ("python", "class A:\n    def m(self): pass\nclass B:\n    def m(self): pass", "A.m", "z"),
    ];
    for (language, source, target, name) in doubtful {
        let error = plan(language, source, &[rename(target, name)]).unwrap_err();
        assert!(
            matches!(&error, EditError::RenameInDoubt { found, .. } if !found.is_empty()),
            "{source}: {error}"
        );
    }
    for name in ["fn", "", "1a", "a-b", "a b"] {
        assert!(
            matches!(plan("rust", "fn a() {}", &[rename("a", name)]), Err(EditError::NotAnIdentifier(_))),
            "{name}"
        );
    }
}

#[test]
fn what_is_ambiguous_missing_or_bodyless_is_refused() {
    let twins = "#[cfg(unix)]\nfn f() {}\n#[cfg(windows)]\nfn f() {}\n";
    let Err(EditError::Ambiguous { candidates, .. }) = plan("rust", twins, &[body("f", "{}")]) else {
        panic!()
    };
    let targets: Vec<&str> = candidates.iter().map(|candidate| candidate.target.as_str()).collect();
    assert_eq!(targets, ["::f[cfg(unix)]", "::f[cfg(windows)]"]);
    let text = plan("rust", twins, &[body(targets[1], "{ 1; }")]).unwrap();
    assert_eq!(
        text,
        twins
            .replace("windows)]\nfn f() {}", "windows)]\nfn f() {\n    1;\n}")
            .replace("{\n    1;\n}", "{ 1; }")
    );
    let Err(EditError::NotFound { similar, .. }) = plan("rust", RUST, &[body("mak", "{}")]) else { panic!() };
    assert_eq!(similar[0].target, "::make");
    assert!(matches!(plan("rust", RUST, &[body("::S", "{}")]), Err(EditError::NoBody(_))));
    assert!(matches!(plan("rust", RUST, &[body("S:", "{}")]), Err(EditError::Target { .. })));
}

#[test]
fn an_ordinal_that_has_gone_stale_names_nothing() {
    let twins = "def f(): return 1\ndef f(): return 2\n";
    let Err(EditError::Ambiguous { candidates, .. }) = plan("python", twins, &[body("f", "pass")]) else {
        panic!()
    };
    let second = &candidates[1].target;
    assert_eq!(plan("python", twins, &[body(second, "pass")]).unwrap(), "def f(): return 1\ndef f(): pass\n");
    let changed = twins.replace('2', "3");
    assert!(matches!(plan("python", &changed, &[body(second, "pass")]), Err(EditError::NotFound { .. })));
}

#[test]
fn a_text_that_breaks_the_file_or_moves_its_neighbours_is_refused() {
    let worse = [("make", "fn make( {"), ("make", "fn make() {"), ("make", "fn make() {}}"), ("S::a", "")];
    for (target, text) in &worse[..3] {
        assert!(
            matches!(plan("rust", RUST, &[replace(target, text)]), Err(EditError::ParsesWorse { .. })),
            "{text}"
        );
    }
    assert!(plan("rust", RUST, &[replace(worse[3].0, worse[3].1)]).is_ok(), "a definition may be removed");
    let closes = "fn a(&self) {} }\nimpl T {";
    assert!(matches!(plan("rust", RUST, &[replace("S::a", closes)]), Err(EditError::MovesOthers(_))));
    assert!(matches!(
        plan("python", "class C:\n    x = 1\n", &[replace("C.x", "")]),
        Err(EditError::ParsesWorse { .. })
    ));
    assert!(matches!(plan("rust", RUST, &[after("S::a", "#[cold]")]), Err(EditError::MovesOthers(_))));
    let text = plan("python", PYTHON, &[replace("C.v", "")]).unwrap();
    assert!(text.starts_with("class C:\n    \n\n    def w"), "what was attached goes too: {text}");
}

#[test]
fn a_degraded_definition_is_not_edited_and_a_broken_neighbour_is_no_hindrance() {
    let broken = "fn a() {\n    let = 1;\n}\nfn b() {}\n";
    assert!(plan("rust", broken, &[body("b", "{ 1; }")]).is_ok());
    assert!(plan("rust", broken, &[body("a", "{}")]).is_ok(), "its extent is sure, and the edit mends it");
    let unclosed = "fn a() {\n    if x {\n}\nfn b() {}\nfn c() {}\n";
    for target in ["a", "b"] {
        assert!(
            matches!(plan("rust", unclosed, &[body(target, "{}")]), Err(EditError::Degraded { .. })),
            "{target}"
        );
    }
}

#[test]
fn two_edits_of_the_same_bytes_are_refused() {
    let both = [replace("S::a", "fn a() {}"), body("S::a", "{}")];
    assert!(matches!(plan("rust", RUST, &both), Err(EditError::Overlap { .. })));
    assert!(matches!(
        plan("rust", RUST, &[replace("impl S", "impl S {}"), body("S::a", "{}")]),
        Err(EditError::NotFound { .. } | EditError::Overlap { .. })
    ));
}
