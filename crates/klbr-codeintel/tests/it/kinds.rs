//! One fixture per kind of symbol.
