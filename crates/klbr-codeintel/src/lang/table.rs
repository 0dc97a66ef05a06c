//! The other languages, by table: which node defines what, and where its name stands. Common forms only.

mod rows;

use super::{field, kinds};
use crate::{
    language::Language,
    range::Span,
    raw::{Def, Label},
    symbol::SymbolKind,
    walk::{Grammar, Step, Walk},
};
use rows::{Name, Row, Use};
use tree_sitter::Node;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Other,
    Skip,
    /// The index of a row that defines.
    Defines(u8),
    Word,
    TypeWord,
    MemberWord,
    Call,
    Import,
    Member,
    /// Its children are neither a module's nor a class's, whatever stands around it.
    Local,
}

pub(crate) struct Table {
    rows: &'static [Row],
    kinds: Box<[Kind]>,
    body: u16,
    value: u16,
    type_: u16,
    declarator: u16,
    callees: [u16; 3],
}

impl Table {
    pub(crate) fn new(language: Language, grammar: &tree_sitter::Language) -> Self {
        let spec = rows::of(language);
        let kind = |name: &str, named: bool| {
            if !named {
                return Kind::Skip;
            }
            if let Some(row) = spec.rows.iter().position(|row| row.node == name) {
                return Kind::Defines(row as u8);
            }
            let used = spec.uses.iter().find(|(node, _)| *node == name).map(|(_, used)| *used);
            match used {
                Some(Use::Word) => Kind::Word,
                Some(Use::TypeWord) => Kind::TypeWord,
                Some(Use::MemberWord) => Kind::MemberWord,
                Some(Use::Call) => Kind::Call,
                Some(Use::Import) => Kind::Import,
                Some(Use::Member) => Kind::Member,
                Some(Use::Local) => Kind::Local,
                None if name == "comment" => Kind::Skip,
                None => Kind::Other,
            }
        };
        Table {
            rows: spec.rows,
            kinds: kinds(grammar, kind),
            body: field(grammar, "body"),
            value: field(grammar, "value"),
            type_: field(grammar, "type"),
            declarator: field(grammar, "declarator"),
            callees: ["function", "name", "constructor"].map(|name| field(grammar, name)),
        }
    }

    fn define(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, row: &Row) -> Step {
        let inner = walk.container_kind();
        let local = walk.chain.iter().any(|level| level.kind == Kind::Local);
        let value = node.child_by_field_id(self.value);
        let bound = value.is_some_and(|value| {
            matches!(
                value.kind(),
                "arrow_function" | "function_expression" | "generator_function" | "func_literal"
            )
        });
        if row.shared && local && !bound {
            return Step::Into;
        }
        let Some(name) = self.name(node, row.name) else { return Step::Into };
        let mut kind = match inner {
            Some(SymbolKind::Class | SymbolKind::Interface | SymbolKind::Struct) => row.member,
            _ => row.kind,
        };
        kind = refined(kind, walk.source, node, &name, bound, node.child_by_field_id(self.type_));
        let mut def = Def::new(kind, Span::of(&name), Span::of(node));
        let text = Span::of(&name).text(walk.source);
        let plain = text.trim().trim_matches(['"', '\'']);
        if plain != text {
            def.label = Label::Composed(plain.into());
        }
        let body = node.child_by_field_id(self.body).or_else(|| value?.child_by_field_id(self.body));
        def.body = body.map(|body| Span::of(&body));
        Step::Scope(walk.define(def))
    }

    fn name<'t>(&self, node: &Node<'t>, rule: Name) -> Option<Node<'t>> {
        match rule {
            Name::Field(name) => node.child_by_field_name(name),
            Name::Bodied => node.child_by_field_id(self.body).and_then(|_| node.child_by_field_name("name")),
            Name::Declarator => {
                let mut at = node.child_by_field_id(self.declarator)?;
                loop {
                    let inner = at.child_by_field_id(self.declarator);
                    let inner = inner.or_else(|| {
                        at.kind().starts_with("qualified").then(|| at.child_by_field_name("name")).flatten()
                    });
                    let inner = inner.or_else(|| {
                        let wraps = matches!(at.kind(), "parenthesized_declarator" | "reference_declarator");
                        wraps.then(|| at.named_child(0)).flatten()
                    });
                    match inner {
                        Some(inner) => at = inner,
                        None => {
                            return at.kind().ends_with("identifier").then_some(at).or_else(|| operator(at));
                        }
                    }
                }
            }
            Name::First(kinds) => {
                node.named_children(&mut node.walk()).find(|child| kinds.contains(&child.kind()))
            }
            Name::Heading => {
                let heading =
                    node.named_children(&mut node.walk()).find(|child| child.kind().ends_with("_heading"))?;
                heading.child_by_field_name("heading_content")
            }
        }
    }
}

