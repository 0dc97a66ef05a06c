//! Any bytes as a streamed reply: reading never panics, always ends, and does not depend on the cuts.
//!
//! The first byte is the size of the pieces.

#![no_main]

use klbr_core::model::{Delta, Failure, Sampled};
use klbr_core::runtime::model::Piece;
use klbr_llm::stream::{End, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((size, bytes)) = input.split_first() else { return };
    let whole = read([bytes]);
    assert_eq!(read(bytes.chunks(usize::from(*size).max(1))), whole);
});

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (String, String, Result<Sampled, Failure>) {
    let mut reader = Reader::new();
    for chunk in chunks {
        reader.handle_bytes(chunk);
    }
    reader.handle_end(End::Closed);
    let (mut text, mut reasoning) = (String::new(), String::new());
    loop {
        match reader.poll().expect("a reply that has ended says so") {
            Ok(Piece::Delta(Delta::Scratch(piece))) => text.push_str(&piece),
            Ok(Piece::Delta(Delta::Think(piece))) => reasoning.push_str(&piece),
            Ok(Piece::Delta(Delta::CallStarted { .. })) => {}
            Ok(Piece::Finished(sampled)) => return (text, reasoning, Ok(sampled)),
            Err(failure) => return (text, reasoning, Err(failure)),
        }
    }
}
