//! The definitions of Rust.

use super::{Kind, Rust};
use crate::{
    lang::one_line,
    range::Span,
    raw::{Def, Label},
    symbol::SymbolKind,
    walk::{Step, Walk},
};
use tree_sitter::Node;

impl Rust {
    pub(super) fn item(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, kind: Kind) -> Step {
        let attached = walk.take_attached();
        let member = matches!(
            (walk.ancestor(0), walk.ancestor(1)),
            (Some(Kind::Items), Some(Kind::Impl | Kind::Trait))
        );
        let symbol = match kind {
            Kind::Function if member => SymbolKind::Method,
            Kind::Function => SymbolKind::Function,
            Kind::Struct => SymbolKind::Struct,
            Kind::Enum => SymbolKind::Enum,
            Kind::Union => SymbolKind::Union,
            Kind::Trait => SymbolKind::Trait,
            Kind::Module => SymbolKind::Module,
            Kind::Variant => SymbolKind::Variant,
            Kind::Field => SymbolKind::Field,
            Kind::Const if member => SymbolKind::AssociatedConst,
            Kind::Const => SymbolKind::Constant,
            Kind::Static => SymbolKind::Static,
            Kind::TypeItem if member => SymbolKind::AssociatedType,
            Kind::TypeItem => SymbolKind::TypeAlias,
            Kind::AssociatedType if member => SymbolKind::AssociatedType,
            Kind::AssociatedType => SymbolKind::TypeAlias,
            Kind::MacroDefinition => SymbolKind::Macro,
            Kind::Impl => return self.impl_block(walk, node, attached),
            Kind::ExternBlock => return self.extern_block(walk, node, attached),
            Kind::ExternCrate => return self.extern_crate(walk, node, attached),
            Kind::Let => return self.bound_closure(walk, node),
            Kind::MacroCall => {
                self.macro_items(walk, node);
                return Step::Into;
            }
            _ => return Step::Into,
        };
        let Some(name) = node.child_by_field_id(self.fields.name) else { return Step::Into };
        let mut def = Def::new(symbol, Span::of(&name), Span::of(node));
        self.finish(&mut def, node, attached);
        Step::Scope(walk.define(def))
    }

    fn finish(&self, def: &mut Def, node: &Node<'_>, attached: Option<u32>) {
        def.attached = attached.unwrap_or(def.range.start);
        def.body = node.child_by_field_id(self.fields.body).map(|body| Span::of(&body));
    }

    /// An impl is named by its heading, since nothing else tells `impl From<u8> for S` from `impl From<u16> for S`.
    fn impl_block(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, attached: Option<u32>) -> Step {
        let Some(kind) = node.child_by_field_id(self.fields.type_) else { return Step::Into };
        let text = |node: &Node<'_>| one_line(Span::of(node).slice(walk.source));
        let heading = match node.child_by_field_id(self.fields.trait_) {
            Some(bound) => {
                let negative = bound.prev_sibling().is_some_and(|before| before.kind() == "!");
                format!("impl {}{} for {}", if negative { "!" } else { "" }, text(&bound), text(&kind))
            }
            None => format!("impl {}", text(&kind)),
        };
        let mut def = Def::new(SymbolKind::Impl, Span::of(&kind), Span::of(node));
        def.label = Label::Composed(heading.into());
        self.finish(&mut def, node, attached);
        Step::Scope(walk.define(def))
    }

    fn extern_block(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, attached: Option<u32>) -> Step {
        let mut cursor = node.walk();
        let modifier = node.children(&mut cursor).find(|child| child.kind() == "extern_modifier");
        let name = Span::of(&modifier.unwrap_or(*node));
        let mut def = Def::new(SymbolKind::ExternBlock, name, Span::of(node));
        def.label = Label::Composed(one_line(name.slice(walk.source)).into());
        self.finish(&mut def, node, attached);
        Step::Scope(walk.define(def))
    }

    fn extern_crate(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, attached: Option<u32>) -> Step {
        let named =
            node.child_by_field_id(self.fields.alias).or_else(|| node.child_by_field_id(self.fields.name));
        if let Some(name) = named {
            let mut def = Def::new(SymbolKind::ExternCrate, Span::of(&name), Span::of(node));
            self.finish(&mut def, node, attached);
            walk.define(def);
        }
        Step::Into
    }

    fn bound_closure(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>) -> Step {
        let value = node.child_by_field_id(self.fields.value);
        let Some(value) = value.filter(|value| self.kind_of(value) == Kind::Closure) else {
            return Step::Into;
        };
        let name = node.child_by_field_id(self.fields.pattern);
        let Some(name) = name.filter(|name| self.kind_of(name) == Kind::Identifier) else {
            return Step::Into;
        };
        let mut def = Def::new(SymbolKind::Closure, Span::of(&name), Span::of(node));
        def.body = value.child_by_field_id(self.fields.body).map(|body| Span::of(&body));
        Step::Scope(walk.define(def))
    }
}

pub(crate) fn is_outer_doc(text: &[u8]) -> bool {
    (text.starts_with(b"///") && !text.starts_with(b"////"))
        || (text.starts_with(b"/**") && !text.starts_with(b"/***") && text.len() > 4)
}

/// The documentation among what is attached to an item: `///`, `/** */` and `#[doc = "…"]`.
pub(crate) fn docs(attached: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(attached);
    let mut docs: Vec<String> = Vec::new();
    let mut block = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let opened = trimmed.strip_prefix("/**").filter(|rest| !block && !rest.starts_with(['*', '/']));
        if block || opened.is_some() {
            let body = opened.unwrap_or(trimmed);
            block = !body.contains("*/");
            let body = body.split("*/").next().unwrap_or_default();
            docs.push(body.strip_prefix('*').unwrap_or(body).trim().to_owned());
        } else if let Some(rest) = trimmed.strip_prefix("///").filter(|rest| !rest.starts_with('/')) {
            docs.push(rest.strip_prefix(' ').unwrap_or(rest).trim_end().to_owned());
        } else if let Some(rest) =
            trimmed.strip_prefix("#[doc = \"").and_then(|rest| rest.strip_suffix("\"]"))
        {
            docs.push(rest.trim().replace("\\\"", "\""));
        }
    }
    let text = docs.join("\n").trim_matches('\n').to_owned();
    (!text.is_empty()).then_some(text)
}

/// The `cfg` that tells an item from its twins.
pub(crate) fn qualifier(attached: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(attached);
    let start = text.find("#[cfg(")? + 2;
    let mut depth = 0;
    let length = text[start..].find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ')' && depth == 0
    })?;
    Some(one_line(text[start..=start + length].as_bytes()))
}
