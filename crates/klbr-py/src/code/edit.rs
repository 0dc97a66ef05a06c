//! Checked edits of symbols: planned on a text, applied to files (B-CODE-3).

use std::path::PathBuf;

use klbr_codeintel::{
    Applied, Change as Changed, ContentHash, Edit as Asked, Editor, Extent, FileEdit, Planned as Proven,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::symbol::Range;
use crate::convert::{Plain, Source};
use crate::error::Fault;

/// One edit of one definition, which `target` has to name alone.
#[pyclass(frozen, from_py_object, module = "klbr._native")]
#[derive(Clone)]
pub(crate) struct Edit(Asked);

#[pymethods]
impl Edit {
    /// Puts `text` in the place of the definition; an empty text removes it.
    #[staticmethod]
    #[pyo3(signature = (target, text, *, attached = false))]
    fn replace_symbol(target: String, text: String, attached: bool) -> Self {
        let extent = if attached { Extent::Attached } else { Extent::Definition };
        Edit(Asked::ReplaceSymbol { target, text, extent })
    }

    /// Puts `text` in the place of the body.
    #[staticmethod]
    fn replace_symbol_body(target: String, text: String) -> Self {
        Edit(Asked::ReplaceSymbolBody { target, text })
    }

    /// Puts `text` on lines of its own before the definition.
    #[staticmethod]
    fn insert_before(target: String, text: String) -> Self {
        Edit(Asked::InsertBefore { target, text })
    }

    /// Puts `text` on lines of its own after the definition.
    #[staticmethod]
    fn insert_after(target: String, text: String) -> Self {
        Edit(Asked::InsertAfter { target, text })
    }

    /// Renames the definition and its mentions within the file.
    #[staticmethod]
    fn rename_in_file(target: String, name: String) -> Self {
        Edit(Asked::RenameInFile { target, name })
    }

    fn __repr__(&self) -> String {
        format!("<Edit of {}>", self.0.target())
    }
}

/// One region that an edit replaced.
#[pyclass(frozen, module = "klbr._native")]
#[derive(Clone)]
pub(crate) struct Change(Changed);

#[pymethods]
impl Change {
    /// The definition that the edit named.
    #[getter]
    fn target(&self) -> String {
        self.0.target.to_string()
    }

    /// The region in the old text.
    #[getter]
    fn before(&self) -> Range {
        Range(self.0.before)
    }

    /// The region in the new text.
    #[getter]
    fn after(&self) -> Range {
        Range(self.0.after)
    }
}

/// A proven edit that is not written.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Planned(Proven);

#[pymethods]
impl Planned {
    /// The whole new text, as bytes.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.text)
    }

    /// The whole new text; bytes that are no UTF-8 become U+FFFD.
    #[getter]
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.text).into_owned()
    }

    /// The difference as a unified diff.
    #[getter]
    fn diff(&self) -> &str {
        &self.0.diff
    }

    /// The new text's hash.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash.to_string()
    }

    /// What differs; everything else is byte-identical.
    #[getter]
    fn changes(&self) -> Vec<Change> {
        self.0.changes.iter().cloned().map(Change).collect()
    }
}

/// Plans edits on a text, all or none, each against the text as it is. Writes nothing.
#[pyfunction]
#[pyo3(signature = (source, edits, *, path = None, language = None))]
pub(crate) fn plan(
    py: Python<'_>,
    source: Source,
    edits: Vec<Edit>,
    path: Option<PathBuf>,
    language: Option<String>,
) -> PyResult<Planned> {
    let edits: Vec<Asked> = edits.into_iter().map(|edit| edit.0).collect();
    let planned =
        py.detach(|| Editor::default().plan(path.as_deref(), source.as_ref(), language.as_deref(), &edits));
    Ok(Planned(planned.map_err(Fault::from)?))
}

/// Applies edits to files, all of all files or none. Each file comes with the hash that its edits were planned on.
#[pyfunction]
#[pyo3(signature = (files, /))]
pub(crate) fn apply(
    py: Python<'_>,
    files: Vec<(PathBuf, String, Vec<Edit>)>,
) -> PyResult<Plain<Vec<Applied>>> {
    let mut batch = Vec::new();
    for (path, expected, edits) in files {
        let expected = expected
            .parse()
            .map_err(|error: klbr_codeintel::ContentHashError| Fault::Edit(error.to_string()))?;
        batch.push(FileEdit {
            path,
            expected,
            language: None,
            edits: edits.into_iter().map(|e| e.0).collect(),
        });
    }
    let applied = py.detach(|| Editor::default().apply(&batch));
    Ok(Plain(applied.map_err(Fault::from)?))
}

/// The hash of a text, which an edit of its file names.
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(crate) fn content_hash(py: Python<'_>, source: Source) -> String {
    py.detach(|| ContentHash::of(source.as_ref()).to_string())
}
