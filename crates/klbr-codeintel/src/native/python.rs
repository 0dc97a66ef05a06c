//! Python by ruff's parser: its syntax tree, told in the same records as the walk over the general tree tells.

mod bindings;
mod depth;
mod expressions;
mod statements;

use crate::{
    range::Span,
    raw::{Def, Raws},
    walk::{Level, Walk},
};
use ruff_python_parser::{Mode, ParseOptions, parse};
use ruff_text_size::{Ranged, TextRange};

pub(super) fn raws(text: &str) -> Option<Raws> {
    if !depth::is_shallow(text) {
        return None;
    }
    let module = parse(text, ParseOptions::from(Mode::Module)).ok()?.try_into_module()?;
    let mut reader = Reader { walk: Walk::new(text.as_bytes()), too_many: false };
    reader.suite(module.suite());
    (!reader.too_many).then(|| reader.walk.finish(false))
}

struct Reader<'a> {
    walk: Walk<'a, ()>,
    /// Whether a class has more members than are quickly looked through for one.
    too_many: bool,
}

impl Reader<'_> {
    /// Writes a definition down and opens its scope.
    fn open(&mut self, def: Def) -> u32 {
        let index = self.walk.define(def);
        self.reopen(index);
        index
    }

    /// Opens the scope of a definition that is written down.
    fn reopen(&mut self, index: u32) {
        self.walk.open(Some(index));
        self.walk.chain.push(Level { kind: (), field: 0, attached: None });
    }

    fn close(&mut self) {
        self.walk.chain.pop();
        self.walk.close();
    }

    /// The first byte from `at` on that is neither blank nor in a comment.
    fn code_from(&self, at: u32) -> u32 {
        let mut at = at as usize;
        while let Some(byte) = self.walk.source.get(at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' | b'\\' => at += 1,
                b'#' => {
                    at +=
                        memchr::memchr(b'\n', &self.walk.source[at..]).unwrap_or(self.walk.source.len() - at)
                }
                _ => break,
            }
        }
        at as u32
    }
}

fn span(range: TextRange) -> Span {
    Span { start: range.start().to_u32(), end: range.end().to_u32() }
}

fn span_of(node: &impl Ranged) -> Span {
    span(node.range())
}
