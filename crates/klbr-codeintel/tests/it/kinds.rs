//! One fixture per kind of symbol, and how each kind of mention is told.

#[path = "kinds/fixtures.rs"]
pub(crate) mod fixtures;

use fixtures::FIXTURES;
use klbr_codeintel::{
    CodeSymbol, SymbolKind, SymbolRole, definitions_named, extract_symbols, outline, references_named,
    symbol_at,
};

fn extract(language: &str, source: &str) -> Vec<CodeSymbol> {
    extract_symbols(None, source, Some(language)).unwrap().symbols
}

#[test]
fn each_kind_is_found_where_it_stands() {
    for fixture in FIXTURES {
        let symbols = extract(fixture.language, fixture.source);
        let kind = SymbolKind::parse(fixture.kind).unwrap();
        let of_kind = symbols.iter().filter(|symbol| symbol.kind == kind);
        let found: Vec<String> = of_kind
            .map(|symbol| symbol.name_path.to_string().split('#').next().unwrap().to_owned())
            .collect();
        let found: Vec<&str> = found.iter().map(|path| if path == "r" { "r#match" } else { path }).collect();
        assert_eq!(found, fixture.paths, "{} {}", fixture.language, fixture.shows);
        for symbol in symbols {
            let name = &fixture.source[symbol.name_range.bytes()];
            assert!(
                symbol.kind == SymbolKind::Impl
                    || symbol.kind == SymbolKind::ExternBlock
                    || name == symbol.name
            );
            assert!(symbol.attached_range.start_byte <= symbol.range.start_byte);
            assert!(
                symbol.range.start_byte <= symbol.name_range.start_byte
                    && symbol.name_range.end_byte <= symbol.range.end_byte
            );
        }
    }
}

#[test]
fn every_defining_kind_of_the_two_languages_has_a_fixture() {
    use SymbolKind::{Constructor, Heading, Interface, Key};
    let others = [Constructor, Heading, Interface, Key];
    for kind in
        SymbolKind::ALL.iter().filter(|kind| kind.role() == SymbolRole::Definition && !others.contains(kind))
    {
        assert!(FIXTURES.iter().any(|fixture| fixture.kind == kind.as_str()), "{kind}");
    }
}

#[test]
fn ranges_hold_what_belongs_to_the_symbol() {
    let source = "use a;\n\n/// Doc one.\n///\n/// Doc two.\n#[inline]\n// aside\npub fn f<T>(t: T) -> T\nwhere\n    T: Copy,\n{\n    t\n}\n";
    let symbols = extract("rust", source);
    let f = definitions_named(&symbols, "f").unwrap()[0];
    assert!(source[f.attached_range.bytes()].starts_with("/// Doc one."));
    assert!(source[f.range.bytes()].starts_with("pub fn f<T>"));
    assert_eq!(&source[f.body_range.unwrap().bytes()], "{\n    t\n}");
    assert_eq!(f.docs.as_deref(), Some("Doc one.\n\nDoc two."));
    assert_eq!(f.signature.as_deref(), Some("pub fn f<T>(t: T) -> T where T: Copy,"));
    let source = "class C:\n    @a\n    @b(1)\n    def f(self) -> int:\n        \"\"\"Says.\n\n        More.\n        \"\"\"\n        return 1\n";
    let symbols = extract("python", source);
    let f = definitions_named(&symbols, "C.f").unwrap()[0];
    assert!(source[f.attached_range.bytes()].starts_with("@a\n    @b(1)\n    def f"));
    assert!(source[f.range.bytes()].starts_with("def f"));
    assert!(source[f.body_range.unwrap().bytes()].starts_with("\"\"\"Says."));
    assert_eq!(f.docs.as_deref(), Some("Says.\n\nMore."));
    assert_eq!(f.container.as_ref().unwrap().to_string(), "C");
}

