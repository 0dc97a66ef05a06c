//! Escaping is reversible, and what parses as blocks is exactly what those blocks are written as.

#![no_main]

use klbr_core::block::{Block, Name, escape, parse, render, unescape};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert_eq!(unescape(&escape(text)), text);
    if let Ok(blocks) = parse(text) {
        assert_eq!(render(&blocks), text);
    }
    let block = Block::new(Name::Message).attr("author", text).text(text);
    let frame = [Block::new(Name::Channel).text(text).child(block)];
    assert_eq!(parse(&render(&frame)), Ok(frame.to_vec()));
});
