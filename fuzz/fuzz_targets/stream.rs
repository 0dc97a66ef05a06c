//! Any bytes as a streamed reply: reading never panics, always ends, and does not depend on the cuts.
//!
//! The first byte is the distance between cuts. Run it with `cargo fuzz run stream` on a nightly compiler.

#![no_main]

#[path = "../../crates/klbr-llm/tests/it/outcome.rs"]
mod outcome;

use libfuzzer_sys::fuzz_target;
use outcome::{read, read_cut};

fuzz_target!(|input: &[u8]| {
    let Some((distance, bytes)) = input.split_first() else { return };
    let cuts = (0..bytes.len()).step_by(usize::from(*distance).max(1));
    assert_eq!(read_cut(bytes, cuts), read([bytes]));
});
