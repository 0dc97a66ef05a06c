//! `discord_list_conversations`: where there is anyone to speak to.

use std::sync::Arc;

use async_trait::async_trait;
use klbr_core::action::{Class, FailureKind, Outcome};
use klbr_core::block::{Block, Name, render};
use klbr_core::event::Conversation;
use klbr_core::runtime::tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::conversations::{KnownConversation, conversation, known};
use crate::discord::Inner;
use crate::intake::short;

/// Conversations that are listed, at most.
const MOST: usize = 200;
/// Characters of a name that are shown.
const NAME: usize = 100;

/// Lists the conversations that are known.
pub(crate) struct ListConversations(Arc<Inner>);

impl ListConversations {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        ListConversations(inner)
    }
}

/// `discord_list_conversations` takes no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListArguments {}

#[async_trait]
impl Tool for ListConversations {
    type Arguments = ListArguments;
    const NAME: &'static str = "discord_list_conversations";
    const DESCRIPTION: &'static str = "Lists the Discord conversations that are known: their ids, kinds, names and last \
                                       activity. Use it to find a conversation that is not of this turn.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, _: ListArguments) -> Outcome {
        let inner = &*self.0;
        if let Err(error) = inner.load().await {
            return Outcome::failed(FailureKind::Refused, format!("Failed: {error}."));
        }
        let world = inner.world();
        let instance = &inner.settings.source;
        let mut listed = known(&world);
        // One that has an alias is known too, whatever was lost of it.
        for (one, _) in context.attempt.conversations.iter().filter(|(one, _)| *one.instance == **instance) {
            let is_listed = listed.iter().any(|known| known.id == *one.id);
            let place = one.id.parse().ok().and_then(|channel| Some((channel, world.place(channel)?)));
            if let (false, Some((channel, place))) = (is_listed, place) {
                listed.push(conversation(&world, channel, place));
            }
        }
        let more = listed.len().saturating_sub(MOST);
        let blocks: Vec<Block> =
            listed.iter().take(MOST).map(|known| block(&context, instance, known)).collect();
        let text = match (blocks.is_empty(), more) {
            (true, _) => "no conversation is known yet".to_owned(),
            (false, 0) => render(&blocks),
            (false, more) => format!("{}\nand {more} more, heard longer ago", render(&blocks)),
        };
        Outcome::confirmed(text)
    }
}

fn block(context: &CallContext, instance: &str, known: &KnownConversation) -> Block {
    let conversation = Conversation { instance: instance.into(), id: known.id.as_str().into() };
    let alias = context.attempt.conversations.alias(&conversation);
    let name = |name: &Option<String>| name.as_deref().map(|name| short(name, NAME));
    Block::new(Name::Channel)
        .maybe_attr("conversation", alias.map(|alias| &**alias))
        .attr("channel_id", known.id.as_str())
        .attr("kind", &*known.kind)
        .maybe_attr("name", name(&known.name))
        .maybe_attr("parent", name(&known.parent))
        .maybe_attr("guild", name(&known.guild))
        .maybe_attr("latest", known.latest.as_deref())
        .maybe_attr("last_activity", known.last_activity.as_deref())
}
