//! `discord_fetch_history`: what was said in a conversation.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{Class, Outcome};
use klbr_core::block::{Block, Name, is_attribute_name};
use klbr_core::event::Body;
use klbr_core::runtime::tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DEADLINE, alias, deadline, failed, invalid, place};
use crate::discord::Inner;
use crate::http::{PAGE, Page, is_by};
use crate::id::MessageId;
use crate::intake::message_body;
use crate::payload::{Kind, Message};
use crate::world::Place;

/// Messages that are fetched when the call does not say.
const USUAL: u16 = 20;

/// Reads a conversation's history.
pub(crate) struct FetchHistory(Arc<Inner>);

impl FetchHistory {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        FetchHistory(inner)
    }
}

/// What `discord_fetch_history` is called with.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct HistoryArguments {
    /// The id of the conversation, like d1 or conv:d1, or the id of a channel as Discord has it. May be left out when
    /// this turn's messages come from one conversation only.
    #[serde(default)]
    conversation_id: Option<String>,
    /// Only messages before this one, like msg:123.
    #[serde(default)]
    before_message_id: Option<String>,
    /// Only messages after this one, like msg:123. Not together with before_message_id.
    #[serde(default)]
    after_message_id: Option<String>,
    /// How many messages, 1 to 100; 20 by default.
    #[serde(default)]
    limit: Option<i64>,
}

#[async_trait]
impl Tool for FetchHistory {
    type Arguments = HistoryArguments;
    const NAME: &'static str = "discord_fetch_history";
    const DESCRIPTION: &'static str = "Reads messages of a Discord conversation, oldest first: the newest ones, or those \
                                       before or after a message. Use it when what you were shown lacks context.";
    const CLASS: Class = Class::Pure;

    fn deadline(&self) -> Duration {
        DEADLINE
    }

    async fn call(&self, context: CallContext, call: HistoryArguments) -> Outcome {
        let inner = &*self.0;
        let limit = match call.limit {
            None => USUAL,
            Some(limit) => match u16::try_from(limit) {
                Ok(limit) if (1..=PAGE).contains(&limit) => limit,
                _ => return invalid(format!("limit is {limit}, and has to be from 1 to {PAGE}")),
            },
        };
        let page = match page(&call) {
            Ok(page) => page,
            Err(why) => return invalid(why),
        };
        let (conversation, channel) = match place(inner, &context.attempt, call.conversation_id.as_deref()) {
            Ok(place) => place,
            Err(refusal) => return refusal,
        };
        match inner.http.messages(channel, page, limit, deadline()).await {
            Ok(fetched) => {
                let frame = Block::new(Name::Channel)
                    .attr("source", inner.settings.source.as_str())
                    .attr("conversation", alias(&context.attempt, &conversation))
                    .attr("messages", fetched.messages.len().to_string());
                let messages = fetched.messages.iter().map(|message| block(inner, message));
                Outcome::confirmed(frame.children(messages).to_string())
            }
            Err(failure) => failed(&failure),
        }
    }
}

fn page(call: &HistoryArguments) -> Result<Page, String> {
    let given = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(MessageId::read)
    };
    let read = |id: Option<Result<MessageId, _>>| {
        id.transpose().map_err(|error: crate::id::IdError| error.to_string())
    };
    match (read(given(&call.before_message_id))?, read(given(&call.after_message_id))?) {
        (None, None) => Ok(Page::Newest),
        (Some(before), None) => Ok(Page::Before(before)),
        (None, Some(after)) => Ok(Page::After(after)),
        (Some(_), Some(_)) => Err("before_message_id and after_message_id do not go together".to_owned()),
    }
}

/// A message as a frame would show it.
fn block(inner: &Inner, message: &Message) -> Block {
    let world = inner.world();
    let place = world.place(message.channel).cloned().unwrap_or_else(|| Place::new(Kind::Guild));
    let Body { author, text, attributes } = message_body(&world, &place, message);
    let mut block = Block::new(Name::Message)
        .attr("ref", message.id.external())
        .attr("time", message.id.at().to_string())
        .maybe_attr("author", author.as_ref().map(|author| &*author.name))
        .maybe_attr("author_id", author.as_ref().map(|author| &*author.id))
        .maybe_attr("written_by", is_by(message, world.me).then_some("you"))
        .maybe_attr("edited", message.edited.as_deref());
    for (name, value) in &attributes {
        if is_attribute_name(name) && block.attribute(name).is_none() {
            block = block.attr(name, &**value);
        }
    }
    block.text(text)
}
