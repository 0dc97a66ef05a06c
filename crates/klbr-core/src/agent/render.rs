//! How a frame reads: blocks of the harness's own around what people wrote (`C-MSG-1`, `B-SPEECH-5`).

use std::sync::Arc;

use super::frame::{Fold, Selection};
use crate::block::{Block, Name, is_attribute_name, render};
use crate::event::{Body, Header, SourceKind};
use crate::state::State;
use crate::time::Timestamp;

/// What a frame says besides its events.
pub(super) struct Surroundings<'a> {
    pub(super) interrupted_by: Option<&'a str>,
    /// What has changed since the model was told.
    pub(super) note: Option<Block>,
}

/// Renders a selection; the bodies stand in the order of its events.
pub(super) fn frame(
    state: &State,
    selection: &Selection,
    bodies: &[Body],
    surroundings: Surroundings<'_>,
) -> String {
    let mut blocks = Vec::new();
    if let Some(by) = surroundings.interrupted_by {
        blocks.push(Block::new(Name::Interrupted).attr("by", by));
    }
    blocks.extend(receipts(selection, bodies));
    blocks.extend(selection.folds.iter().map(|fold| folded(state, fold)));
    let mut open: Option<(&Header, Block)> = None;
    for (header, body) in selection.events.iter().zip(bodies) {
        let again = state.still_open.contains(&header.id);
        match header.source.kind {
            SourceKind::Operator => blocks.push(operator(header, body, again)),
            SourceKind::System => {}
            SourceKind::Channel | SourceKind::Timer | SourceKind::Job | SourceKind::Team => {
                let same = |(other, _): &(&Header, Block)| other.place() == header.place();
                let (first, block) = match open.take() {
                    Some(current) if same(&current) => current,
                    other => {
                        blocks.extend(other.map(|(_, block)| block));
                        (header, place(state, header))
                    }
                };
                open = Some((first, block.child(message(header, body, again))));
            }
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks.extend(surroundings.note);
    render(&blocks)
}

/// A message of the harness itself (`B-SPEECH-6`).
pub(super) fn nudge(text: &str) -> Arc<str> {
    render(&[Block::new(Name::Nudge).text(text)]).into()
}

/// A request of the harness's that is not a nudge, such as the one for a summary.
pub(super) fn instructions(text: &str) -> Arc<str> {
    render(&[Block::new(Name::Instructions).text(text)]).into()
}

/// The day of an instant in UTC, as a note tells it.
pub(super) fn date(at: Timestamp) -> String {
    at.to_string().split('T').next().unwrap_or_default().into()
}

fn operator(header: &Header, body: &Body, again: bool) -> Block {
    let block =
        Block::new(Name::Operator).attr("id", header.id.to_string()).attr("time", header.at.to_string());
    if again {
        return block.attr("shown", "above").text("still open");
    }
    with_attributes(block, body).text(&body.text)
}

fn place(state: &State, header: &Header) -> Block {
    let alias = header.conversation.as_ref().and_then(|conversation| state.alias(conversation));
    Block::new(Name::Channel)
        .attr("source", &*header.source.instance)
        .attr("kind", header.source.kind.as_str())
        .maybe_attr("conversation", alias.map(|alias| &**alias))
}

fn folded(state: &State, fold: &Fold) -> Block {
    let (instance, conversation) = &fold.place;
    let alias = conversation.as_ref().and_then(|conversation| state.alias(conversation));
    let line = Block::new(Name::Message)
        .attr("folded", fold.events.len().to_string())
        .attr("from", fold.first.to_string())
        .attr("to", fold.last.to_string())
        .text("older messages that are not shown here; history_search finds them");
    Block::new(Name::Channel)
        .attr("source", &**instance)
        .maybe_attr("conversation", alias.map(|alias| &**alias))
        .child(line)
}

fn message(header: &Header, body: &Body, again: bool) -> Block {
    let block = Block::new(Name::Message)
        .attr("id", header.id.to_string())
        .attr("ref", &*header.external_id)
        .attr("time", header.at.to_string())
        .maybe_attr("author", body.author.as_ref().map(|author| &*author.name))
        .maybe_attr("author_id", body.author.as_ref().map(|author| &*author.id));
    if again {
        return block.attr("shown", "above").text("still open");
    }
    with_attributes(block, body).text(&body.text)
}

fn with_attributes(mut block: Block, body: &Body) -> Block {
    for (name, value) in &body.attributes {
        if is_attribute_name(name) && block.attribute(name).is_none() {
            block = block.attr(name, &**value);
        }
    }
    block
}

fn receipts(selection: &Selection, bodies: &[Body]) -> Option<Block> {
    let texts: Vec<&str> = selection
        .events
        .iter()
        .zip(bodies)
        .filter(|(header, _)| header.source.kind == SourceKind::System)
        .map(|(_, body)| &*body.text)
        .collect();
    (!texts.is_empty()).then(|| Block::new(Name::Receipts).text(texts.join("\n")))
}
