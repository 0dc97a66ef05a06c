//! Rust: which nodes define and which mention. Every item of the reference, methods by where they stand, impls under
//! their headings, closures that a `let` names, and items in item-like macro invocations.

pub(crate) mod items;
pub(crate) mod macros;
pub(crate) mod mentions;

pub(crate) use items::{docs, qualifier};

use super::{field, kinds};
use crate::{
    range::Span,
    symbol::SymbolKind,
    walk::{Grammar, Step, Walk},
};
use tree_sitter::{Language, Node};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Other,
    /// Nothing in it is of interest.
    Skip,
    Comment,
    AttributeItem,
    Function,
    Struct,
    Enum,
    Union,
    Trait,
    Impl,
    Module,
    Variant,
    Field,
    Const,
    Static,
    TypeItem,
    AssociatedType,
    MacroDefinition,
    ExternBlock,
    ExternCrate,
    Let,
    Closure,
    Items,
    SourceFile,
    Block,
    MacroCall,
    TokenTree,
    Identifier,
    TypeIdentifier,
    FieldIdentifier,
    ShorthandField,
    StringLiteral,
    Use,
    UseAs,
    Call,
    Generic,
    Scoped,
    FieldExpression,
    /// A node whose identifiers bind rather than mention.
    Pattern,
    /// A node whose `pattern` field binds.
    Binder,
    TypeParameter,
    ExpressionStatement,
}

pub(crate) struct Rust {
    kinds: Box<[Kind]>,
    fields: Fields,
}

struct Fields {
    name: u16,
    body: u16,
    value: u16,
    pattern: u16,
    trait_: u16,
    type_: u16,
    function: u16,
    field: u16,
    macro_: u16,
    alias: u16,
    condition: u16,
}

impl Rust {
    pub(crate) fn new(language: &Language) -> Self {
        let field = |name| field(language, name);
        Rust {
            kinds: kinds(language, kind),
            fields: Fields {
                name: field("name"),
                body: field("body"),
                value: field("value"),
                pattern: field("pattern"),
                trait_: field("trait"),
                type_: field("type"),
                function: field("function"),
                field: field("field"),
                macro_: field("macro"),
                alias: field("alias"),
                condition: field("condition"),
            },
        }
    }

    /// A broken region's kind has no place in the grammar's table.
    fn kind_of(&self, node: &Node<'_>) -> Kind {
        self.kinds.get(node.kind_id() as usize).copied().unwrap_or(Kind::Other)
    }
}

fn kind(name: &str, named: bool) -> Kind {
    match name {
        _ if !named => Kind::Skip,
        "line_comment" | "block_comment" => Kind::Comment,
        "attribute_item" => Kind::AttributeItem,
        "function_item" | "function_signature_item" => Kind::Function,
        "struct_item" => Kind::Struct,
        "enum_item" => Kind::Enum,
        "union_item" => Kind::Union,
        "trait_item" => Kind::Trait,
        "impl_item" => Kind::Impl,
        "mod_item" => Kind::Module,
        "enum_variant" => Kind::Variant,
        "field_declaration" => Kind::Field,
        "const_item" => Kind::Const,
        "static_item" => Kind::Static,
        "type_item" => Kind::TypeItem,
        "associated_type" => Kind::AssociatedType,
        "macro_definition" => Kind::MacroDefinition,
        "foreign_mod_item" => Kind::ExternBlock,
        "extern_crate_declaration" => Kind::ExternCrate,
        "let_declaration" => Kind::Let,
        "closure_expression" => Kind::Closure,
        "declaration_list" => Kind::Items,
        "source_file" => Kind::SourceFile,
        "block" => Kind::Block,
        "macro_invocation" => Kind::MacroCall,
        "token_tree" | "token_repetition" => Kind::TokenTree,
        "identifier" => Kind::Identifier,
        "type_identifier" => Kind::TypeIdentifier,
        "field_identifier" => Kind::FieldIdentifier,
        "shorthand_field_identifier" => Kind::ShorthandField,
        "string_literal" | "raw_string_literal" => Kind::StringLiteral,
        "use_declaration" => Kind::Use,
        "use_as_clause" => Kind::UseAs,
        "call_expression" => Kind::Call,
        "generic_function" => Kind::Generic,
        "scoped_identifier" | "scoped_type_identifier" => Kind::Scoped,
        "field_expression" => Kind::FieldExpression,
        "tuple_pattern"
        | "slice_pattern"
        | "captured_pattern"
        | "mut_pattern"
        | "ref_pattern"
        | "reference_pattern"
        | "or_pattern"
        | "match_pattern"
        | "field_pattern"
        | "tuple_struct_pattern"
        | "closure_parameters" => Kind::Pattern,
        "parameter" | "for_expression" | "let_condition" => Kind::Binder,
        "type_parameter" | "const_parameter" => Kind::TypeParameter,
        "expression_statement" => Kind::ExpressionStatement,
        "lifetime" | "label" | "char_literal" | "integer_literal" | "float_literal" | "boolean_literal"
        | "self" | "super" | "crate" | "primitive_type" | "metavariable" | "mutable_specifier"
        | "token_tree_pattern" => Kind::Skip,
        _ => Kind::Other,
    }
}

impl Grammar for Rust {
    type Kind = Kind;

    fn skips(kind: Kind) -> bool {
        kind == Kind::Skip
    }

    fn keyword(&self, word: &str) -> Option<SymbolKind> {
        Some(match word {
            "fn" => SymbolKind::Function,
            "struct" => SymbolKind::Struct,
            "enum" => SymbolKind::Enum,
            "trait" => SymbolKind::Trait,
            "mod" => SymbolKind::Module,
            "type" => SymbolKind::TypeAlias,
            "const" => SymbolKind::Constant,
            "static" => SymbolKind::Static,
            _ => return None,
        })
    }

    fn kind(&self, id: u16) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or(Kind::Other)
    }

    fn enter(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, kind: Kind, field: u16) -> Step {
        match kind {
            Kind::Identifier
            | Kind::TypeIdentifier
            | Kind::FieldIdentifier
            | Kind::ShorthandField
            | Kind::StringLiteral => {
                self.mention(walk, node, kind, field);
                Step::Over
            }
            Kind::Comment => {
                if items::is_outer_doc(Span::of(node).slice(walk.source)) {
                    walk.attach(node.start_byte());
                }
                Step::Over
            }
            Kind::AttributeItem => {
                walk.attach(node.start_byte());
                Step::Into
            }
            _ => self.item(walk, node, kind),
        }
    }
}
