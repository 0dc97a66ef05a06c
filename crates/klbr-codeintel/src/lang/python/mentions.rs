//! The references of Python: how an identifier is used, by where it stands.

use super::{Kind, Python, items::is_word};
use crate::{range::Span, symbol::SymbolKind, walk::Walk};
use tree_sitter::Node;

impl Python {
    pub(super) fn mention(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, field: u16) {
        let Some(parent) = walk.level(0) else { return };
        let (fields, span) = (&self.fields, Span::of(node));
        let used = match parent.kind {
            Kind::Function
            | Kind::Class
            | Kind::KeywordArgument
            | Kind::NamedExpression
            | Kind::Parameter
                if field == fields.name =>
            {
                return;
            }
            Kind::Parameters | Kind::Scoping | Kind::AsTarget => return,
            // A typed parameter has no field for its name: it is the child that is no type.
            Kind::Parameter if field == 0 => return,
            Kind::Targets | Kind::Splat if self.is_target(walk) => return,
            Kind::Assignment | Kind::Binder if field == fields.left => return,
            Kind::DottedName => match self.dotted(walk, span) {
                Some(used) => used,
                None => return,
            },
            Kind::AliasedImport => SymbolKind::Import,
            _ if self.in_decorator(walk) => SymbolKind::Decorator,
            _ if self.is_callee(walk, field) => SymbolKind::Call,
            Kind::AttributeAccess if field == fields.attribute && !self.in_annotation(walk) => {
                SymbolKind::Access
            }
            Kind::ArgumentList if walk.ancestor(1) == Some(Kind::Class) => SymbolKind::Type,
            Kind::Type if walk.ancestor(1) == Some(Kind::TypeAlias) && parent.field == fields.left => return,
            _ if self.in_annotation(walk) => SymbolKind::Annotation,
            _ => SymbolKind::Name,
        };
        walk.refer(span, used);
    }

    fn is_callee(&self, walk: &Walk<'_, Kind>, field: u16) -> bool {
        let mut field = field;
        for level in walk.chain.iter().rev() {
            match level.kind {
                Kind::Call => return field == self.fields.function,
                Kind::AttributeAccess if field == self.fields.attribute => field = level.field,
                _ => return false,
            }
        }
        false
    }

    /// Whether the list of targets around the identifier is bound, rather than deleted or read.
    fn is_target(&self, walk: &Walk<'_, Kind>) -> bool {
        let mut field = 0;
        for level in walk.chain.iter().rev() {
            match level.kind {
                Kind::Targets | Kind::Splat => field = level.field,
                Kind::Assignment | Kind::Binder => return field == self.fields.left,
                Kind::Parameters | Kind::Parameter | Kind::CasePattern | Kind::AsTarget => return true,
                _ => return false,
            }
        }
        false
    }

    fn dotted(&self, walk: &Walk<'_, Kind>, span: Span) -> Option<SymbolKind> {
        let within = walk.chain.iter().rev().skip(1).map(|level| level.kind);
        match within
            .into_iter()
            .find(|kind| matches!(kind, Kind::Import | Kind::ClassPattern | Kind::CasePattern))
        {
            Some(Kind::Import) => Some(SymbolKind::Import),
            Some(Kind::ClassPattern) => Some(SymbolKind::Type),
            // `case name:` binds; `case module.NAME:` mentions.
            Some(Kind::CasePattern) => {
                let before = walk.source[..span.start as usize].last() == Some(&b'.');
                let after = walk.source.get(span.end as usize) == Some(&b'.');
                (before || after).then_some(SymbolKind::Path)
            }
            _ => Some(SymbolKind::Name),
        }
    }

    fn in_decorator(&self, walk: &Walk<'_, Kind>) -> bool {
        let mut field = None;
        for level in walk.chain.iter().rev() {
            match level.kind {
                Kind::AttributeAccess => field = Some(level.field),
                Kind::Call if field.is_none_or(|field| field == self.fields.function) => {
                    field = Some(level.field)
                }
                kind => return kind == Kind::Decorator,
            }
        }
        false
    }

    fn in_annotation(&self, walk: &Walk<'_, Kind>) -> bool {
        for level in walk.chain.iter().rev() {
            match level.kind {
                Kind::Type => return true,
                Kind::Other | Kind::AttributeAccess | Kind::Subscript | Kind::String => {}
                _ => return false,
            }
        }
        false
    }

    /// The names in an annotation that is written as a string.
    pub(super) fn quoted_annotation(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>) {
        if node.child_count() == 0 && self.in_annotation(walk) {
            quoted(walk, Span::of(node));
        }
    }
}

/// The names in a text without escapes that is an annotation; what `Literal[…]` holds is none.
pub(crate) fn quoted<K: Copy>(walk: &mut Walk<'_, K>, span: Span) {
    let source = walk.source;
    let before = &source[span.start.saturating_sub(200) as usize..span.start as usize];
    let values = memchr::memmem::rfind(before, b"Literal[").is_some_and(|at| !before[at..].contains(&b']'));
    if values {
        return;
    }
    let (mut at, end) = (span.start as usize, span.end as usize);
    while at < end {
        let word = source[at..end].iter().take_while(|byte| is_word(**byte)).count();
        if word > 0 && !source[at].is_ascii_digit() {
            walk.refer(Span::new(at, at + word), SymbolKind::Annotation);
        }
        at += word.max(1);
    }
}
