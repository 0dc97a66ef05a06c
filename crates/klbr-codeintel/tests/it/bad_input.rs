//! Texts that are broken, hostile or no text at all.

use crate::invariants::check;
use klbr_codeintel::{
    CodeSymbol, DiagnosticKind, ExtractError, Extractor, Limits, ParseStatus, SymbolExtraction,
    definitions_named, extract_symbols,
};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const RUST: &str = "/// A.\nstruct A { x: u8 }\n\nimpl A {\n    fn one(&self) -> u8 {\n        let s = \"}\";\n        self.x\n    }\n\n    fn two(&self) {\n        self.one();\n    }\n}\n\nmod m {\n    fn three() {}\n}\n\nthread_local! {\n    static D: u8 = 0;\n}\ncfg_if! { if #[cfg(unix)] { mod u { fn four() {} } } }\n";
const PYTHON: &str = "import os\n\nclass C(Base):\n    x = 1\n\n    def one(self):\n        return (self.x, [1, 2])\n\n    @property\n    def two(self):\n        return '''}'''\n\ndef three():\n    pass\n";

fn extract(language: &str, source: impl AsRef<[u8]>) -> SymbolExtraction {
    let extraction = extract_symbols(None, source.as_ref(), Some(language)).unwrap();
    check(source.as_ref(), &extraction);
    extraction
}

fn names(symbols: &[CodeSymbol]) -> Vec<&str> {
    symbols
        .iter()
        .filter(|symbol| symbol.role == klbr_codeintel::SymbolRole::Definition)
        .map(|symbol| symbol.name.as_str())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn torn_texts_give_ordered_answers(python in any::<bool>(), cut in 0usize..300, length in 0usize..40, put in "[{}()\\[\\]\"'#:\\\\ \n\t;@a-c]{0,6}") {
        let (language, source) = if python { ("python", PYTHON) } else { ("rust", RUST) };
        let cut = cut.min(source.len());
        let end = (cut + length).min(source.len());
        let torn = format!("{}{put}{}", &source[..cut], &source[end..]);
        extract(language, torn);
    }

    #[test]
    fn any_bytes_give_ordered_answers(bytes in prop::collection::vec(1u8.., 0..200), rust in any::<bool>()) {
        extract(if rust { "rust" } else { "python" }, bytes);
    }
}

#[test]
fn symbols_outside_a_broken_region_are_still_found() {
    let broken = RUST.replace("self.x\n", "self.x +* ;\n");
    let extraction = extract("rust", &broken);
    assert!(matches!(extraction.status, ParseStatus::Recovered { errors: 1.. }));
    assert_eq!(names(&extraction.symbols), names(&extract("rust", RUST).symbols));
    let three = definitions_named(&extraction.symbols, "m::three").unwrap()[0];
    assert!(!three.degraded);
    let broken = PYTHON.replace("x = 1\n", "x = = 1\n");
    assert!(names(&extract("python", broken).symbols).contains(&"three"));
    let broken = "fn a() {\n    if x {\n}\nfn b() {}\n";
    let extraction = extract("rust", broken);
    let found: Vec<(&str, bool)> =
        extraction.definitions().map(|symbol| (symbol.name.as_str(), symbol.degraded)).collect();
    assert_eq!(found, [("a", true), ("b", true)], "also the name in the broken region is told");
}

#[test]
fn a_broken_region_in_a_macro_is_passed_over() {
    let extraction =
        extract("rust", "thread_local! { static A: u8 = \" }\nfn b() {}\nm! { fn c( } static D: u8 = 1; }\n");
    assert!(matches!(extraction.status, ParseStatus::Recovered { .. }));
    extract("rust", "thread_local! { static A: u8 = '\\u{; fn f() { ` } }");
}

