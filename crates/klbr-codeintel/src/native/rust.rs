//! Rust by rust-analyzer's parser: its events, told in the same records as the walk over a tree tells.

mod depth;
mod reader;
mod uses;

use self::depth::is_shallow;
use crate::raw::Raws;
use ra_ap_parser::{Edition, LexedStr, Output, Step, SyntaxKind, TopEntryPoint};
use reader::Reader;

/// The last edition in which older code mostly reads too.
const EDITION: Edition = Edition::Edition2021;

pub(super) fn raws(text: &str) -> Option<Raws> {
    let lexed = LexedStr::new(EDITION, text);
    if lexed.errors().next().is_some() || !is_shallow(&lexed) {
        return None;
    }
    let output = TopEntryPoint::SourceFile.parse(&lexed.to_input(EDITION));
    let events = events(&output)?;
    Reader::new(text.as_bytes(), &lexed, &events).read()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Enter(SyntaxKind),
    Exit,
    Token(SyntaxKind, u8),
}

/// What the parser made of the text; `None` when it found a fault.
fn events(output: &Output) -> Option<Vec<Event>> {
    let mut events = Vec::with_capacity(1024);
    for step in output.iter() {
        match step {
            Step::Token { kind, n_input_tokens } => events.push(Event::Token(kind, n_input_tokens)),
            Step::Enter { kind } => events.push(Event::Enter(kind)),
            Step::Exit => events.push(Event::Exit),
            // In `x.0.1` the lexer sees a number where two fields are named: it closes one access, or two.
            Step::FloatSplit { ends_in_dot } => {
                events.extend([Event::Token(SyntaxKind::FLOAT_NUMBER, 1), Event::Exit]);
                events.extend((!ends_in_dot).then_some(Event::Exit));
            }
            Step::Error { .. } => return None,
        }
    }
    Some(events)
}
