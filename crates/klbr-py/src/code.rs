//! Code intelligence: text in, plain data out, with the interpreter's lock released. B-CODE-* hold as in Rust.

pub(crate) mod edit;
pub(crate) mod index;
pub(crate) mod symbol;

use std::path::PathBuf;

use klbr_codeintel::{Extractor, Language, extract_symbols};
use pyo3::prelude::*;

use crate::convert::Source;
use crate::error::Fault;
use symbol::{Diagnostic, Extraction};

/// Every definition and mention of a text.
#[pyfunction]
#[pyo3(signature = (source, *, path = None, language = None))]
pub(crate) fn symbols(
    py: Python<'_>,
    source: Source,
    path: Option<PathBuf>,
    language: Option<String>,
) -> PyResult<Extraction> {
    let extracted = py.detach(|| extract_symbols(path.as_deref(), &source, language.as_deref()));
    Ok(Extraction(extracted.map_err(Fault::from)?))
}

/// The definitions of a text as lines for a reader.
#[pyfunction]
#[pyo3(signature = (source, *, path = None, language = None))]
pub(crate) fn outline(
    py: Python<'_>,
    source: Source,
    path: Option<PathBuf>,
    language: Option<String>,
) -> PyResult<String> {
    let told = py.detach(|| {
        let extraction = extract_symbols(path.as_deref(), &source, language.as_deref())?;
        Ok(klbr_codeintel::outline(&extraction.symbols).to_string())
    });
    told.map_err(|error: klbr_codeintel::ExtractError| Fault::from(error).into())
}

/// Where a text leaves its grammar; empty for a text without fault.
#[pyfunction]
#[pyo3(signature = (source, *, path = None, language = None))]
pub(crate) fn diagnostics(
    py: Python<'_>,
    source: Source,
    path: Option<PathBuf>,
    language: Option<String>,
) -> PyResult<Vec<Diagnostic>> {
    let found =
        py.detach(|| Extractor::default().diagnostics(path.as_deref(), source.as_ref(), language.as_deref()));
    Ok(found.map_err(Fault::from)?.items.into_iter().map(Diagnostic).collect())
}

/// The languages of this build, by their names.
#[pyfunction]
pub(crate) fn languages() -> Vec<&'static str> {
    Language::ALL.iter().map(|language| language.name()).collect()
}
