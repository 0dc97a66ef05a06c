//! The tables: one row a defining node, and what the other nodes of interest are.

use crate::{language::Language, symbol::SymbolKind};

/// Where a definition's name stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name {
    /// In that field.
    Field(&'static str),
    /// In the field `name`, if there is a body: without one it is a mention.
    Bodied,
    /// At the heart of C's declarators.
    Declarator,
    /// The first child of one of these kinds.
    First(&'static [&'static str]),
    /// In the heading that begins a section.
    Heading,
}

/// A node that defines.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) node: &'static str,
    pub(super) kind: SymbolKind,
    /// Its kind within a class, struct or interface.
    pub(super) member: SymbolKind,
    pub(super) name: Name,
    /// Defines only outside functions.
    pub(super) shared: bool,
}

/// What a node that defines nothing is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    Word,
    TypeWord,
    MemberWord,
    Call,
    Import,
    Member,
    Local,
}

pub(super) struct Spec {
    pub(super) rows: &'static [Row],
    pub(super) uses: &'static [(&'static str, Use)],
}

const fn row(node: &'static str, kind: SymbolKind) -> Row {
    Row { node, kind, member: kind, name: Name::Field("name"), shared: false }
}

const fn named(node: &'static str, kind: SymbolKind, name: Name) -> Row {
    Row { node, kind, member: kind, name, shared: false }
}

const fn shared(node: &'static str, kind: SymbolKind, member: SymbolKind, name: Name) -> Row {
    Row { node, kind, member, name, shared: true }
}

#[cfg(any(feature = "javascript", feature = "typescript"))]
const SCRIPT: Spec = Spec {
    rows: &[
        row("function_declaration", SymbolKind::Function),
        row("generator_function_declaration", SymbolKind::Function),
        row("function_signature", SymbolKind::Function),
        row("class_declaration", SymbolKind::Class),
        row("abstract_class_declaration", SymbolKind::Class),
        row("method_definition", SymbolKind::Method),
        row("method_signature", SymbolKind::Method),
        row("abstract_method_signature", SymbolKind::Method),
        named("field_definition", SymbolKind::Field, Name::Field("property")),
        row("public_field_definition", SymbolKind::Field),
        row("property_signature", SymbolKind::Field),
        row("interface_declaration", SymbolKind::Interface),
        row("type_alias_declaration", SymbolKind::TypeAlias),
        row("enum_declaration", SymbolKind::Enum),
        row("enum_assignment", SymbolKind::Variant),
        row("internal_module", SymbolKind::Module),
        row("module", SymbolKind::Module),
        shared(
            "variable_declarator",
            SymbolKind::Variable,
            SymbolKind::Variable,
            Name::First(&["identifier"]),
        ),
    ],
    uses: &[
        ("identifier", Use::Word),
        ("type_identifier", Use::TypeWord),
        ("property_identifier", Use::MemberWord),
        ("private_property_identifier", Use::MemberWord),
        ("shorthand_property_identifier", Use::Word),
        ("call_expression", Use::Call),
        ("new_expression", Use::Call),
        ("member_expression", Use::Member),
        ("import_statement", Use::Import),
        ("statement_block", Use::Local),
    ],
};

#[cfg(feature = "go")]
const GO: Spec = Spec {
    rows: &[
        row("function_declaration", SymbolKind::Function),
        row("method_declaration", SymbolKind::Method),
        row("method_elem", SymbolKind::Method),
        row("type_spec", SymbolKind::TypeAlias),
        row("type_alias", SymbolKind::TypeAlias),
        row("field_declaration", SymbolKind::Field),
        shared("const_spec", SymbolKind::Constant, SymbolKind::Constant, Name::Field("name")),
        shared("var_spec", SymbolKind::Variable, SymbolKind::Variable, Name::Field("name")),
    ],
    uses: &[
        ("identifier", Use::Word),
        ("type_identifier", Use::TypeWord),
        ("field_identifier", Use::MemberWord),
        ("call_expression", Use::Call),
        ("selector_expression", Use::Member),
        ("import_declaration", Use::Import),
        ("block", Use::Local),
    ],
};