fn operator(node: Node<'_>) -> Option<Node<'_>> {
    matches!(node.kind(), "operator_name" | "destructor_name").then_some(node)
}

fn refined(
    kind: SymbolKind,
    source: &[u8],
    node: &Node<'_>,
    name: &Node<'_>,
    bound: bool,
    of: Option<Node<'_>>,
) -> SymbolKind {
    let starts = |word: &[u8]| Span::of(node).slice(source).starts_with(word);
    match kind {
        SymbolKind::Variable | SymbolKind::Field if bound => SymbolKind::Lambda,
        SymbolKind::Variable
            if node.parent().is_some_and(|parent| Span::of(&parent).slice(source).starts_with(b"const ")) =>
        {
            SymbolKind::Constant
        }
        SymbolKind::Method if starts(b"get ") || starts(b"set ") => SymbolKind::Property,
        SymbolKind::Method if Span::of(name).slice(source) == b"constructor" => SymbolKind::Constructor,
        SymbolKind::TypeAlias => match of.map(|of| of.kind()) {
            Some("struct_type") => SymbolKind::Struct,
            Some("interface_type") => SymbolKind::Interface,
            _ => kind,
        },
        SymbolKind::Variable | SymbolKind::Field if contains_function(node) => {
            if kind == SymbolKind::Field {
                SymbolKind::Method
            } else {
                SymbolKind::Function
            }
        }
        _ => kind,
    }
}

/// Whether a C declaration's declarator is a function's: a prototype.
fn contains_function(node: &Node<'_>) -> bool {
    let mut at = node.child_by_field_name("declarator");
    while let Some(inner) = at {
        if inner.kind() == "function_declarator" {
            return true;
        }
        at = inner.child_by_field_name("declarator");
    }
    false
}

impl Grammar for Table {
    type Kind = Kind;

    fn kind(&self, id: u16) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or(Kind::Other)
    }

    fn skips(kind: Kind) -> bool {
        kind == Kind::Skip
    }

    fn keyword(&self, _: &str) -> Option<SymbolKind> {
        None
    }

    fn enter(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, kind: Kind, field: u16) -> Step {
        let span = Span::of(node);
        let named = walk.container().is_some_and(|def| def.name == span);
        let callee = self.callees.contains(&field) && field != 0;
        let used = match (kind, walk.ancestor(0)) {
            (Kind::Defines(row), _) => match self.rows.get(row as usize) {
                Some(row) => return self.define(walk, node, row),
                None => return Step::Into,
            },
            (Kind::Word | Kind::TypeWord | Kind::MemberWord, _) if named => return Step::Over,
            (Kind::Word | Kind::TypeWord | Kind::MemberWord, Some(Kind::Call)) if callee => SymbolKind::Call,
            (Kind::MemberWord, Some(Kind::Member))
                if walk.ancestor(1) == Some(Kind::Call)
                    && walk.level(0).is_some_and(|level| self.callees.contains(&level.field)) =>
            {
                SymbolKind::Call
            }
            (Kind::Word | Kind::TypeWord | Kind::MemberWord, _)
                if walk.chain.iter().rev().take(5).any(|level| level.kind == Kind::Import) =>
            {
                SymbolKind::Import
            }
            (Kind::Word, _) => SymbolKind::Name,
            (Kind::TypeWord, _) => SymbolKind::Type,
            (Kind::MemberWord, _) => SymbolKind::Access,
            _ => return Step::Into,
        };
        walk.refer(span, used);
        Step::Over
    }
}
