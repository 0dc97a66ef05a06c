//! The proofs of the SQLite store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::print_stdout, reason = "what is measured or skipped is said")]

mod damage;
mod disk;
mod growth;
mod suite;
mod sync;
mod upkeep;