#[cfg(any(feature = "c", feature = "cpp"))]
const C: Spec = Spec {
    rows: &[
        Row {
            node: "function_definition",
            kind: SymbolKind::Function,
            member: SymbolKind::Method,
            name: Name::Declarator,
            shared: false,
        },
        named("struct_specifier", SymbolKind::Struct, Name::Bodied),
        named("class_specifier", SymbolKind::Class, Name::Bodied),
        named("union_specifier", SymbolKind::Union, Name::Bodied),
        named("enum_specifier", SymbolKind::Enum, Name::Bodied),
        row("enumerator", SymbolKind::Variant),
        named("type_definition", SymbolKind::TypeAlias, Name::Declarator),
        row("alias_declaration", SymbolKind::TypeAlias),
        named("field_declaration", SymbolKind::Field, Name::Declarator),
        row("preproc_def", SymbolKind::Macro),
        row("preproc_function_def", SymbolKind::Macro),
        row("namespace_definition", SymbolKind::Module),
        shared("declaration", SymbolKind::Variable, SymbolKind::Field, Name::Declarator),
    ],
    uses: &[
        ("identifier", Use::Word),
        ("namespace_identifier", Use::Word),
        ("type_identifier", Use::TypeWord),
        ("field_identifier", Use::MemberWord),
        ("call_expression", Use::Call),
        ("field_expression", Use::Member),
        ("compound_statement", Use::Local),
    ],
};

#[cfg(feature = "java")]
const JAVA: Spec = Spec {
    rows: &[
        row("class_declaration", SymbolKind::Class),
        row("record_declaration", SymbolKind::Class),
        row("interface_declaration", SymbolKind::Interface),
        row("annotation_type_declaration", SymbolKind::Interface),
        row("enum_declaration", SymbolKind::Enum),
        row("enum_constant", SymbolKind::Variant),
        row("method_declaration", SymbolKind::Method),
        row("constructor_declaration", SymbolKind::Constructor),
        row("compact_constructor_declaration", SymbolKind::Constructor),
        shared("variable_declarator", SymbolKind::Field, SymbolKind::Field, Name::Field("name")),
    ],
    uses: &[
        ("identifier", Use::Word),
        ("type_identifier", Use::TypeWord),
        ("method_invocation", Use::Call),
        ("field_access", Use::Member),
        ("import_declaration", Use::Import),
        ("block", Use::Local),
        ("constructor_body", Use::Local),
    ],
};

#[cfg(feature = "bash")]
const BASH: Spec = Spec {
    rows: &[
        row("function_definition", SymbolKind::Function),
        shared("variable_assignment", SymbolKind::Variable, SymbolKind::Variable, Name::Field("name")),
    ],
    uses: &[
        ("variable_name", Use::Word),
        ("command_name", Use::Word),
        ("command", Use::Call),
        ("compound_statement", Use::Local),
    ],
};

#[cfg(feature = "json")]
const JSON: Spec = Spec { rows: &[named("pair", SymbolKind::Key, Name::Field("key"))], uses: &[] };

#[cfg(feature = "toml")]
const TOML: Spec = Spec {
    rows: &[
        named("table", SymbolKind::Key, Name::First(&["bare_key", "quoted_key", "dotted_key"])),
        named("table_array_element", SymbolKind::Key, Name::First(&["bare_key", "quoted_key", "dotted_key"])),
        named("pair", SymbolKind::Key, Name::First(&["bare_key", "quoted_key", "dotted_key"])),
    ],
    uses: &[],
};

#[cfg(feature = "yaml")]
const YAML: Spec = Spec {
    rows: &[
        named("block_mapping_pair", SymbolKind::Key, Name::Field("key")),
        named("flow_pair", SymbolKind::Key, Name::Field("key")),
    ],
    uses: &[("alias_name", Use::Word)],
};

#[cfg(feature = "markdown")]
const MARKDOWN: Spec = Spec { rows: &[named("section", SymbolKind::Heading, Name::Heading)], uses: &[] };

pub(super) fn of(language: Language) -> &'static Spec {
    match language {
        #[cfg(feature = "javascript")]
        Language::JavaScript => &SCRIPT,
        #[cfg(feature = "typescript")]
        Language::TypeScript | Language::Tsx => &SCRIPT,
        #[cfg(feature = "go")]
        Language::Go => &GO,
        #[cfg(feature = "c")]
        Language::C => &C,
        #[cfg(feature = "cpp")]
        Language::Cpp => &C,
        #[cfg(feature = "java")]
        Language::Java => &JAVA,
        #[cfg(feature = "bash")]
        Language::Bash => &BASH,
        #[cfg(feature = "json")]
        Language::Json => &JSON,
        #[cfg(feature = "toml")]
        Language::Toml => &TOML,
        #[cfg(feature = "yaml")]
        Language::Yaml => &YAML,
        #[cfg(feature = "markdown")]
        Language::Markdown => &MARKDOWN,
        Language::Rust | Language::Python => &Spec { rows: &[], uses: &[] },
    }
}
