//! A few thousand texts that were damaged at random, in every language of the build: what the fuzz target does for hours.

use crate::{invariants::hold_for, random_edits::Random};
use klbr_codeintel::Language;

const SEED: u64 = 0x636f_6465;

/// A text of each language, so that what is damaged was once right.
fn seed(language: Language) -> &'static str {
    match language.name() {
        "rust" => {
            "/// A.\n#[cfg(unix)]\nstruct A<T> { x: T }\nimpl From<u8> for A<u8> {\n    fn from(x: u8) -> Self { let f = |y| y; A { x } }\n}\nm! { fn b() {} }\nenum E { V(u8), W { x: u8 } }\n"
        }
        "python" => {
            "@d\nclass C(B):\n    x: int = 1\n    @property\n    def p(self): return self.x\n    async def q(self):\n        self.y = [1]\nf = lambda a: (a,)\nif x:\n    def g(): pass\n"
        }
        "json" => "{\"a\": [1, {\"b\": null}], \"c\": \"x\"}\n",
        "toml" => "[a.b]\nc = 1\n[[d]]\ne = { f = \"x\" }\n",
        "yaml" => "a:\n  - b: 1\n    c: [x, y]\n",
        "markdown" => "# A\n\ntext\n\n## B\n```rust\nfn f() {}\n```\n",
        "bash" => "f() { echo \"$1\"; }\nA=1\nfunction g { f a; }\n",
        "go" => "package p\ntype T struct { x int }\nfunc (t *T) M() int { return t.x }\n",
        "java" => "class A { int x; A() {} void m() { n(); } enum E { V } }\n",
        "c" | "cpp" => "struct s { int x; };\n#define M 1\nint f(int a) { return g(a); }\ntypedef int t;\n",
        _ => "class A { x = 1; m() { return this.x; } }\nconst f = (a) => a;\nexport function g() {}\n",
    }
}

#[test]
fn damaged_texts_break_no_rule() {
    const PIECES: &[&[u8]] = &[
        b"{",
        b"}",
        b"(",
        b")",
        b"[",
        b"]",
        b"\"",
        b"'",
        b"\n",
        b"\r\n",
        b"\t",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        "π".as_bytes(),
        b"#",
        b"::",
        b"/*",
        b"`",
    ];
    let mut random = Random(SEED);
    for (number, language) in Language::ALL.iter().enumerate() {
        let whole = seed(*language).as_bytes();
        hold_for(&[&[number as u8], whole].concat());
        for round in 0..400 {
            let mut text = whole.to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(text.len() + 1);
                let end = (at + random.below(12)).min(text.len());
                match random.below(3) {
                    0 => drop(text.drain(at..end)),
                    1 => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
                    _ => {
                        let piece = text[at..end].to_vec();
                        let to = random.below(text.len() + 1);
                        text.splice(to..to, piece);
                    }
                }
            }
            println!("{language} {round}: {:?}", String::from_utf8_lossy(&text));
            hold_for(&[&[number as u8], text.as_slice()].concat());
        }
    }
}
