//! The references of Rust: how an identifier is used, by where it stands.

use super::{Kind, Rust};
use crate::{range::Span, symbol::SymbolKind, walk::Walk};
use tree_sitter::Node;

impl Rust {
    pub(super) fn mention(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, kind: Kind, field: u16) {
        let span = Span::of(node);
        let Some(parent) = walk.level(0) else { return };
        if span.slice(walk.source) == b"_" {
            return;
        }
        if parent.kind == Kind::TokenTree {
            return match kind {
                Kind::Identifier => walk.refer(span, in_tokens(walk.source, span)),
                Kind::StringLiteral if self.is_argument(walk) => captures(walk, span),
                _ => {}
            };
        }
        let fields = &self.fields;
        let defines = matches!(
            parent.kind,
            Kind::Function
                | Kind::Struct
                | Kind::Enum
                | Kind::Union
                | Kind::Trait
                | Kind::Module
                | Kind::Variant
                | Kind::Field
                | Kind::Const
                | Kind::Static
                | Kind::TypeItem
                | Kind::AssociatedType
                | Kind::MacroDefinition
                | Kind::TypeParameter
        );
        if field == fields.name && defines {
            return;
        }
        let used = match kind {
            Kind::StringLiteral => return,
            Kind::TypeIdentifier => SymbolKind::Type,
            Kind::FieldIdentifier => match parent.kind {
                Kind::FieldExpression if self.is_callee(walk, field) => SymbolKind::Call,
                _ => SymbolKind::Access,
            },
            Kind::ShorthandField => SymbolKind::Access,
            _ if self.binds(walk, field) && !starts_upper(walk.source, span) => return,
            _ if field == fields.macro_ => SymbolKind::MacroCall,
            _ if self.is_callee(walk, field) => SymbolKind::Call,
            _ if walk.chain.iter().rev().any(|level| level.kind == Kind::Use) => SymbolKind::Import,
            _ if walk.chain.iter().rev().take(4).any(|level| level.kind == Kind::AttributeItem) => {
                SymbolKind::Decorator
            }
            _ => match parent.kind {
                Kind::Scoped => self.scoped(walk, field),
                Kind::ExternCrate if field == fields.name => SymbolKind::Import,
                _ => SymbolKind::Name,
            },
        };
        walk.refer(span, used);
    }

    fn binds(&self, walk: &Walk<'_, Kind>, field: u16) -> bool {
        match walk.ancestor(0) {
            // In `Name(inner)` the name is the pattern's type, behind `if` it is an arm's guard; in `a @ b`, `ref a`,
            // `(a, b)` all bind.
            Some(Kind::Pattern) => field != self.fields.type_ && field != self.fields.condition,
            Some(Kind::Let | Kind::Binder) => field == self.fields.pattern,
            _ => false,
        }
    }

    /// Whether the identifier in that field of its parent is what a call calls: through paths, fields and turbofish.
    fn is_callee(&self, walk: &Walk<'_, Kind>, field: u16) -> bool {
        let mut field = field;
        for level in walk.chain.iter().rev() {
            let last = match level.kind {
                Kind::Call => return field == self.fields.function,
                Kind::Generic => self.fields.function,
                Kind::Scoped => self.fields.name,
                Kind::FieldExpression => self.fields.field,
                _ => return false,
            };
            if field != last {
                return false;
            }
            field = level.field;
        }
        false
    }

    fn scoped(&self, walk: &Walk<'_, Kind>, field: u16) -> SymbolKind {
        let mut field = field;
        for level in walk.chain.iter().rev() {
            match level.kind {
                Kind::Scoped if field == self.fields.name => field = level.field,
                Kind::MacroCall if field == self.fields.macro_ => return SymbolKind::MacroCall,
                _ => break,
            }
        }
        SymbolKind::Path
    }

    /// Whether the literal stands directly in the brackets of a macro's call.
    fn is_argument(&self, walk: &Walk<'_, Kind>) -> bool {
        walk.ancestor(0) == Some(Kind::TokenTree) && walk.ancestor(1) == Some(Kind::MacroCall)
    }
}

/// The variables that a format string captures, in the macros known to take one.
pub(crate) fn captures<K: Copy>(walk: &mut Walk<'_, K>, span: Span) {
    const FORMATTING: [&str; 22] = [
        "format",
        "print",
        "println",
        "eprint",
        "eprintln",
        "write",
        "writeln",
        "panic",
        "format_args",
        "assert",
        "assert_eq",
        "assert_ne",
        "debug_assert",
        "unreachable",
        "todo",
        "unimplemented",
        "bail",
        "anyhow",
        "info",
        "warn",
        "error",
        "debug",
    ];
    let text = span.slice(walk.source);
    let mut found = Vec::new();
    for open in memchr::memchr_iter(b'{', text) {
        let name = &text[open + 1..];
        let length = name.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let escaped = open > 0 && text[open - 1] == b'{';
        if !escaped
            && length > 0
            && !name[0].is_ascii_digit()
            && matches!(name.get(length), Some(b'}' | b':'))
        {
            let start = span.start as usize + open + 1;
            found.push(Span::new(start, start + length));
        }
    }
    if found.is_empty() || !FORMATTING.contains(&macro_name(walk.source, span).as_str()) {
        return;
    }
    found.into_iter().for_each(|name| walk.refer(name, SymbolKind::Name));
}

/// The word before the `!` whose bracket holds this literal.
fn macro_name(source: &[u8], literal: Span) -> String {
    let before = &source[..literal.start as usize];
    let window = &before[before.len().saturating_sub(512)..];
    let mut depth = 0;
    for (at, byte) in window.iter().enumerate().rev() {
        match byte {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth > 0 => depth -= 1,
            b'(' | b'[' | b'{' => {
                let head = window[..at].trim_ascii_end();
                let head = head.strip_suffix(b"!").unwrap_or(&[]).trim_ascii_end();
                let start = head
                    .iter()
                    .rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
                    .map_or(0, |at| at + 1);
                return String::from_utf8_lossy(&head[start..]).into_owned();
            }
            _ => {}
        }
    }
    String::new()
}

/// How an identifier among a macro's tokens is used, by what stands around it.
pub(crate) fn in_tokens(source: &[u8], span: Span) -> SymbolKind {
    let after = source[span.end as usize..].trim_ascii_start();
    let before = source[..span.start as usize].trim_ascii_end();
    match after {
        [b'!', next, ..] if *next != b'=' => SymbolKind::MacroCall,
        [b'(', ..] => SymbolKind::Call,
        [b':', b':', ..] => SymbolKind::Path,
        _ if before.ends_with(b".") && !before.ends_with(b"..") => SymbolKind::Access,
        _ if before.ends_with(b"::") => SymbolKind::Path,
        _ if starts_upper(source, span) => SymbolKind::Type,
        _ => SymbolKind::Name,
    }
}

pub(crate) fn starts_upper(source: &[u8], span: Span) -> bool {
    span.text(source).chars().next().is_some_and(char::is_uppercase)
}
