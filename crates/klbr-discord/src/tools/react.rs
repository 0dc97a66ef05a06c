//! `discord_react`: a reaction to a message.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{Class, Outcome};
use klbr_core::runtime::tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DEADLINE, alias, deadline, failed, invalid, place};
use crate::discord::Inner;
use crate::id::MessageId;
use crate::payload::Emoji;

/// The longest emoji of Unicode that is taken, in characters: a family with skin tones has eleven.
const LONGEST: usize = 16;

/// Adds reactions.
pub(crate) struct React(Arc<Inner>);

impl React {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        React(inner)
    }
}

/// What `discord_react` is called with.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReactArguments {
    /// The message to react to, like msg:123.
    message_id: String,
    /// A Unicode emoji like 👍, or a server's own in its exact form <:name:id> or <a:name:id>, copied and never made up.
    emoji: String,
    /// The id of the conversation, like d1 or conv:d1, or the id of a channel as Discord has it. May be left out when
    /// this turn's messages come from one conversation only.
    #[serde(default)]
    conversation_id: Option<String>,
}

#[async_trait]
impl Tool for React {
    type Arguments = ReactArguments;
    const NAME: &'static str = "discord_react";
    const DESCRIPTION: &'static str =
        "Adds a reaction to a Discord message. Often enough where a message would be too much.";
    const CLASS: Class = Class::Idempotent;

    fn deadline(&self) -> Duration {
        DEADLINE
    }

    async fn call(&self, context: CallContext, call: ReactArguments) -> Outcome {
        let inner = &*self.0;
        let (message, emoji) = match (MessageId::read(&call.message_id), parse_emoji(&call.emoji)) {
            (Ok(message), Ok(emoji)) => (message, emoji),
            (Err(error), _) => return invalid(format!("message_id: {error}")),
            (_, Err(why)) => return invalid(why),
        };
        let (conversation, channel) = match place(inner, &context.attempt, call.conversation_id.as_deref()) {
            Ok(place) => place,
            Err(refusal) => return refusal,
        };
        match inner.http.react(channel, message, &emoji, deadline()).await {
            Ok(()) => {
                let alias = alias(&context.attempt, &conversation);
                Outcome::confirmed(format!("reacted conv:{alias} msg:{message}"))
            }
            Err(failure) => failed(&failure),
        }
    }
}

/// Reads an emoji: of Unicode, or a server's own in its exact form.
fn parse_emoji(text: &str) -> Result<Emoji, String> {
    let text = text.trim();
    let refused = || {
        let shown: String = text.chars().take(40).collect();
        Err(format!("{shown:?} is neither a Unicode emoji like 👍 nor <:name:id> or <a:name:id>"))
    };
    if let Some(inside) = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')) {
        let parts: Vec<&str> = inside.split(':').collect();
        let [kind @ ("" | "a"), name, id] = parts[..] else { return refused() };
        let is_name =
            (2..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let id = id.parse::<MessageId>().ok().filter(|_| is_name);
        let Some(id) = id else { return refused() };
        return Ok(Emoji { name: name.to_owned(), id: Some(id.get()), is_animated: kind == "a" });
    }
    let is_letter =
        |c: char| c.is_alphabetic() || c.is_whitespace() || c.is_control() || "<>:/?@".contains(c);
    let is_emoji = !text.is_ascii() && text.chars().count() <= LONGEST && !text.contains(is_letter);
    match is_emoji {
        true => Ok(Emoji { name: text.to_owned(), id: None, is_animated: false }),
        false => refused(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_dis_8_an_emoji_is_unicode_or_in_its_exact_form() {
        for emoji in ["👍", "❤️", "🏳️‍🌈", "1️⃣", "👨‍👩‍👧‍👦", "<:rarity:123>", "<a:party_blob:456>"]
        {
            assert_eq!(parse_emoji(emoji).unwrap().written(), emoji);
        }
        for wrong in [
            "",
            "thumbsup",
            ":thumbsup:",
            "rarity:123",
            "<:rarity:>",
            "<b:x:1>",
            "<:a/../b:1>",
            "ok",
            "é",
            "<@5>",
            "1",
        ] {
            assert!(parse_emoji(wrong).is_err(), "{wrong:?}");
        }
    }
}
