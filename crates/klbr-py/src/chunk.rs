//! Text cut into pieces for a search index, with the interpreter's lock released.

use std::ops::Range;

use klbr_workspace::chunk::{Cut, Estimate, FileTokenizer, Tokenizer as Rule, Words, chunks};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::error::Fault;

/// Tokens as a model's own tokenizer has them.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Tokenizer(FileTokenizer);

#[pymethods]
impl Tokenizer {
    /// Reads the bytes of a `tokenizer.json`.
    #[staticmethod]
    fn from_json(py: Python<'_>, data: PyBackedBytes) -> PyResult<Self> {
        let read = py.detach(|| FileTokenizer::from_json(&data));
        Ok(Tokenizer(read.map_err(|error| Fault::Config(error.to_string()))?))
    }

    /// How many tokens a text has.
    fn count(&self, py: Python<'_>, text: PyBackedStr) -> usize {
        py.detach(|| self.0.tokens(&text).len())
    }
}

/// What says where tokens stand.
#[derive(FromPyObject)]
pub(crate) enum Tokens {
    /// `words` or `estimate`.
    Named(String),
    /// A model's own.
    File(Py<Tokenizer>),
}

enum Chosen<'a> {
    Words,
    Estimate,
    File(&'a FileTokenizer),
}

impl Rule for Chosen<'_> {
    fn tokens(&self, text: &str) -> Vec<Range<usize>> {
        match self {
            Chosen::Words => Words.tokens(text),
            Chosen::Estimate => Estimate.tokens(text),
            Chosen::File(tokenizer) => tokenizer.tokens(text),
        }
    }
}

/// Cuts a text into pieces of at most `size` tokens; a piece repeats up to `overlap` tokens of the one before.
#[pyfunction]
#[pyo3(
    signature = (text, *, size = 480, overlap = 64, tokens = Tokens::Named("estimate".to_owned())),
    text_signature = "(text, *, size=480, overlap=64, tokens='estimate')"
)]
pub(crate) fn chunk(
    py: Python<'_>,
    text: PyBackedStr,
    size: usize,
    overlap: usize,
    tokens: Tokens,
) -> PyResult<Vec<String>> {
    let chosen = match &tokens {
        Tokens::Named(name) if name == "words" => Chosen::Words,
        Tokens::Named(name) if name == "estimate" => Chosen::Estimate,
        Tokens::Named(name) => {
            let text = format!("tokens are \"words\", \"estimate\" or a Tokenizer, not {name:?}");
            return Err(Fault::Config(text).into());
        }
        Tokens::File(tokenizer) => Chosen::File(&tokenizer.get().0),
    };
    Ok(py.detach(|| chunks(&text, Cut { size, overlap }, &chosen)))
}

/// Splits a piece in two at the best place about its middle; None when it has fewer than two characters.
#[pyfunction]
#[pyo3(signature = (piece, /))]
pub(crate) fn halves(piece: &str) -> Option<(&str, &str)> {
    klbr_workspace::chunk::halves(piece)
}
