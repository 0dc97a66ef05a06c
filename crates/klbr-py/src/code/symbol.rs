//! What a text holds, as Python sees it: views of the Rust values, made when they are asked for.

use klbr_codeintel::{
    CodeSymbol, Diagnostic as Problem, DiagnosticKind, ParseStatus, SourceRange, SymbolExtraction,
    SymbolRole, definitions_named, outline, references_named, symbol_at,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::Plain;
use crate::error::Fault;

/// A region of a text. Bytes and columns are counted from 0, lines from 1; columns are in bytes.
#[pyclass(frozen, eq, hash, module = "klbr._native")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Range(pub(crate) SourceRange);

#[pymethods]
impl Range {
    #[getter]
    fn start_byte(&self) -> usize {
        self.0.start_byte
    }

    #[getter]
    fn end_byte(&self) -> usize {
        self.0.end_byte
    }

    #[getter]
    fn start_line(&self) -> usize {
        self.0.start_line
    }

    #[getter]
    fn start_column(&self) -> usize {
        self.0.start_column
    }

    #[getter]
    fn end_line(&self) -> usize {
        self.0.end_line
    }

    #[getter]
    fn end_column(&self) -> usize {
        self.0.end_column
    }

    /// The region's text, of the text that the range was made from.
    #[pyo3(signature = (source, /))]
    fn of(&self, source: &str) -> PyResult<String> {
        let text = source.get(self.0.bytes());
        text.map(str::to_owned).ok_or_else(|| PyValueError::new_err("the range is not of this text"))
    }

    fn __repr__(&self) -> String {
        let SourceRange { start_line, start_column, end_line, end_column, .. } = self.0;
        format!("<Range {start_line}:{start_column}-{end_line}:{end_column}>")
    }
}

/// One definition, or one mention of a name.
#[pyclass(frozen, eq, module = "klbr._native")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Symbol(pub(crate) CodeSymbol);

#[pymethods]
impl Symbol {
    /// The bare name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// A definition's address within its file; a mention's path as written.
    #[getter]
    fn path(&self) -> String {
        self.0.name_path.to_string()
    }

    /// What kind of thing it is.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.as_str()
    }

    /// Whether it defines the name; else it mentions it.
    #[getter]
    fn is_definition(&self) -> bool {
        self.0.role == SymbolRole::Definition
    }

    /// The whole definition without what is attached to it; a mention's path.
    #[getter]
    fn range(&self) -> Range {
        Range(self.0.range)
    }

    /// The name alone.
    #[getter]
    fn name_range(&self) -> Range {
        Range(self.0.name_range)
    }

    /// The definition with its decorators, attributes and doc comments.
    #[getter]
    fn attached_range(&self) -> Range {
        Range(self.0.attached_range)
    }

    /// The body, where there is one.
    #[getter]
    fn body_range(&self) -> Option<Range> {
        self.0.body_range.map(Range)
    }

    /// The documentation without its comment marks.
    #[getter]
    fn docs(&self) -> Option<&str> {
        self.0.docs.as_deref()
    }

    /// The definition up to its body, on one line.
    #[getter]
    fn signature(&self) -> Option<&str> {
        self.0.signature.as_deref()
    }

    /// The address of the definition that it stands in.
    #[getter]
    fn container(&self) -> Option<String> {
        self.0.container.as_ref().map(ToString::to_string)
    }

    /// Whether it stands in or after a broken region: its path and extent may be wrong.
    #[getter]
    fn degraded(&self) -> bool {
        self.0.degraded
    }

    /// Everything about it as plain data.
    fn to_dict(&self) -> Plain<CodeSymbol> {
        Plain(self.0.clone())
    }

    fn __repr__(&self) -> String {
        format!("<Symbol {}>", self.0)
    }
}

/// Everything that one text says.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Extraction(pub(crate) SymbolExtraction);

fn given<'a>(symbols: impl IntoIterator<Item = &'a CodeSymbol>) -> Vec<Symbol> {
    symbols.into_iter().cloned().map(Symbol).collect()
}

#[pymethods]
impl Extraction {
    /// The language that it was read as.
    #[getter]
    fn language(&self) -> &'static str {
        self.0.language.name.name()
    }

    /// Broken regions and missing tokens that were skipped.
    #[getter]
    fn errors(&self) -> usize {
        match self.0.status {
            ParseStatus::Complete => 0,
            ParseStatus::Recovered { errors } => errors,
        }
    }

    /// Definitions and mentions in the order of the text.
    #[getter]
    fn symbols(&self) -> Vec<Symbol> {
        given(&self.0.symbols)
    }

    /// The definitions; those that answer to a name, a path or the end of one when it is given.
    #[pyo3(signature = (name = None))]
    fn definitions(&self, name: Option<&str>) -> PyResult<Vec<Symbol>> {
        match name {
            Some(name) => Ok(given(definitions_named(&self.0.symbols, name).map_err(Fault::from)?)),
            None => Ok(given(self.0.definitions())),
        }
    }

    /// The mentions; those of a name, or of a path's end, when it is given. By name alone: bindings are not resolved.
    #[pyo3(signature = (name = None))]
    fn references(&self, name: Option<&str>) -> PyResult<Vec<Symbol>> {
        match name {
            Some(name) => Ok(given(references_named(&self.0.symbols, name).map_err(Fault::from)?)),
            None => Ok(given(self.0.references())),
        }
    }

    /// The innermost definition around a byte.
    #[pyo3(signature = (byte, /))]
    fn at(&self, byte: usize) -> Option<Symbol> {
        symbol_at(&self.0.symbols, byte).cloned().map(Symbol)
    }

    /// The definitions as a tree of plain data.
    fn tree(&self) -> Plain<klbr_codeintel::Outline> {
        Plain(outline(&self.0.symbols))
    }

    fn __len__(&self) -> usize {
        self.0.symbols.len()
    }

    fn __repr__(&self) -> String {
        format!("<Extraction {}: {} symbols>", self.language(), self.0.symbols.len())
    }
}

/// One problem and where it is.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Diagnostic(pub(crate) Problem);

#[pymethods]
impl Diagnostic {
    /// The region; empty for a missing token.
    #[getter]
    fn range(&self) -> Range {
        Range(self.0.range)
    }

    /// `error`, `missing` or `invalid_utf8`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            DiagnosticKind::Error { .. } => "error",
            DiagnosticKind::Missing { .. } => "missing",
            DiagnosticKind::InvalidUtf8 => "invalid_utf8",
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Diagnostic {}>", self.0)
    }
}
