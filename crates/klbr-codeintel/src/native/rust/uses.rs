//! The references of Rust: how a name is used, by the nodes that are open around it.

use super::{Event, reader::Reader};
use crate::{
    lang::rust::mentions::{captures, in_tokens, starts_upper},
    range::Span,
    symbol::SymbolKind,
};
use ra_ap_parser::{
    SyntaxKind::{self, *},
    T,
};

const PRIMITIVES: [&[u8]; 17] = [
    b"u8", b"i8", b"u16", b"i16", b"u32", b"i32", b"u64", b"i64", b"u128", b"i128", b"isize", b"usize",
    b"f32", b"f64", b"bool", b"str", b"char",
];

/// Words that are none in a macro's input, though they may be names elsewhere.
const NO_WORDS: [&[u8]; 3] = [b"default", b"union", b"gen"];

/// Whether a token of a macro's input is a name that means something there.
pub(super) fn is_word(kind: SyntaxKind, text: &[u8]) -> bool {
    kind == T![Self] || (kind == IDENT && !PRIMITIVES.contains(&text) && !NO_WORDS.contains(&text))
}

impl Reader<'_> {
    /// A name that is given: to a definition, to what a pattern binds, to an import.
    pub(super) fn name(&mut self, span: Span) {
        if (self.above(1), self.above(2)) == (IDENT_PAT, LET_STMT) {
            self.name_def(2, span);
        }
        match (self.above(1), self.above(2)) {
            (RENAME, EXTERN_CRATE) => {
                self.name_def(2, span);
                self.walk.refer(span, SymbolKind::Name);
            }
            (RENAME, _) => self.walk.refer(span, SymbolKind::Import),
            (IDENT_PAT, RECORD_PAT_FIELD) if self.frames[self.frames.len() - 3].children == 1 => {
                self.walk.refer(span, SymbolKind::Access);
            }
            // A constant in a pattern looks like a name that is bound.
            (IDENT_PAT, _) if starts_upper(self.walk.source, span) => self.walk.refer(span, SymbolKind::Name),
            (IDENT_PAT | TYPE_PARAM | CONST_PARAM | SELF_PARAM, _) => {}
            _ => self.name_def(1, span),
        }
    }

    /// A name that is used.
    pub(super) fn use_of(&mut self, span: Span) {
        let used = match self.above(1) {
            METHOD_CALL_EXPR => SymbolKind::Call,
            FIELD_EXPR | RECORD_EXPR_FIELD | RECORD_PAT_FIELD => SymbolKind::Access,
            ASSOC_TYPE_ARG => SymbolKind::Type,
            EXTERN_CRATE => {
                self.name_def(1, span);
                SymbolKind::Import
            }
            PATH_SEGMENT => match self.in_path(span) {
                Some(used) => used,
                None => return,
            },
            _ => SymbolKind::Name,
        };
        self.walk.refer(span, used);
    }

    fn in_path(&self, span: Span) -> Option<SymbolKind> {
        // The innermost path is at 2; those it qualifies are around it.
        let mut up = 2;
        while self.above(up + 1) == PATH {
            up += 1;
        }
        let last = up == 2;
        let path = &self.frames[self.frames.len() - 3];
        let qualified = path.children > 1;
        let is_generic = matches!(
            self.events.get(self.at + 2),
            Some(Event::Enter(GENERIC_ARG_LIST | PARAM_LIST | PARENTHESIZED_ARG_LIST))
        );
        let owner = self.above(up + 1);
        Some(match owner {
            USE_TREE => SymbolKind::Import,
            MACRO_CALL if last => SymbolKind::MacroCall,
            PATH_META | KEY_VALUE_META | TOKEN_TREE_META => {
                self.in_attribute(up + 1, span, qualified || !last)
            }
            _ if !last && is_generic && !qualified => SymbolKind::Type,
            _ if !last => SymbolKind::Path,
            PATH_EXPR if self.is_callee(up + 1) => SymbolKind::Call,
            PATH_EXPR | PATH_PAT | TUPLE_STRUCT_PAT | VISIBILITY | VISIBILITY_INNER if qualified => {
                SymbolKind::Path
            }
            PATH_EXPR | PATH_PAT | TUPLE_STRUCT_PAT | VISIBILITY | VISIBILITY_INNER => SymbolKind::Name,
            _ if PRIMITIVES.contains(&span.slice(self.walk.source)) => return None,
            _ => SymbolKind::Type,
        })
    }

    /// Whether the expression at that height is what a call calls.
    fn is_callee(&self, up: usize) -> bool {
        self.above(up + 1) == CALL_EXPR && self.frames[self.frames.len() - up - 2].children == 1
    }

    /// How a word is used that an attribute's item at that height begins with.
    pub(super) fn in_attribute(&self, up: usize, span: Span, in_path: bool) -> SymbolKind {
        let mut up = up + 1;
        while self.above(up) == UNSAFE_META {
            up += 1;
        }
        match self.above(up) {
            ATTR if !self.frames[self.frames.len() - up - 1].negative => SymbolKind::Decorator,
            ATTR if in_path => SymbolKind::Path,
            ATTR => SymbolKind::Name,
            // The items of a `cfg_attr` are words among others.
            _ => in_tokens(self.walk.source, span),
        }
    }

    /// A token of a macro's input.
    pub(super) fn word(&mut self, kind: SyntaxKind, span: Span) {
        let text = span.slice(self.walk.source);
        match kind {
            STRING | BYTE_STRING | C_STRING if self.above(1) == MACRO_CALL => captures(&mut self.walk, span),
            _ if self.before != T![$] && is_word(kind, text) => {
                self.walk.refer(span, in_tokens(self.walk.source, span));
            }
            _ => {}
        }
    }
}
