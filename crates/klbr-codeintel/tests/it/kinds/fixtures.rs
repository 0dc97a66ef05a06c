//! One text for each kind of symbol, with the names that must be found in it as definitions of that kind.

/// A kind's text: what it shows, its language, the text, the paths expected.
pub(crate) struct Fixture {
    pub(crate) kind: &'static str,
    pub(crate) shows: &'static str,
    pub(crate) language: &'static str,
    pub(crate) source: &'static str,
    pub(crate) paths: &'static [&'static str],
}

const fn rust(
    kind: &'static str,
    shows: &'static str,
    source: &'static str,
    paths: &'static [&'static str],
) -> Fixture {
    Fixture { kind, shows, language: "rust", source, paths }
}

const fn python(
    kind: &'static str,
    shows: &'static str,
    source: &'static str,
    paths: &'static [&'static str],
) -> Fixture {
    Fixture { kind, shows, language: "python", source, paths }
}

pub(crate) const FIXTURES: &[Fixture] = &[
    rust(
        "function",
        "free, async, const, unsafe, extern",
        "fn one() {}\npub async fn two() {}\nconst fn three() {}\nunsafe extern \"C\" fn four() {}\n",
        &["one", "two", "three", "four"],
    ),
    rust(
        "function",
        "in a module: a function, no method",
        "mod m {\n    pub fn inner() {}\n}\n",
        &["m::inner"],
    ),
    rust(
        "function",
        "nested in a function",
        "fn outer() {\n    fn nested() {}\n}\n",
        &["outer", "outer::nested"],
    ),
    rust(
        "function",
        "with generics and a where clause",
        "fn generic<T, const N: usize>(t: [T; N]) -> T\nwhere\n    T: Clone,\n{\n    t[0].clone()\n}\n",
        &["generic"],
    ),
    rust("function", "raw and non-ASCII names", "fn r#match() {}\nfn größe() {}\n", &["r#match", "größe"]),
    rust(
        "function",
        "declared in an extern block",
        "extern \"C\" {\n    fn puts(s: *const u8) -> i32;\n}\n",
        &["puts"],
    ),
    rust(
        "method",
        "of a type",
        "struct S;\nimpl S {\n    fn new() -> S { S }\n    fn get(&self) {}\n}\n",
        &["impl S::new", "impl S::get"],
    ),
    rust(
        "method",
        "of a trait for a type",
        "impl From<u8> for S {\n    fn from(n: u8) -> S { S }\n}\nimpl From<u16> for S {\n    fn from(n: u16) -> S { S }\n}\n",
        &["impl From<u8> for S::from", "impl From<u16> for S::from"],
    ),
    rust(
        "method",
        "of a generic type",
        "impl<T: Copy> Wrap<T>\nwhere\n    T: Clone,\n{\n    fn take(self) -> T { self.0 }\n}\n",
        &["impl Wrap<T>::take"],
    ),
    rust(
        "method",
        "without a body, and with one, in a trait",
        "trait T {\n    fn must(&self) -> u8;\n    fn may(&self) {}\n}\n",
        &["T::must", "T::may"],
    ),
    rust(
        "struct",
        "with fields, tuple, unit, generic",
        "struct A { x: u8 }\nstruct B(u8);\nstruct C;\nstruct D<T>(T) where T: Copy;\n",
        &["A", "B", "C", "D"],
    ),
    rust(
        "field",
        "of a struct, a union, a variant",
        "struct A { x: u8, pub y: u16 }\nunion U { f: u32 }\nenum E { V { z: u8 } }\n",
        &["A::x", "A::y", "U::f", "E::V::z"],
    ),
    rust(
        "enum",
        "plain and generic",
        "enum E { A }\npub enum Either<L, R> { Left(L), Right(R) }\n",
        &["E", "Either"],
    ),
    rust(
        "variant",
        "unit, tuple, struct, with a discriminant",
        "enum E { A, B(u8), C { x: u8 }, D = 4 }\n",
        &["E::A", "E::B", "E::C", "E::D"],
    ),
    rust("union", "a union", "union U { f: u32, g: f32 }\n", &["U"]),
    rust(
        "trait",
        "plain, unsafe, generic",
        "trait A {}\nunsafe trait B: A {}\npub trait C<T> where T: Copy {}\n",
        &["A", "B", "C"],
    ),
    rust(
        "associated_type",
        "in a trait and in an impl",
        "trait T { type Out; }\nimpl T for S { type Out = u8; }\n",
        &["T::Out", "impl T for S::Out"],
    ),
    rust(
        "associated_const",
        "in a trait and in an impl",
        "trait T { const N: u8; }\nimpl T for S { const N: u8 = 1; }\n",
        &["T::N", "impl T for S::N"],
    ),
    rust(
        "constant",
        "a const item, an unnamed one too",
        "pub const LIMIT: usize = 8;\nconst _: () = ();\n",
        &["LIMIT", "_"],
    ),
    rust(
        "static",
        "plain, mutable, foreign",
        "static A: u8 = 0;\nstatic mut B: u8 = 0;\nextern \"C\" { static C: u8; }\n",
        &["A", "B", "C"],
    ),
    rust(
        "type_alias",
        "plain, generic, foreign",
        "type Short = u8;\ntype Many<T> = Vec<T>;\nextern \"C\" { type Opaque; }\n",
        &["Short", "Many", "Opaque"],
    ),
    rust(
        "module",
        "inline, nested, in a file of its own",
        "mod a {\n    pub mod b {}\n}\nmod elsewhere;\n",
        &["a", "a::b", "elsewhere"],
    ),
    rust("macro", "by rules", "macro_rules! square {\n    ($x:expr) => { $x * $x };\n}\n", &["square"]),
    rust(
        "closure",
        "bound to a name",
        "fn f() {\n    let twice = |x: u8| x * 2;\n    let mut count = move || 1;\n}\n",
        &["f::twice", "f::count"],
    ),
    rust(
        "impl",
        "of a type, of a trait, negative",
        "impl S {}\nimpl<T> Clone for Wrap<T> {}\nimpl !Send for S {}\n",
        &["impl S", "impl Clone for Wrap<T>", "impl !Send for S"],
    ),
    rust(
        "extern_block",
        "an extern block",
        "extern \"C\" {\n    fn puts(s: *const u8);\n}\n",
        &["extern \"C\""],
    ),
    rust(
        "extern_crate",
        "plain and renamed",
        "extern crate alloc;\nextern crate core as base;\n",
        &["alloc", "base"],
    ),
    rust(
        "static",
        "in an item-like macro",
        "thread_local! {\n    static DEPTH: u8 = 0;\n    pub static NAME: u8 = { 1 };\n}\n",
        &["DEPTH", "NAME"],
    ),
    rust(
        "struct",
        "in an item-like macro",
        "bitflags! {\n    /// Doc.\n    pub struct Flags: u32 {\n        const A = 1;\n    }\n}\n",
        &["Flags"],
    ),
    rust(
        "function",
        "in a conditional macro",
        "cfg_if::cfg_if! {\n    if #[cfg(unix)] {\n        fn here() {}\n    } else {\n        fn there() {}\n    }\n}\n",
        &["here", "there"],
    ),
    rust(
        "function",
        "twins under cfg",
        "#[cfg(unix)]\nfn open() {}\n#[cfg(windows)]\nfn open() {}\n",
        &["open[cfg(unix)]", "open[cfg(windows)]"],
    ),
    python(
        "function",
        "plain, async, with type parameters",
        "def one(): pass\nasync def two(): pass\ndef three[T](t: T) -> T: return t\n",
        &["one", "two", "three"],
    ),
    python(
        "function",
        "nested and decorated",
        "def outer():\n    @wraps\n    def nested(): pass\n",
        &["outer", "outer::nested"],
    ),
    python(
        "function",
        "conditional",
        "if fast:\n    def run(): return 1\nelse:\n    def run(): return 2\ntry:\n    pass\nexcept Error:\n    def fall(): pass\n",
        &["run", "run", "fall"],
    ),
    python(
        "function",
        "overloads and their implementation",
        "@overload\ndef f(a: int) -> int: ...\ndef f(a): return a\n",
        &["f[overload]", "f"],
    ),
    python(
        "method",
        "plain, async, dunder, conditional",
        "class C:\n    def plain(self): pass\n    async def later(self): pass\n    def __len__(self): return 0\n    if x:\n        def maybe(self): pass\n",
        &["C::plain", "C::later", "C::__len__", "C::maybe"],
    ),
    python(
        "static_method",
        "a static method",
        "class C:\n    @staticmethod\n    def make(): pass\n",
        &["C::make"],
    ),
    python(
        "class_method",
        "a class method",
        "class C:\n    @classmethod\n    def of(cls): pass\n",
        &["C::of"],
    ),
    python(
        "property",
        "getter, setter, deleter, cached",
        "class C:\n    @property\n    def v(self): return 1\n    @v.setter\n    def v(self, n): pass\n    @v.deleter\n    def v(self): pass\n    @functools.cached_property\n    def w(self): return 1\n",
        &["C::v[getter]", "C::v[setter]", "C::v[deleter]", "C::w"],
    ),
    python(
        "class",
        "plain, derived, nested, decorated",
        "class A: pass\n@dataclass\nclass B(A, metaclass=M):\n    class Inner: pass\n",
        &["A", "B", "B::Inner"],
    ),
    python(
        "attribute",
        "of a class, annotated or not, of a tuple",
        "class C:\n    one = 1\n    two: int\n    three, four = 3, 4\n",
        &["C::one", "C::two", "C::three", "C::four"],
    ),
    python(
        "attribute",
        "of an instance",
        "class C:\n    def __init__(self, n):\n        self.n = n\n        self.m: int = 0\n",
        &["C::n", "C::m"],
    ),
    python(
        "variable",
        "of a module, annotated, several at once",
        "one = 1\ntwo: int = 2\nthree, (four, *rest) = 3, [4]\nfive = six = 0\nif x:\n    seven = 7\n",
        &["one", "two", "three", "four", "rest", "five", "six", "seven"],
    ),
    python(
        "constant",
        "names in capitals",
        "LIMIT = 8\nclass C:\n    MAX_SIZE = 1\n",
        &["LIMIT", "C::MAX_SIZE"],
    ),
    python(
        "type_alias",
        "plain and generic",
        "type Short = int\ntype Many[T] = list[T]\n",
        &["Short", "Many"],
    ),
    python(
        "lambda",
        "bound to a name",
        "twice = lambda x: x * 2\ndef f():\n    inner = (lambda: 1)\n",
        &["twice", "f::inner"],
    ),
];
