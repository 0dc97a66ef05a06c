//! What a reader makes of bytes, without the places where its deltas are cut.

use klbr_core::model::{Delta, Failure, Sampled};
use klbr_core::runtime::model::Piece;
use klbr_llm::stream::{End, Reader};

/// What came of a stream: what was shown of it, and how it ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) end: Result<Sampled, Failure>,
}

/// Reads chunks to their end.
pub(crate) fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut reader = Reader::new();
    let (mut text, mut reasoning, mut end) = (String::new(), String::new(), None);
    let mut drain = |reader: &mut Reader| {
        while let Some(piece) = reader.poll() {
            assert!(end.is_none(), "nothing follows the end");
            match piece {
                Ok(Piece::Delta(Delta::Scratch(piece))) => text.push_str(&piece),
                Ok(Piece::Delta(Delta::Think(piece))) => reasoning.push_str(&piece),
                Ok(Piece::Delta(Delta::CallStarted { name })) => assert!(!name.is_empty()),
                Ok(Piece::Finished(sampled)) => end = Some(Ok(sampled)),
                Err(failure) => end = Some(Err(failure)),
            }
        }
    };
    for chunk in chunks {
        reader.handle_bytes(chunk);
        drain(&mut reader);
    }
    reader.handle_end(End::Closed);
    drain(&mut reader);
    Outcome { text, reasoning, end: end.expect("every stream ends") }
}

/// Reads `bytes` cut before each of these offsets.
pub(crate) fn read_cut(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Outcome {
    let mut from = 0;
    let mut chunks: Vec<&[u8]> = Vec::new();
    for cut in cuts.into_iter().filter(|cut| *cut <= bytes.len()) {
        chunks.push(&bytes[from..cut]);
        from = cut;
    }
    chunks.push(&bytes[from..]);
    read(chunks)
}
