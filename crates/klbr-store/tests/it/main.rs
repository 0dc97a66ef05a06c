//! The proofs of the SQLite store.

mod suite;
