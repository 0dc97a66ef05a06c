//! The calls that the adapter makes, one method each.

use serde_json::{Value, json};
use tokio::time::Instant;
use twilight_http::request::channel::reaction::RequestReactionType;
use twilight_http::routing::Route;
use twilight_model::id::Id;

use super::{Failure, Http};
use crate::id::{ChannelId, GuildId, MessageId, UserId};
use crate::payload::{Channel, Emoji, Message, User};
use crate::settings::AllowedMentions;

/// Messages of one page, at most.
pub(crate) const PAGE: u16 = 100;

/// Which part of a channel's history is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The newest.
    Newest,
    /// Those just before a message.
    Before(MessageId),
    /// Those just after a message.
    After(MessageId),
}

/// A message to be made.
#[derive(Clone, Debug)]
pub(crate) struct Post<'a> {
    pub(crate) channel: ChannelId,
    pub(crate) content: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) reply_to: Option<MessageId>,
    /// Whether it is refused when the message that it refers to is gone; else it is then sent without.
    pub(crate) needs_target: bool,
    pub(crate) mentions: AllowedMentions,
}

impl Http {
    /// Who the bot is.
    pub(crate) async fn me(&self, deadline: Instant) -> Result<Option<User>, Failure> {
        let body = self.call(&Route::GetCurrentUser, None, deadline).await?;
        Ok(User::read(&body))
    }

    /// The bot's application.
    pub(crate) async fn application(&self, deadline: Instant) -> Result<Value, Failure> {
        self.call(&Route::GetCurrentUserApplicationInfo, None, deadline).await
    }

    /// Where the gateway is, and how many shards and beginnings of sessions there are.
    pub(crate) async fn gateway(&self, deadline: Instant) -> Result<Value, Failure> {
        self.call(&Route::GetGatewayBot, None, deadline).await
    }

    /// One channel, and the whole of what Discord says of it.
    pub(crate) async fn channel(
        &self,
        channel: ChannelId,
        deadline: Instant,
    ) -> Result<(Option<Channel>, Value), Failure> {
        let body = self.call(&Route::GetChannel { channel_id: channel.get() }, None, deadline).await?;
        Ok((Channel::read(&body, None), body))
    }

    /// A guild with its roles.
    pub(crate) async fn guild(&self, guild: GuildId, deadline: Instant) -> Result<Value, Failure> {
        let route = Route::GetGuild { guild_id: guild.get(), with_counts: false };
        self.call(&route, None, deadline).await
    }

    /// A member of a guild.
    pub(crate) async fn member(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        self.call(&Route::GetMember { guild_id: guild.get(), user_id: user.get() }, None, deadline).await
    }

    /// Some of a channel's messages, oldest first. One that cannot be read is left out.
    pub(crate) async fn messages(
        &self,
        channel: ChannelId,
        page: Page,
        limit: u16,
        deadline: Instant,
    ) -> Result<Fetched, Failure> {
        let (before, after) = match page {
            Page::Newest => (None, None),
            Page::Before(message) => (Some(message.get()), None),
            Page::After(message) => (None, Some(message.get())),
        };
        let route =
            Route::GetMessages { after, around: None, before, channel_id: channel.get(), limit: Some(limit) };
        let body = self.call(&route, None, deadline).await?;
        let list =
            body.as_array().ok_or_else(|| Failure::Unclear("the messages cannot be read".to_owned()))?;
        let mut messages: Vec<Message> = list
            .iter()
            .filter_map(|value| {
                let message = Message::read(value);
                if message.is_none() {
                    tracing::warn!(%channel, "a message that cannot be read is passed over");
                }
                message
            })
            .collect();
        messages.sort_by_key(|message| message.id);
        Ok(Fetched { is_full: list.len() >= usize::from(limit), messages })
    }

    /// Makes a message, at most one for a nonce. None when it was made and the answer cannot be read.
    pub(crate) async fn post(&self, post: &Post<'_>, deadline: Instant) -> Result<Option<Message>, Failure> {
        let body = self
            .call(&Route::CreateMessage { channel_id: post.channel.get() }, Some(&post.body()), deadline)
            .await?;
        Ok(Message::read(&body))
    }

    /// Adds a reaction.
    pub(crate) async fn react(
        &self,
        channel: ChannelId,
        message: MessageId,
        emoji: &Emoji,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let emoji = match emoji.id.and_then(Id::new_checked) {
            Some(id) => RequestReactionType::Custom { id, name: Some(&emoji.name) },
            None => RequestReactionType::Unicode { name: &emoji.name },
        };
        let route =
            Route::CreateReaction { channel_id: channel.get(), emoji: &emoji, message_id: message.get() };
        self.call(&route, None, deadline).await.map(drop)
    }

    /// Shows that something is being composed there, for about ten seconds.
    pub(crate) async fn typing(&self, channel: ChannelId, deadline: Instant) -> Result<(), Failure> {
        let route = Route::CreateTypingTrigger { channel_id: channel.get() };
        self.call(&route, None, deadline).await.map(drop)
    }
}

/// A page of messages.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Oldest first.
    pub(crate) messages: Vec<Message>,
    /// Whether there may be more.
    pub(crate) is_full: bool,
}

impl Post<'_> {
    fn body(&self) -> Value {
        let kinds = [
            (self.mentions.users, "users"),
            (self.mentions.roles, "roles"),
            (self.mentions.everyone, "everyone"),
        ];
        let parse: Vec<&str> = kinds.iter().filter(|(may, _)| *may).map(|(_, kind)| *kind).collect();
        let mut body = json!({
            "content": self.content,
            "nonce": self.nonce,
            "enforce_nonce": true,
            "allowed_mentions": { "parse": parse, "replied_user": self.mentions.replied_user },
        });
        if let Some(message) = self.reply_to {
            body["message_reference"] = json!({
                "message_id": message.to_string(),
                "channel_id": self.channel.to_string(),
                "fail_if_not_exists": self.needs_target,
            });
        }
        body
    }
}

/// Whether a message was written by this user.
pub(crate) fn is_by(message: &Message, user: Option<UserId>) -> bool {
    message.author.as_ref().is_some_and(|author| Some(author.id) == user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_dis_8_nobody_is_pinged_unless_configuration_allows_it() {
        let post = Post {
            channel: ChannelId::new(1).unwrap(),
            content: "@everyone <@5>",
            nonce: "n",
            reply_to: MessageId::new(7),
            needs_target: false,
            mentions: AllowedMentions::default(),
        };
        let body = post.body();
        assert_eq!(body["allowed_mentions"], json!({"parse": [], "replied_user": false}));
        assert_eq!((&body["nonce"], &body["enforce_nonce"]), (&json!("n"), &json!(true)));
        assert_eq!(body["message_reference"]["fail_if_not_exists"], json!(false));
        let mentions = AllowedMentions { users: true, everyone: true, ..AllowedMentions::default() };
        assert_eq!(
            Post { mentions, ..post }.body()["allowed_mentions"]["parse"],
            json!(["users", "everyone"])
        );
    }
}
