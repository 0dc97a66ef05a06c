//! How a frame reads: blocks of the harness's own around what people wrote (`C-MSG-1`, `B-SPEECH-5`).

use std::sync::Arc;

use super::frame::{Fold, Selection};
use crate::attention::Item;
use crate::block::{Block, Name, is_attribute_name, render};
use crate::event::{Body, Change, Header, SourceKind};
use crate::state::State;
use crate::time::Timestamp;

/// What a frame says besides its events.
pub(super) struct Surroundings<'a> {
    pub(super) interrupted_by: Option<&'a str>,
    /// What has changed since the model was told.
    pub(super) note: Option<Block>,
    /// How channels want to be used, by instance name.
    pub(super) instructions: Vec<(&'a str, &'a str)>,
}

/// Characters of a message that a preview quotes.
const QUOTED: usize = 160;

/// Renders a selection; the bodies are those that it asks for, in its order.
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
    let shown: Vec<(&Header, &Body)> = selection.events.iter().zip(bodies).collect();
    let mut open: Option<(&Header, Block)> = None;
    for &(header, body) in &shown {
        if header.joins.is_some_and(|older| selection.shows(older)) {
            continue;
        }
        let version = shown.iter().rfind(|(other, _)| other.joins == Some(header.id));
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
                open = Some((first, block.child(message(header, body, version, again))));
            }
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks.extend(pending(state, selection, &bodies[shown.len()..]));
    blocks.extend(
        surroundings
            .instructions
            .iter()
            .map(|(channel, text)| Block::new(Name::Instructions).attr("channel", &**channel).text(&**text)),
    );
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
    let alias = header.conversation.as_ref().and_then(|one| state.aliases.alias(one));
    Block::new(Name::Channel)
        .attr("source", &*header.source.instance)
        .attr("kind", header.source.kind.as_str())
        .maybe_attr("conversation", alias.map(|alias| &**alias))
}

fn folded(state: &State, fold: &Fold) -> Block {
    let (instance, conversation) = &fold.place;
    let alias = conversation.as_ref().and_then(|one| state.aliases.alias(one));
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

/// What waits for a decision: a quotation, or only a reference to what this frame shows anyway (`B-DIS-4`).
fn pending(state: &State, selection: &Selection, quoted: &[Body]) -> Option<Block> {
    let mut quoted = quoted.iter();
    let line = |item: &Item| {
        let alias = item.conversation.as_ref().and_then(|one| state.aliases.alias(one));
        let block = Block::new(Name::Message)
            .attr("ref", &*item.key.external_id)
            .attr("bucket", item.bucket.as_str())
            .maybe_attr("conversation", alias.map(|alias| &**alias));
        if selection.shows(item.event) {
            return block.attr("shown", "above");
        }
        let Some(body) = quoted.next() else { return block };
        let text: String = body.text.chars().take(QUOTED).collect();
        let more = if text.len() < body.text.len() { "…" } else { "" };
        block
            .maybe_attr("author", body.author.as_ref().map(|author| &*author.name))
            .attr("time", item.at.to_string())
            .text(format!("{text}{more}"))
    };
    let lines: Vec<Block> = selection.pending.iter().map(line).collect();
    let block = lines.into_iter().fold(Block::new(Name::Pending), Block::child);
    (!selection.pending.is_empty()).then_some(block)
}

fn message(header: &Header, body: &Body, version: Option<&(&Header, &Body)>, again: bool) -> Block {
    let changes = |change: Change| {
        let amends = header.amends.as_ref().filter(|amends| amends.change == change);
        amends.map(|amends| &*amends.of)
    };
    let block = Block::new(Name::Message)
        .attr("id", header.id.to_string())
        .attr("ref", &*header.external_id)
        .attr("time", header.at.to_string())
        .maybe_attr("author", body.author.as_ref().map(|author| &*author.name))
        .maybe_attr("author_id", body.author.as_ref().map(|author| &*author.id))
        .maybe_attr(Change::Edited.as_str(), changes(Change::Edited))
        .maybe_attr(Change::Deleted.as_str(), changes(Change::Deleted))
        .maybe_attr(Change::Reacted.as_str(), changes(Change::Reacted));
    if again {
        return block.attr("shown", "above").text("still open");
    }
    match version {
        Some((newer, body)) => {
            with_attributes(block.attr("version", newer.at.to_string()), body).text(&body.text)
        }
        None => with_attributes(block, body).text(&body.text),
    }
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
