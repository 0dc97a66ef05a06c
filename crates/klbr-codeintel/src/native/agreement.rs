//! What both parsers of a language tell of the same texts: over every file that both read without fault.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test may fail and must say how it went")]

use super::raws;
use crate::{
    extract::Extractor,
    index::Prefilter,
    language::Language,
    parse::Limits,
    range::Span,
    raw::{Def, Raws},
    symbol::SymbolRole,
};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

#[path = "../../tests/it/truth/corpus.rs"]
#[allow(dead_code, reason = "the other proofs use more of it")]
mod corpus;

/// What both parsers tell of a text, as far as they differ.
#[derive(Default)]
struct Tally {
    files: usize,
    native: usize,
    bytes: usize,
    native_bytes: usize,
    defs: usize,
    refs: usize,
    differ: BTreeMap<&'static str, Vec<String>>,
}

fn shown(def: &Def, source: &[u8], defs: &[Def]) -> String {
    let container = def.container.map(|container| defs[container as usize].name(source).into_owned());
    format!(
        "{} {:?} name {:?} range {:?} attached {} body {:?} docs {:?} in {container:?} via {:?}",
        def.name(source),
        def.kind,
        def.name,
        def.range,
        def.attached,
        def.body,
        def.docs,
        def.via_macro
    )
}

impl Tally {
    fn compare(&mut self, language: Language, file: &PathBuf) {
        let Ok(source) = std::fs::read(file) else { return };
        self.files += 1;
        self.bytes += source.len();
        let Some(own) = raws(language, &source) else { return };
        self.native += 1;
        self.native_bytes += source.len();
        let limits = Limits { max_time: Duration::from_secs(60), ..Limits::default() };
        let Ok(parsed) = Extractor::new(limits).parsed(language, &source) else { return };
        if !parsed.raws.problems.is_empty() {
            self.differ.entry("read by one alone").or_default().push(file.display().to_string());
            return;
        }
        let other = parsed.raws;
        // A part of them: each is looked for in the whole text.
        for def in own.defs.iter().step_by(1 + own.defs.len() / 32) {
            let name = def.name(&source);
            let may_hold = Prefilter::new(&name, SymbolRole::Definition).may_hold(language, &source);
            assert!(may_hold, "{}: a lookup would pass over {name}", file.display());
        }
        self.defs += other.defs.len();
        self.refs += other.refs.len();
        if own.defs == other.defs && own.refs == other.refs {
            return;
        }
        let line =
            |span: Span| 1 + source[..span.start as usize].iter().filter(|byte| **byte == b'\n').count();
        let facts = |defs: &[Def]| -> BTreeMap<(Span, String), (Span, &'static str)> {
            defs.iter().map(|def| ((def.name, shown(def, &source, defs)), (def.name, "def"))).collect()
        };
        let (mine, theirs) = (facts(&own.defs), facts(&other.defs));
        for (title, some, rest) in [("def only native", &mine, &theirs), ("def only tree", &theirs, &mine)] {
            for ((span, text), _) in some.iter().filter(|(fact, _)| !rest.contains_key(*fact)) {
                let place = format!("{}:{} {text}", file.display(), line(*span));
                self.differ.entry(title).or_default().push(place);
            }
        }
        let facts = |raws: &Raws| -> BTreeMap<(Span, String), ()> {
            raws.refs
                .iter()
                .map(|it| {
                    let container = it.container.map(|at| raws.defs[at as usize].name(&source).into_owned());
                    ((it.name, format!("{} {:?} in {container:?}", it.name.text(&source), it.kind)), ())
                })
                .collect()
        };
        let (mine, theirs) = (facts(&own), facts(&other));
        for (title, some, rest) in [("ref only native", &mine, &theirs), ("ref only tree", &theirs, &mine)] {
            for (span, text) in some.keys().filter(|fact| !rest.contains_key(*fact)) {
                let place = format!("{}:{} {text}", file.display(), line(*span));
                self.differ.entry(title).or_default().push(place);
            }
        }
        if own.defs.len() == other.defs.len()
            && own.defs.iter().zip(&other.defs).any(|(own, other)| own.name != other.name)
        {
            self.differ.entry("order").or_default().push(file.display().to_string());
        }
    }

    /// Prints how far both agree, and fails where they do not.
    fn judge(&self, language: Language) {
        println!(
            "{language}: {} of {} files, {:.1} of {:.1} MB read natively; {} definitions, {} references",
            self.native,
            self.files,
            self.native_bytes as f64 / 1e6,
            self.bytes as f64 / 1e6,
            self.defs,
            self.refs
        );
        for (title, list) in &self.differ {
            println!("  {title}: {}", list.len());
            let step = (list.len() / 40).max(1);
            list.iter().step_by(step).for_each(|line| println!("    {line}"));
        }
        let count = |title| self.differ.get(title).map_or(0, Vec::len);
        assert!(self.native * 100 >= self.files * 95, "too few files are read natively");
        assert!(
            count("def only native") + count("def only tree") <= self.defs / 10_000,
            "definitions differ"
        );
        // The general parser takes keywords and lifetimes in a macro's input for names.
        assert!(count("ref only native") <= self.refs / 10_000, "references differ");
        assert!(count("ref only tree") <= self.refs / 200, "references differ");
        assert_eq!(count("order"), 0, "definitions stand in another order");
    }
}

