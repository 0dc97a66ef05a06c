//! The languages behind features: the common forms of each.

use klbr_codeintel::extract_symbols;

fn check(language: &str, source: &str, wanted: &[&str]) {
    let extraction = match extract_symbols(None, source, Some(language)) {
        Ok(extraction) => extraction,
        Err(error) => return println!("SKIPPED: {error}"),
    };
    let found: Vec<String> =
        extraction.definitions().map(|symbol| format!("{} {}", symbol.kind, symbol.name_path)).collect();
    assert_eq!(found, wanted, "{language}");
}

fn check_mentions(language: &str, source: &str, wanted: &[&str]) {
    let Ok(extraction) = extract_symbols(None, source, Some(language)) else { return };
    let found: Vec<String> =
        extraction.references().map(|symbol| format!("{} {}", symbol.kind, symbol.name)).collect();
    for mention in wanted {
        assert!(found.iter().any(|found| found == mention), "{language} {mention}: {found:?}");
    }
}

#[test]
fn javascript_and_typescript() {
    let common = "import { a } from 'b';\nfunction f() { const local = 1; }\nclass C { constructor() { this.go(); } m() {} get v() { return 1; } x = 1; h = () => 1; }\nconst LIMIT = 1;\nlet other = new C();\nconst arrow = (x) => f(x);\n";
    let wanted = [
        "function f",
        "class C",
        "constructor C::constructor",
        "method C::m",
        "property C::v",
        "field C::x",
        "lambda C::h",
        "constant LIMIT",
        "variable other",
        "lambda arrow",
    ];
    check("javascript", common, &wanted);
    check("typescript", common, &wanted);
    check_mentions("javascript", common, &["import a", "call go", "call C", "call f"]);
    let typed = "interface I { m(): void; p: string }\ntype T = I;\nenum E { A = 1 }\nnamespace N { export function g(t: T): void {} }\n";
    check(
        "typescript",
        typed,
        &[
            "interface I",
            "method I::m",
            "field I::p",
            "type_alias T",
            "enum E",
            "variant E::A",
            "module N",
            "function N::g",
        ],
    );
    check_mentions("typescript", typed, &["type I", "type T"]);
    check("tsx", "function App() { return <div>{f(1)}</div>; }\n", &["function App"]);
}

#[test]
fn go() {
    let source = "package p\nimport \"fmt\"\nconst K = 1\nvar V int\ntype S struct { a int }\ntype I interface { M() }\ntype A = S\nfunc (s S) Get() int { x := s.a; return g(x) }\nfunc F() { fmt.Println(K) }\n";
    check(
        "go",
        source,
        &[
            "constant K",
            "variable V",
            "struct S",
            "field S::a",
            "interface I",
            "method I::M",
            "type_alias A",
            "method Get",
            "function F",
        ],
    );
    check_mentions("go", source, &["call g", "call Println", "access a", "type S", "name K"]);
}

#[test]
fn c_and_cpp() {
    let source = "#define LIMIT 1\n#define TWICE(x) (2 * (x))\nstruct s { int a; };\nenum e { ONE };\ntypedef struct s alias;\nint proto(int);\nstatic int *global;\nint main(void) { int local = proto(LIMIT); return local; }\n";
    check(
        "c",
        source,
        &[
            "macro LIMIT",
            "macro TWICE",
            "struct s",
            "field s::a",
            "enum e",
            "variant e::ONE",
            "type_alias alias",
            "function proto",
            "variable global",
            "function main",
        ],
    );
    check_mentions("c", source, &["call proto", "name LIMIT", "type s"]);
    let source = "namespace n { class C { public: C(); int get() const { return v; } int v; }; }\nint n::C::other() { return 1; }\nusing A = n::C;\ntemplate <class T> T pass(T t) { return t; }\n";
    check(
        "cpp",
        source,
        &[
            "module n",
            "class n::C",
            "field n::C::C",
            "method n::C::get",
            "field n::C::v",
            "function other",
            "type_alias A",
            "function pass",
        ]
        .map(|name| if name == "field n::C::C" { "method n::C::C" } else { name }),
    );
}

#[test]
fn java() {
    let source = "import a.B;\nclass C extends B { int x; C() { run(); } int get() { int local = 1; return local; } }\ninterface I { void m(); }\nenum E { ONE }\nrecord R(int a) {}\n";
    check(
        "java",
        source,
        &[
            "class C",
            "field C::x",
            "constructor C::C",
            "method C::get",
            "interface I",
            "method I::m",
            "enum E",
            "variant E::ONE",
            "class R",
        ],
    );
    check_mentions("java", source, &["import B", "type B", "call run"]);
}

#[test]
fn bash() {
    let source = "NAME=1\nrun() { local x=2; other \"$NAME\"; }\nfunction go { run; }\n";
    check("bash", source, &["variable NAME", "function run", "function go"]);
    check_mentions("bash", source, &["call run", "name NAME"]);
}

#[test]
fn data_and_documents() {
    check("json", "{\"a\": {\"b.c\": [1]}}", &["key a", "key a::`b.c`"]);
    check(
        "toml",
        "top = 1\n[a.b]\nc = 2\n[[d]]\ne = 3\n",
        &["key top", "key `a.b`", "key `a.b`::c", "key d", "key d::e"],
    );
    check("yaml", "a:\n  b: 1\nc: {d: 2}\n", &["key a", "key a::b", "key c", "key c::d"]);
    check(
        "markdown",
        "# One\n\ntext\n\n## Two\n\n# Three\n",
        &["heading One", "heading One::Two", "heading Three"],
    );
}
