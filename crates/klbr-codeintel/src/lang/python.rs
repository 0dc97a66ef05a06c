//! Python: which nodes define and which mention. Functions by where they stand and how they are decorated, classes,
//! the attributes of modules, classes and instances, aliases, and lambdas that a name is bound to.

pub(crate) mod items;
pub(crate) mod mentions;

pub(crate) use items::{docs, qualifier};

use super::{field, kinds};
use crate::{
    symbol::SymbolKind,
    walk::{Grammar, Step, Walk},
};
use tree_sitter::{Language, Node};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Other,
    Skip,
    Module,
    Function,
    Class,
    Decorator,
    Block,
    ExpressionStatement,
    Assignment,
    TypeAlias,
    Lambda,
    Identifier,
    StringContent,
    /// A tuple or list of targets.
    Targets,
    Splat,
    AttributeAccess,
    Call,
    KeywordArgument,
    Parameters,
    /// A parameter with a default or type, whose `name` binds.
    Parameter,
    Type,
    Import,
    AliasedImport,
    DottedName,
    Binder,
    Scoping,
    AsTarget,
    NamedExpression,
    ArgumentList,
    CasePattern,
    ClassPattern,
    Subscript,
    String,
}

pub(crate) struct Python {
    kinds: Box<[Kind]>,
    fields: Fields,
}

struct Fields {
    name: u16,
    body: u16,
    left: u16,
    right: u16,
    object: u16,
    attribute: u16,
    function: u16,
}

impl Python {
    pub(crate) fn new(language: &Language) -> Self {
        let field = |name| field(language, name);
        Python {
            kinds: kinds(language, kind),
            fields: Fields {
                name: field("name"),
                body: field("body"),
                left: field("left"),
                right: field("right"),
                object: field("object"),
                attribute: field("attribute"),
                function: field("function"),
            },
        }
    }

    fn kind_of(&self, node: &Node<'_>) -> Kind {
        self.kinds.get(node.kind_id() as usize).copied().unwrap_or(Kind::Other)
    }
}

fn kind(name: &str, named: bool) -> Kind {
    match name {
        _ if !named => Kind::Skip,
        "module" => Kind::Module,
        "function_definition" => Kind::Function,
        "class_definition" => Kind::Class,
        "decorator" => Kind::Decorator,
        "block" => Kind::Block,
        "expression_statement" => Kind::ExpressionStatement,
        "assignment" => Kind::Assignment,
        "type_alias_statement" => Kind::TypeAlias,
        "lambda" => Kind::Lambda,
        "identifier" => Kind::Identifier,
        "string_content" => Kind::StringContent,
        "string" => Kind::String,
        "pattern_list" | "tuple_pattern" | "list_pattern" => Kind::Targets,
        "list_splat_pattern" | "dictionary_splat_pattern" => Kind::Splat,
        "attribute" => Kind::AttributeAccess,
        "call" => Kind::Call,
        "keyword_argument" => Kind::KeywordArgument,
        "parameters" | "lambda_parameters" => Kind::Parameters,
        "default_parameter" | "typed_default_parameter" | "typed_parameter" => Kind::Parameter,
        "type" => Kind::Type,
        "import_statement" | "import_from_statement" | "future_import_statement" => Kind::Import,
        "aliased_import" => Kind::AliasedImport,
        "dotted_name" => Kind::DottedName,
        "for_statement" | "for_in_clause" => Kind::Binder,
        "global_statement" | "nonlocal_statement" => Kind::Scoping,
        "as_pattern_target" => Kind::AsTarget,
        "named_expression" => Kind::NamedExpression,
        "argument_list" => Kind::ArgumentList,
        "case_pattern" => Kind::CasePattern,
        "class_pattern" => Kind::ClassPattern,
        "subscript" => Kind::Subscript,
        "comment"
        | "integer"
        | "float"
        | "true"
        | "false"
        | "none"
        | "ellipsis"
        | "string_start"
        | "string_end"
        | "escape_sequence"
        | "escape_interpolation"
        | "line_continuation"
        | "pass_statement"
        | "import_prefix"
        | "wildcard_import"
        | "type_conversion" => Kind::Skip,
        _ => Kind::Other,
    }
}

impl Grammar for Python {
    type Kind = Kind;

    fn skips(kind: Kind) -> bool {
        kind == Kind::Skip
    }

    fn keyword(&self, word: &str) -> Option<SymbolKind> {
        match word {
            "def" => Some(SymbolKind::Function),
            "class" => Some(SymbolKind::Class),
            _ => None,
        }
    }

    fn kind(&self, id: u16) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or(Kind::Other)
    }

    fn enter(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, kind: Kind, field: u16) -> Step {
        match kind {
            Kind::Identifier => {
                self.mention(walk, node, field);
                Step::Over
            }
            Kind::StringContent => {
                self.quoted_annotation(walk, node);
                Step::Into
            }
            Kind::Decorator => {
                walk.attach(node.start_byte());
                Step::Into
            }
            Kind::Function | Kind::Class => self.definition(walk, node, kind),
            // The grammar lets a suite be empty; Python does not.
            Kind::Block if node.named_child_count() == 0 => {
                walk.missing(node.start_byte(), "block");
                Step::Into
            }
            Kind::TypeAlias => self.type_alias(walk, node),
            Kind::Assignment => self.assignment(walk, node),
            _ => Step::Into,
        }
    }
}
