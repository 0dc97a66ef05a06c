//! Probe.
use pyo3::prelude::*;

/// A function.
#[pyfunction]
fn f(a: &str) -> usize { a.len() }

/// A class.
#[pyclass(frozen)]
struct A { #[pyo3(get)] b: u64 }
#[pymethods]
impl A {
    #[new]
    fn new() -> Self { A { b: 1 } }
    fn __repr__(&self) -> String { String::new() }
}

/// The module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{f, A};
}
