//! What klbr-codeintel promises, against fixtures written by hand and against independent judges.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and must say how it went")]

mod bad_input;
mod edits;
mod index;
mod invariants;
mod kinds;
mod languages;
mod mutations;
mod random_edits;
mod truth;
