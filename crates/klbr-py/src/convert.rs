//! Plain data between Rust and Python: what serde can write becomes dictionaries, lists and strings.

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;

/// A value that becomes plain Python data when it reaches Python.
pub(crate) struct Plain<T>(pub(crate) T);

impl<'py, T: Serialize> IntoPyObject<'py> for Plain<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        pythonize::pythonize(py, &self.0).map_err(PyErr::from)
    }
}

/// Reads what the Python half has written; `what` names it.
pub(crate) fn read<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|error| Fault::Config(format!("{what}: {error}")))
}

/// The text of a source file: a string, or its bytes. Kept without a copy while the lock is released.
#[derive(FromPyObject)]
pub(crate) enum Source {
    /// A string.
    Text(PyBackedStr),
    /// Bytes, which need not be UTF-8.
    Bytes(PyBackedBytes),
}

impl AsRef<[u8]> for Source {
    fn as_ref(&self) -> &[u8] {
        match self {
            Source::Text(text) => text.as_bytes(),
            Source::Bytes(bytes) => bytes,
        }
    }
}
