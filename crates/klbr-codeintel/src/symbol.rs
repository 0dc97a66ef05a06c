//! The vocabulary of answers: what a symbol is, and what an extraction says about itself (B-CODE-1).

use crate::{language::ResolvedLanguage, name_path::NamePath, range::SourceRange};
use serde::{Deserialize, Serialize};

/// Whether a symbol is introduced here or merely mentioned (K14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolRole {
    /// The place that introduces the name.
    Definition,
    /// A place that mentions it.
    Reference,
}

macro_rules! kinds {
    ($($variant:ident $text:literal $role:ident $doc:literal),* $(,)?) => {
        /// What kind of thing a symbol is; on the wire its snake-case name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum SymbolKind {
            $(#[doc = $doc] $variant,)*
        }

        impl SymbolKind {
            /// Every kind, in declaration order.
            pub const ALL: &[SymbolKind] = &[$(SymbolKind::$variant),*];

            /// The name on the wire: `function`, `type_alias`, `macro_call`, …
            pub const fn as_str(self) -> &'static str {
                match self { $(SymbolKind::$variant => $text),* }
            }

            /// Whether symbols of this kind define or mention.
            pub const fn role(self) -> SymbolRole {
                match self { $(SymbolKind::$variant => SymbolRole::$role),* }
            }
        }
    };
}

kinds! {
    Module "module" Definition "A Rust `mod`, or another language's namespace or package.",
    Function "function" Definition "A free or nested function.",
    Method "method" Definition "A function of a type, trait, impl or class, with or without a body.",
    StaticMethod "static_method" Definition "A Python `@staticmethod`.",
    ClassMethod "class_method" Definition "A Python `@classmethod`.",
    Constructor "constructor" Definition "A constructor, where the language has a form for it.",
    Property "property" Definition "A getter, setter or deleter (`@property` and its kin).",
    Closure "closure" Definition "A Rust closure bound to a name.",
    Lambda "lambda" Definition "A lambda or arrow function bound to a name.",
    Class "class" Definition "A class.",
    Struct "struct" Definition "A struct.",
    Enum "enum" Definition "An enumeration.",
    Variant "variant" Definition "A variant or member of an enumeration.",
    Union "union" Definition "A union.",
    Trait "trait" Definition "A Rust trait.",
    Interface "interface" Definition "An interface.",
    Impl "impl" Definition "A Rust `impl` block.",
    ExternBlock "extern_block" Definition "A Rust `extern` block.",
    ExternCrate "extern_crate" Definition "A Rust `extern crate`.",
    AssociatedType "associated_type" Definition "A type of a trait or impl.",
    AssociatedConst "associated_const" Definition "A constant of a trait or impl.",
    TypeAlias "type_alias" Definition "Another name for a type.",
    Constant "constant" Definition "A constant; in Python a module's or class's name in capitals.",
    Static "static" Definition "A Rust `static`, mutable or not.",
    Variable "variable" Definition "A module's variable.",
    Attribute "attribute" Definition "A class's or instance's attribute.",
    Field "field" Definition "A named field of a struct, union or variant.",
    Macro "macro" Definition "A macro's definition.",
    Heading "heading" Definition "A heading of a document.",
    Key "key" Definition "A key or table of a data file.",
    Call "call" Reference "Something called.",
    MacroCall "macro_call" Reference "A macro called.",
    Path "path" Reference "A segment of a path.",
    Type "type" Reference "A type named, a base class included.",
    Import "import" Reference "A name imported.",
    Access "access" Reference "A field or attribute read or written.",
    Decorator "decorator" Reference "A decorator or attribute applied.",
    Annotation "annotation" Reference "A name in a Python annotation.",
    Name "name" Reference "Any other mention of the name.",
}

impl SymbolKind {
    /// The kind of that wire name.
    pub fn parse(text: &str) -> Option<SymbolKind> {
        SymbolKind::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }

    /// Whether definitions of this kind may hold others, so that they take part in name paths.
    pub(crate) fn in_paths(self) -> bool {
        self != SymbolKind::ExternBlock
    }
}

impl std::fmt::Display for SymbolKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One definition or one mention of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSymbol {
    /// The bare name; an impl's is its heading (`impl From<u8> for S`).
    pub name: String,
    /// A definition's address within the file; a reference's path as it was written.
    pub name_path: NamePath,
    /// What kind of thing it is.
    pub kind: SymbolKind,
    /// Whether it defines or mentions.
    pub role: SymbolRole,
    /// The whole definition without what is attached to it; a reference's path as written.
    pub range: SourceRange,
    /// The name alone.
    pub name_range: SourceRange,
    /// The documentation, without its comment marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    /// The definition together with its decorators, attributes and doc comments.
    pub attached_range: SourceRange,
    /// The body, where there is one: a block, a member list, or a suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_range: Option<SourceRange>,
    /// The definition up to its body, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The address of the definition that this stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<NamePath>,
    /// The macro whose invocation holds this item; its expansion may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via_macro: Option<String>,
    /// Stands in or after a broken region of its container: its path and extent may be wrong, and it is not edited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
}

/// Line, column (from 1, in bytes), kind and path: `12:5: method impl S::new`.
impl std::fmt::Display for CodeSymbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = &self.name_range;
        write!(f, "{}:{}: {} {}", place.start_line, place.start_column + 1, self.kind, self.name_path)
    }
}

/// How well a language's symbols are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Every kind listed in the crate's recall table.
    Full,
    /// The common forms.
    Partial,
    /// None at all.
    None,
}

/// What may be asked of a language. References are matched by name, best effort, everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuerySupport {
    /// Definitions.
    pub definitions: Support,
    /// References.
    pub references: Support,
}

/// How the parse went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum ParseStatus {
    /// The whole text follows the grammar.
    Complete,
    /// Broken regions were skipped; symbols in and after them are marked degraded where their place is in doubt.
    Recovered {
        /// Error regions and missing tokens.
        errors: usize,
    },
}

/// Everything that one text says (K14), in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolExtraction {
    /// The language and how it was found.
    pub language: ResolvedLanguage,
    /// What may be asked of it.
    pub queries: QuerySupport,
    /// How the parse went.
    pub status: ParseStatus,
    /// Definitions and references by their first byte.
    pub symbols: Vec<CodeSymbol>,
}

impl SymbolExtraction {
    /// The definitions alone.
    pub fn definitions(&self) -> impl Iterator<Item = &CodeSymbol> {
        self.symbols.iter().filter(|symbol| symbol.role == SymbolRole::Definition)
    }

    /// The references alone.
    pub fn references(&self) -> impl Iterator<Item = &CodeSymbol> {
        self.symbols.iter().filter(|symbol| symbol.role == SymbolRole::Reference)
    }
}
