//! What a model reads, as pure functions: results as they are inserted, escaping, paths.

use std::sync::{Mutex, MutexGuard, PoisonError};

use klbr_core::block;
use klbr_core::context::{
    Answer, Change, Content, Dedupe, Hygiene, Insertion, Limits, Output, Read, Recall, ResultId, paths,
};
use klbr_core::hash::Hash;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyDict;

use crate::error::Fault;

/// Results as a model reads them: numbered, capped, and named instead of repeated.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Context {
    limits: Limits,
    hygiene: Mutex<Hygiene>,
}

/// A result as it is inserted.
#[pyclass(frozen, get_all, module = "klbr._native")]
pub(crate) struct Inserted {
    /// Its id, such as `#0001`.
    id: String,
    /// What the model reads.
    text: String,
    /// The result in full.
    stored: String,
}

#[pymethods]
impl Inserted {
    fn __repr__(&self) -> String {
        format!("<Inserted {}: {} characters>", self.id, self.text.chars().count())
    }
}

impl From<Insertion> for Inserted {
    fn from(insertion: Insertion) -> Self {
        Inserted {
            id: insertion.id().to_string(),
            stored: insertion.stored().to_owned(),
            text: insertion.text,
        }
    }
}

impl Context {
    fn lock(&self) -> MutexGuard<'_, Hygiene> {
        self.hygiene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, py: Python<'_>, answer: impl FnOnce() -> Answer + Send) -> Inserted {
        py.detach(|| self.lock().insert(&answer(), &self.limits).into())
    }
}

fn limits(given: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    let Some(given) = given else { return Ok(Limits::default()) };
    let mut known = serde_json::json!(Limits::default());
    for (name, value) in given {
        let (name, value): (String, u64) = (name.extract()?, value.extract()?);
        match known.get_mut(&name) {
            Some(limit) => *limit = value.into(),
            None => return Err(Fault::Config(format!("there is no limit {name:?}")).into()),
        }
    }
    serde_json::from_value(known).map_err(|error| Fault::Config(error.to_string()).into())
}

fn result_id(text: &str) -> Result<ResultId, Fault> {
    text.parse::<ResultId>().map_err(|error| Fault::Config(error.to_string()))
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (**limits))]
    fn new(limits: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Context { limits: self::limits(limits)?, hygiene: Mutex::default() })
    }

    /// A read of a file: its lines, or the name of the earlier result that shows them already.
    #[pyo3(signature = (path, content, *, file = None, offset = None, limit = None))]
    fn read(
        &self,
        py: Python<'_>,
        path: String,
        content: PyBackedBytes,
        file: Option<String>,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> Inserted {
        let file = file.unwrap_or_else(|| path.clone());
        self.insert(py, || Answer::Read(Read { path, file, content: Content::of(&content), offset, limit }))
    }

    /// The change of a file, as a diff.
    #[pyo3(signature = (path, before, after, *, file = None, note = None))]
    fn change(
        &self,
        py: Python<'_>,
        path: String,
        before: Option<PyBackedBytes>,
        after: Option<PyBackedBytes>,
        file: Option<String>,
        note: Option<String>,
    ) -> Inserted {
        let file = file.unwrap_or_else(|| path.clone());
        self.insert(py, || {
            let content = |bytes: PyBackedBytes| Content::of(&bytes);
            Answer::Change(Change {
                path,
                file,
                before: before.map(content),
                after: after.map(content),
                note,
            })
        })
    }

    /// The answer of any other call.
    #[pyo3(signature = (text, *, tool = "", arguments = ""))]
    fn output(&self, py: Python<'_>, text: String, tool: &str, arguments: &str) -> Inserted {
        self.insert(py, || {
            let dedupe = Dedupe::of_tool(tool);
            Answer::Output(Output { tool: tool.to_owned(), args: arguments.to_owned(), text, dedupe })
        })
    }

    /// An earlier result again; `stored` is what was kept of it.
    #[pyo3(signature = (target, stored, *, offset = None, limit = None))]
    fn recall(
        &self,
        py: Python<'_>,
        target: String,
        stored: Option<String>,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> Inserted {
        self.insert(py, || Answer::Recall(Recall { target, stored, offset, limit }))
    }

    /// Why a file must not be changed now: it was never read, or is not as it was read. None when it may.
    #[pyo3(signature = (file, content))]
    fn unseen(&self, py: Python<'_>, file: &str, content: Option<PyBackedBytes>) -> Option<String> {
        py.detach(|| {
            let now = content.map(|bytes| Hash::of(&bytes));
            self.lock().check_change(file, now).err().map(|unseen| unseen.to_string())
        })
    }

    /// The table of reads that follows a summary of everything up to a result.
    fn table(&self, through: &str) -> PyResult<Option<String>> {
        Ok(self.lock().table(result_id(through)?, &self.limits))
    }

    /// Forgets the results up to this one, which a summary replaced.
    fn compacted(&self, through: &str) -> PyResult<()> {
        self.lock().compacted(result_id(through)?);
        Ok(())
    }

    /// The id of the newest result.
    #[getter]
    fn last(&self) -> Option<String> {
        self.lock().last().map(|id| id.to_string())
    }
}

/// People's text as it stands in a block: nothing in it can be read as one.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn escape(py: Python<'_>, text: PyBackedStr) -> String {
    py.detach(|| block::escape(&text).into_owned())
}

/// The inverse of `escape`.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn unescape(py: Python<'_>, text: PyBackedStr) -> String {
    py.detach(|| block::unescape(&text).into_owned())
}

/// A path as it is meant, by its text alone: absolute, without `.` and `..`.
#[pyfunction]
pub(crate) fn resolve(base: &str, path: &str) -> String {
    paths::resolve(base, path)
}

/// A file as a prompt names it: relative to the project's root, else to the home, else absolute.
#[pyfunction]
#[pyo3(signature = (root, home, file))]
pub(crate) fn prompt_name(root: &str, home: Option<&str>, file: &str) -> String {
    paths::prompt_name(root, home, file)
}