#[test]
fn diagnostics_tell_errors_missing_tokens_and_bad_bytes() {
    let mut extractor = Extractor::default();
    let found =
        extractor.diagnostics(None, b"fn a() { let = 1; }\nfn b( {}\n// \xff\n", Some("rust")).unwrap();
    let kinds: Vec<(usize, &DiagnosticKind)> =
        found.items.iter().map(|item| (item.range.start_line, &item.kind)).collect();
    assert!(
        kinds.iter().any(|(line, kind)| *line == 1 && matches!(kind, DiagnosticKind::Error { .. })),
        "{kinds:?}"
    );
    assert!(
        kinds
            .iter()
            .any(|(line, kind)| *line == 2
                && matches!(kind, DiagnosticKind::Missing { token } if token == ")")),
        "{kinds:?}"
    );
    assert!(
        kinds.iter().any(|(line, kind)| *line == 3 && **kind == DiagnosticKind::InvalidUtf8),
        "{kinds:?}"
    );
    let found = extractor.diagnostics(None, b"def f():\nx = 1\n", Some("python")).unwrap();
    assert!(!found.items.is_empty(), "a suite may not be empty");
    assert!(extractor.diagnostics(None, RUST.as_bytes(), Some("rust")).unwrap().items.is_empty());
}

#[test]
fn line_endings_marks_tabs_and_letters_are_counted_right() {
    for (language, source, name) in [("rust", RUST, "m::three"), ("python", PYTHON, "three")] {
        let plain = extract(language, source);
        let crlf = extract(language, source.replace('\n', "\r\n"));
        let marked = extract(language, format!("\u{feff}{source}"));
        let line = |extraction: &SymbolExtraction| {
            let found = definitions_named(&extraction.symbols, name).unwrap()[0].name_range;
            (found.start_line, found.start_column)
        };
        assert_eq!(line(&plain), line(&crlf));
        assert_eq!(line(&plain), line(&marked));
        assert_eq!(names(&plain.symbols), names(&crlf.symbols));
        assert_eq!(names(&plain.symbols), names(&marked.symbols));
    }
    let tabs = extract("python", "class C:\n\tdef f(self):\n\t\tpass\n");
    assert_eq!(definitions_named(&tabs.symbols, "C.f").unwrap()[0].name_range.start_column, 5);
    let letters = extract("python", "größe = 1\ndef 変数(): pass\n");
    assert_eq!(names(&letters.symbols), ["größe", "変数"]);
}

#[test]
fn bytes_that_are_no_text_are_told_or_survived() {
    let binary = extract_symbols(None, b"fn a() {}\0", Some("rust"));
    assert_eq!(binary, Err(ExtractError::Binary { at: 9 }));
    let late = [b"fn a() {}\n".repeat(1000), b"\0\nfn b() {}\n".to_vec()].concat();
    assert!(names(&extract("rust", late).symbols).contains(&"b"));
    let invalid = extract("rust", b"fn a() {}\n// \xff\xfe\nfn b() { \"\xc3\"; }\nfn c() {}\n");
    assert_eq!(names(&invalid.symbols), ["a", "b", "c"]);
    for language in ["rust", "python"] {
        assert!(extract(language, "").symbols.is_empty());
        assert!(extract(language, "\n\n").symbols.is_empty());
        assert!(extract(language, "\u{feff}").symbols.is_empty());
    }
}

