//! The native half of the Python package `klbr`, as the module `klbr._native`.
//!
//! The tour: `wiring` puts an agent together, `agent` is what Python holds of one that runs, and `tool`, `channel` and
//! `model` are the ports that Python implements; `bridge` joins the two kinds of futures, `interpreter` is the one thread
//! that calls Python by itself. `store` reads an
//! agent's history. `context`, `chunk` and `code` are pure functions: they run with the interpreter's lock released.
//!
//! What Python users read is the package's own Python, which stands beside that of `klbr-pyhost`. This crate refuses
//! what is easier said there: defaults, schemas from type hints, conversions of values. It contains no unsafe code of
//! its own; pyo3's macros expand to some.

mod agent;
mod bridge;
mod channel;
mod chunk;
mod code;
mod context;
mod convert;
mod error;
mod fork;
mod interpreter;
mod model;
mod store;
mod tool;
mod wiring;

use pyo3::prelude::*;

/// The native half of klbr.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::agent::{Agent, Updates, update_schema};
    #[pymodule_export]
    use crate::chunk::{Tokenizer, chunk, halves};
    #[pymodule_export]
    use crate::code::edit::{Change, Edit, Planned, apply, content_hash, plan};
    #[pymodule_export]
    use crate::code::index::{Answer, Hit, Index};
    #[pymodule_export]
    use crate::code::symbol::{Diagnostic, Extraction, Range, Symbol};
    #[pymodule_export]
    use crate::code::{diagnostics, languages, outline, symbols};
    #[pymodule_export]
    use crate::context::{Context, Inserted, escape, prompt_name, resolve, unescape};
    #[pymodule_export]
    use crate::model::Pieces;
    #[pymodule_export]
    use crate::store::Store;
    #[pymodule_export]
    use crate::wiring::start;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fork::remember();
        crate::interpreter::start(module.py())
    }
}
