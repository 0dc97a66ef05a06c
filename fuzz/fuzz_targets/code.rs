//! Any bytes as source of each language: reading never panics, answers are in order, edits leave what they do not name.

#![no_main]

#[path = "../../crates/klbr-codeintel/tests/it/invariants.rs"]
mod invariants;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| invariants::hold_for(input));