#[test]
fn too_large_a_text_is_refused_before_it_is_parsed() {
    let large = b"x = 1\n".repeat(9_000_000);
    let begun = Instant::now();
    let refused = extract_symbols(None, &large, Some("python"));
    assert!(matches!(refused, Err(ExtractError::TooLarge { bytes: 54_000_000, .. })));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_parse_that_takes_too_long_ends_and_so_does_one_that_is_cancelled() {
    let large = b"x = [1, 2, (3)]\n".repeat(3_000_000);
    let limits = Limits { max_bytes: 64 << 20, max_time: Duration::from_millis(200) };
    let begun = Instant::now();
    let ended = Extractor::new(limits).extract(None, &large, Some("python"));
    assert_eq!(ended, Err(ExtractError::TimedOut(limits.max_time)));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let cancel = klbr_codeintel::Cancel::new();
    let mut extractor =
        Extractor::new(Limits { max_time: Duration::from_secs(600), ..limits }).with_cancel(cancel.clone());
    std::thread::scope(|scope| {
        let parse = scope.spawn(|| extractor.extract(None, &large, Some("python")));
        cancel.cancel();
        assert_eq!(parse.join().unwrap(), Err(ExtractError::Cancelled));
    });
    assert_eq!(names(&extract("python", "def after(): pass\n").symbols), ["after"]);
}

/// What would have every name look at all the others.
#[test]
fn the_longest_chains_take_no_longer_than_told() {
    let attributes: String = (0..12_000).map(|number| format!("        self.a{number} = 1\n")).collect();
    let texts = [
        ("rust", format!("fn f() {{ {}a }}", "a::".repeat(100_000))),
        ("python", format!("class C:\n    def f(self):\n{attributes}")),
    ];
    let limits = Limits { max_time: Duration::from_secs(1), ..Limits::default() };
    for (language, text) in texts {
        let begun = Instant::now();
        let _ = Extractor::new(limits).extract(None, text.as_bytes(), Some(language));
        assert!(begun.elapsed() < Duration::from_secs(30), "{language}: {:?}", begun.elapsed());
    }
}

/// Texts that nest by brackets, by words and signs alone, and by chains that a parser may turn into nesting.
fn nested(deep: usize) -> Vec<(&'static str, String)> {
    let nest =
        |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(deep), close.repeat(deep));
    let body = |expression: String| format!("fn f() {{ x = {expression} }}");
    let ifs: String = (0..deep.min(1000)).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    let rust = [
        body(nest("(", "1", ")")),
        nest("mod m { ", "fn f() {}", " }"),
        nest("fn f() { ", "1;", " }"),
        format!("type T = {};", nest("Vec<", "u8", ">")),
        format!("type T = {};", nest("A<u8, ", "u8", ">")),
        format!("m!{{ {} }}", nest("{", "fn f() {}", "}")),
        "fn f() { ".repeat(deep),
        "(".repeat(deep),
        body(nest("&", "1", "")),
        body(nest("!- *", "1", "")),
        body(nest("|a, b| ", "1", "")),
        body(nest("move || ", "1", "")),
        body(nest("if a {} else ", "{}", "")),
        body(nest("{ 1 } = ", "1", "")),
        body(nest("return ", "1", "")),
        body(nest("a..", "1", "")),
        body(nest("", "f", "()")),
        body(nest("", "f", ".a[0]?")),
        body(nest("", "1", " + 1")),
        body(nest("", "1", " as u8")),
        format!("fn f(x: {}) {{}}", nest("&mut *const ", "u8", "")),
        format!("fn f() {{ let {} = 1; }}", nest("&", "x", "")),
    ];
    let python = [
        nest("(", "1", ")"),
        nest("[", "1", "]"),
        nest("{1: ", "1", "}"),
        nest("lambda: ", "1", ""),
        nest("lambda a, b: ", "1", ""),
        "[".repeat(deep),
        nest("-", "1", ""),
        nest("not ", "1", ""),
        nest("1 if 1 else ", "1", ""),
        nest("1 ** ", "1", ""),
        nest("", "1", " + 1"),
        nest("", "1", " and 1"),
        nest("", "f", "()"),
        nest("", "f", ".a[0]"),
        nest("y = ", "1", ""),
        nest("f'{", "1", "}'"),
    ];
    let rust = rust.into_iter().map(|text| ("rust", text));
    let python = python.into_iter().map(|text| ("python", format!("x = {text}\n")));
    let blocks = [
        format!("{ifs}{}pass\n", " ".repeat(deep.min(1000))),
        format!("if x:\n  pass\n{}", "elif x:\n  pass\n".repeat(deep)),
    ];
    rust.chain(python).chain(blocks.map(|text| ("python", text))).collect()
}

#[test]
fn the_deepest_nesting_overflows_no_stack() {
    let limits = Limits { max_time: Duration::from_secs(2), ..Limits::default() };
    // A small stack shows a recursion that a large one would hide.
    let parse = move || {
        for (language, text) in [40, 75, 150, 10_000].into_iter().flat_map(nested) {
            match Extractor::new(limits).extract(None, text.as_bytes(), Some(language)) {
                Ok(extraction) => {
                    klbr_codeintel::outline(&extraction.symbols).to_string();
                    assert!(extraction.definitions().all(|symbol| symbol.name_path.segments().len() <= 102));
                }
                Err(error) => assert_eq!(error, ExtractError::TimedOut(limits.max_time), "{language}"),
            }
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(parse).unwrap().join().unwrap();
}