#[test]
fn both_parsers_tell_the_same_of_rust() {
    let mut tally = Tally::default();
    let files: Vec<PathBuf> = corpus::crates().iter().flat_map(|root| corpus::files(root, "rs")).collect();
    // A quarter suffices: the proof against `syn` goes over all of them.
    for file in corpus::share(files).iter().step_by(4) {
        tally.compare(Language::Rust, file);
    }
    tally.judge(Language::Rust);
}

#[test]
fn both_parsers_tell_the_same_of_python() {
    let Some(library) = corpus::standard_library() else { return corpus::skip("no python3") };
    let mut tally = Tally::default();
    for file in corpus::share(corpus::files(&library, "py")) {
        tally.compare(Language::Python, &file);
    }
    tally.judge(Language::Python);
}

#[test]
fn both_parsers_tell_the_same_of_what_is_written_seldom() {
    let rust = [
        "extern crate self as own;\nextern crate alloc as std_alloc;\nextern crate core;\n",
        "#[inline]\n/// Doc.\n#[cfg(unix)]\n// Plain.\npub fn f() { x.0.1.y(z.2) }\n",
        "fn f() { let mut g: fn(u8) -> u8 = move |a| -> u8 { a }; let h = |X| X; let (i, j) = || 1; }\n",
        "impl !Send for S {}\nimpl<T> From<a::B<T>> for S<T> { type X = u8; const C: u8 = 1; }\n",
        "unsafe extern \"C\" { pub static mut A: u8; fn f(...); }\nextern { type T; }\n",
        "macro_rules! m { ($a:ident) => { fn $a() { inner(x) } }; }\nm!(b);\n",
        "thread_local! { static D: u8 = 0; }\nfn f() { cfg_if! { if #[cfg(unix)] { mod u { fn g() {} } } } }\n",
        "fn f() { #[allow(dead_code)] a::b::<T>(c); println!(\"{x} {y:?}\"); let S { k, l: m, .. } = s; }\n",
        "use a::{b as c, d::*, self};\nenum E { A = 1, B { x: u8 }, C(u8) }\nunion U { a: u8 }\n",
        "fn f(x: impl Fn(A) -> B) where for<'a> &'a T: Tr<Item = u8> { match x { A | B::C(_) if g => {} } }\n",
        "const _: () = { fn inner() {} };\npub(in crate::a) struct S<const N: usize = 1>([u8; N]);\n",
    ];
    let python = [
        "def f():\n    pass  # same line\n    # as deep\n  # less deep\n# top\nclass C: pass;  # one line\n",
        "@a.b(c)\n# between\n@property\ndef f(self): return x\n",
        "class C(a.B, metaclass=M):\n    '''Doc.'''\n    x: int = 1\n    def m(self):\n        self.y = self.z, w = 1, 2\n",
        "f = (\n  lambda a, b=c: (a)\n)\ng = h = lambda: 0\n(i, *j), [k] = l\n",
        "def f[T: (int, str), *U](x: 'List[T]' = y, *a: T, **k: \"U\") -> Literal['v']: ...\n",
        "type A = int\ntype B[T] = list[T]\nimport a.b as c, d\nfrom . import e as g\nfrom __future__ import h\n",
        "with a(b) as c, d as e.f: pass\nfor x, (y, z.w) in v: pass\ndel x, y[0]\nglobal q\n",
        "match x:\n    case A.B | C(d): pass\n    case {'k': v}: pass\n",
        "f'{x!r:>{w}} {y=}'\n[i for i in j if k for l in m]\n(n := o)\n(p)(q)\n",
        "async def f():\n    async with a: await b\n    return lambda *a, k=1: yield_\n",
    ];
    let rust = rust.map(|text| (Language::Rust, text));
    let mut faults = Vec::new();
    for (language, text) in rust.into_iter().chain(python.map(|text| (Language::Python, text))) {
        let own = raws(language, text.as_bytes()).unwrap_or_else(|| panic!("is without fault: {text}"));
        let other = Extractor::default().parsed(language, text.as_bytes()).unwrap().raws;
        faults.extend(other.problems.iter().map(|problem| format!("{text}: {problem:?}")));
        for (own, other) in [(&own, &other), (&other, &own)] {
            let defs = own.defs.iter().filter(|def| !other.defs.contains(def));
            faults.extend(defs.map(|def| format!("{text}: {def:?}")));
            let refs = own.refs.iter().filter(|mention| !other.refs.contains(mention));
            faults.extend(refs.map(|it| format!("{text}: {} {it:?}", it.name.text(text.as_bytes()))));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