#[test]
fn each_mention_tells_how_the_name_is_used() {
    let rust = "use std::io::Read as R;\n#[derive(Debug)]\nstruct S<T: Copy>(T);\nfn f(s: S<u8>) {\n    g(s.field);\n    m::h::<u8>();\n    s.call();\n    let v = other;\n    mac!(inner(x), y.z);\n    println!(\"{captured}\");\n}\n";
    check(
        "rust",
        rust,
        &[
            ("Read", "import"),
            ("R", "import"),
            ("Debug", "type"),
            ("Copy", "type"),
            ("S", "type"),
            ("g", "call"),
            ("field", "access"),
            ("h", "call"),
            ("m", "path"),
            ("call", "call"),
            ("other", "name"),
            ("mac", "macro_call"),
            ("inner", "call"),
            ("z", "access"),
            ("captured", "name"),
        ],
    );
    let python = "import os.path as p\nfrom m import thing\n@deco(arg)\nclass C(Base):\n    x: 'Later[Other]'\n    def f(self, n: int) -> Ret:\n        call(self.attr)\n        self.method()\n        return value\n";
    check(
        "python",
        python,
        &[
            ("path", "import"),
            ("thing", "import"),
            ("deco", "decorator"),
            ("arg", "name"),
            ("Base", "type"),
            ("Later", "annotation"),
            ("Other", "annotation"),
            ("int", "annotation"),
            ("Ret", "annotation"),
            ("call", "call"),
            ("attr", "access"),
            ("method", "call"),
            ("value", "name"),
        ],
    );
}

fn check(language: &str, source: &str, wanted: &[(&str, &str)]) {
    let symbols = extract(language, source);
    for (name, kind) in wanted {
        let found: Vec<&str> =
            references_named(&symbols, name).unwrap().iter().map(|symbol| symbol.kind.as_str()).collect();
        assert!(found.contains(kind), "{language} {name}: {found:?}, not {kind}");
    }
}

#[test]
fn references_are_matched_by_name_and_by_the_path_as_written() {
    let symbols = extract("rust", "fn f() { a::b::run(); c::run(); run(); }");
    assert_eq!(references_named(&symbols, "run").unwrap().len(), 3);
    assert_eq!(references_named(&symbols, "b::run").unwrap().len(), 1);
    assert_eq!(
        references_named(&symbols, "a::b::run").unwrap()[0].container.as_ref().unwrap().to_string(),
        "f"
    );
}

#[test]
fn the_symbol_at_a_place_is_the_innermost() {
    let source = "mod m {\n    /// Doc.\n    fn f() {\n        1;\n    }\n}\n";
    let symbols = extract("rust", source);
    let at = |text: &str| symbol_at(&symbols, source.find(text).unwrap()).map(|symbol| symbol.name.as_str());
    assert_eq!(at("1;"), Some("f"));
    assert_eq!(at("/// Doc"), Some("f"));
    assert_eq!(at("}\n}"), Some("f"));
    assert_eq!(at("mod"), Some("m"));
    assert_eq!(symbol_at(&symbols, source.len()).map(|symbol| &symbol.name), None);
}

#[test]
fn an_outline_is_a_tree_with_lines() {
    let source = "/// Doc.\nstruct S { x: u8 }\n\nimpl S {\n    fn a(&self) {\n        fn inner() {}\n    }\n    fn b() {}\n}\nfn free() {}\n";
    let text = outline(&extract("rust", source)).to_string();
    expect_test::expect![[r#"
        1-2        struct       struct S
        2            field        x: u8
        4-9        impl         impl S
        5-7          method       fn a(&self)
        6              function     fn inner()
        8            method       fn b()
        10         function     fn free()
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_symbol_on_the_wire_keeps_its_words() {
    let symbols = extract("rust", "impl S {\n    fn f() {}\n}\n");
    let json = serde_json::to_value(&symbols[2]).unwrap();
    assert_eq!(json["name_path"], "impl S::f");
    assert_eq!((&json["kind"], &json["role"]), (&"method".into(), &"definition".into()));
    assert_eq!(serde_json::from_value::<CodeSymbol>(json).unwrap(), symbols[2]);
}
