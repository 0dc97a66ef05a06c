//! An index over a tree of files, kept in memory (B-CODE-4).

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use klbr_codeintel::{
    Answer as Found, Cancel, Hit as Place, Index as Names, IndexOptions, IndexReport, Language, Query,
    SymbolKind, SymbolSearch,
};
use pyo3::prelude::*;

use super::symbol::Symbol;
use crate::convert::Plain;
use crate::error::Fault;

/// The names of a tree and where they stand.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Index(Mutex<Names>);

/// One symbol and the file it stands in.
#[pyclass(frozen, module = "klbr._native")]
#[derive(Clone)]
pub(crate) struct Hit(Place);

#[pymethods]
impl Hit {
    /// The file, relative to the root.
    #[getter]
    fn path(&self) -> &std::path::Path {
        &self.0.path
    }

    /// Its language.
    #[getter]
    fn language(&self) -> &'static str {
        self.0.language.name()
    }

    /// The hash of the text that the symbol's ranges are of.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash.to_string()
    }

    /// The symbol.
    #[getter]
    fn symbol(&self) -> Symbol {
        Symbol(self.0.symbol.clone())
    }

    fn __repr__(&self) -> String {
        format!("<Hit {}:{}>", self.0.path.display(), self.0.symbol)
    }
}

/// What was found, and what that rests on.
#[pyclass(frozen, module = "klbr._native")]
pub(crate) struct Answer(Found);

#[pymethods]
impl Answer {
    /// What was found, by path and place.
    #[getter]
    fn hits(&self) -> Vec<Hit> {
        self.0.hits.iter().cloned().map(Hit).collect()
    }

    /// Whether there is more than was asked for.
    #[getter]
    fn more(&self) -> bool {
        self.0.more
    }

    /// Files that it rests on.
    #[getter]
    fn searched(&self) -> usize {
        self.0.searched
    }

    /// What it rests on, for a reader.
    #[getter]
    fn coverage(&self) -> String {
        self.0.coverage().to_string()
    }
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, py: Python<'_>, query: Query) -> Answer {
        Answer(py.detach(|| self.lock().find(&query)))
    }
}

fn kinds(names: Option<Vec<String>>) -> Result<Vec<SymbolKind>, Fault> {
    let names = names.unwrap_or_default();
    let kind = |name: &String| {
        SymbolKind::parse(name).ok_or_else(|| Fault::Code(format!("there is no kind of symbol {name:?}")))
    };
    names.iter().map(kind).collect()
}

#[pymethods]
impl Index {
    /// Reads and parses a whole tree.
    #[staticmethod]
    #[pyo3(signature = (root, *, languages = None, threads = 0, hidden = false, obey_ignore_files = true))]
    fn build(
        py: Python<'_>,
        root: PathBuf,
        languages: Option<Vec<String>>,
        threads: usize,
        hidden: bool,
        obey_ignore_files: bool,
    ) -> PyResult<Self> {
        let languages = languages.unwrap_or_default();
        let languages = languages.iter().map(|name| Language::named(name)).collect::<Result<_, _>>();
        let languages = languages.map_err(Fault::from)?;
        let options =
            IndexOptions { languages, threads, hidden, obey_ignore_files, ..IndexOptions::default() };
        let built = py.detach(|| Names::build(&root, options, &Cancel::new(), &|_| {}));
        Ok(Index(Mutex::new(built.map_err(Fault::from)?.0)))
    }

    /// Takes in what has changed since; answers with a report.
    fn refresh(&self, py: Python<'_>) -> PyResult<Plain<IndexReport>> {
        let report = py.detach(|| self.lock().refresh(&Cancel::new(), &|_| {}));
        Ok(Plain(report.map_err(Fault::from)?))
    }

    /// The definitions that answer to a name, a path or the end of one.
    #[pyo3(signature = (name, *, kinds = None, below = None, limit = 1000))]
    fn definitions(
        &self,
        py: Python<'_>,
        name: &str,
        kinds: Option<Vec<String>>,
        below: Option<PathBuf>,
        limit: usize,
    ) -> PyResult<Answer> {
        let query = Query::definitions(name).map_err(Fault::from)?;
        Ok(self.find(py, Query { kinds: self::kinds(kinds)?, below, limit, ..query }))
    }

    /// The mentions of a name, or of a path's end.
    #[pyo3(signature = (name, *, kinds = None, below = None, limit = 1000))]
    fn references(
        &self,
        py: Python<'_>,
        name: &str,
        kinds: Option<Vec<String>>,
        below: Option<PathBuf>,
        limit: usize,
    ) -> PyResult<Answer> {
        let query = Query::references(name).map_err(Fault::from)?;
        Ok(self.find(py, Query { kinds: self::kinds(kinds)?, below, limit, ..query }))
    }

    /// The definitions whose names hold a text; case counts only if it has capitals.
    #[pyo3(signature = (text, *, kinds = None, below = None, limit = 1000))]
    fn search(
        &self,
        py: Python<'_>,
        text: String,
        kinds: Option<Vec<String>>,
        below: Option<PathBuf>,
        limit: usize,
    ) -> PyResult<Answer> {
        let search = SymbolSearch { text, kinds: self::kinds(kinds)?, below, limit };
        Ok(Answer(py.detach(|| self.lock().search(&search))))
    }

    /// Bytes of memory held for symbols.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().bytes())
    }
}
