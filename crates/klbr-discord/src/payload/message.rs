//! A message and what comes with it.

use serde_json::Value;

use super::Read;
use crate::id::{ChannelId, GuildId, MessageId, UserId};

/// A message, as the gateway and the API tell it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) channel: ChannelId,
    /// Absent in direct messages, and in what the API answers.
    pub(crate) guild: Option<GuildId>,
    /// Absent in partial updates.
    pub(crate) author: Option<User>,
    pub(crate) content: String,
    pub(crate) kind: u64,
    /// When it was last edited, as Discord writes it.
    pub(crate) edited: Option<String>,
    pub(crate) mentions: Vec<User>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) embeds: Vec<Embed>,
    pub(crate) stickers: Vec<String>,
    pub(crate) poll: Option<String>,
    /// The message that it replies to, by id.
    pub(crate) reference: Option<MessageId>,
    /// The message that it replies to, where Discord sends it along.
    pub(crate) quoted: Option<Quoted>,
    /// The texts of messages that it forwards.
    pub(crate) forwarded: Vec<String>,
}

/// Who wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: UserId,
    /// The name as people see it. Hostile text.
    pub(crate) name: String,
    pub(crate) is_bot: bool,
}

/// A file that came with a message. Its name is hostile text and never a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    pub(crate) bytes: Option<u64>,
    pub(crate) url: String,
    pub(crate) description: Option<String>,
}

/// What Discord shows of a link, or what a bot has drawn up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Embed {
    pub(crate) parts: Vec<String>,
    pub(crate) url: Option<String>,
}

/// The message that a message replies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quoted {
    pub(crate) author: Option<String>,
    pub(crate) text: String,
}

/// An emoji: of Unicode, or of a guild.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Emoji {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) is_animated: bool,
}

/// The kinds of messages that a person wrote: plain, reply, command, and the start of a thread.
const WRITTEN: &[u64] = &[0, 19, 20, 21, 23];

/// The reference of a message that forwards another.
const FORWARD: u64 = 1;

impl Message {
    /// Reads a message; none without its id and its channel.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let reference = value.object("message_reference");
        let is_reply = reference.is_some_and(|reference| reference.number("type") != Some(FORWARD));
        Some(Message {
            id: value.id("id")?,
            channel: value.id("channel_id")?,
            guild: value.id("guild_id"),
            author: author(value),
            content: value.words("content"),
            kind: value.number("type").unwrap_or_default(),
            edited: value.name("edited_timestamp"),
            mentions: value.each("mentions", User::read),
            attachments: value.each("attachments", Attachment::read),
            embeds: value.each("embeds", Embed::read),
            stickers: value.each("sticker_items", |sticker| sticker.name("name")),
            poll: value.object("poll").map(poll),
            reference: reference.filter(|_| is_reply).and_then(|reference| reference.id("message_id")),
            quoted: value.object("referenced_message").map(Quoted::read),
            forwarded: value
                .each("message_snapshots", |snapshot| snapshot.object("message")?.name("content")),
        })
    }

    /// What happened, for a message that nobody wrote: a member who joined, a message that was pinned.
    pub(crate) fn system(&self) -> Option<&'static str> {
        if WRITTEN.contains(&self.kind) {
            return None;
        }
        Some(match self.kind {
            1 => "recipient added",
            2 => "recipient removed",
            3 => "call",
            4 => "channel renamed",
            5 => "channel icon changed",
            6 => "message pinned",
            7 => "member joined",
            8..=11 => "server boosted",
            12 => "channel followed",
            18 => "thread created",
            22 => "invite reminder",
            24 => "auto moderation",
            46 => "poll ended",
            _ => "notice",
        })
    }
}

fn author(message: &Value) -> Option<User> {
    let mut author = User::read(message.get("author")?)?;
    if let Some(nick) = message.object("member").and_then(|member| member.name("nick")) {
        author.name = nick;
    }
    author.is_bot |= message.get("webhook_id").is_some_and(|id| !id.is_null());
    Some(author)
}

fn poll(poll: &Value) -> String {
    let question = poll.object("question").map(|question| question.words("text")).unwrap_or_default();
    let answers = poll.each("answers", |answer| answer.object("poll_media")?.name("text"));
    format!("{question}: {}", answers.join(" / "))
}

impl User {
    /// Reads a user; none without an id.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let id = value.id("id")?;
        let nick = value.object("member").and_then(|member| member.name("nick"));
        let name = nick.or_else(|| value.name("global_name")).or_else(|| value.name("username"));
        Some(User { id, name: name.unwrap_or_else(|| id_name(id)), is_bot: value.truth("bot") })
    }
}

/// What someone without a name is called.
pub(crate) fn id_name(id: UserId) -> String {
    format!("user {id}")
}

impl Attachment {
    fn read(value: &Value) -> Option<Self> {
        Some(Attachment {
            name: value.name("filename").unwrap_or_else(|| "unnamed".to_owned()),
            media_type: value.name("content_type"),
            bytes: value.number("size"),
            url: value.name("url")?,
            description: value.name("description"),
        })
    }
}

impl Embed {
    fn read(value: &Value) -> Option<Self> {
        let mut parts: Vec<String> =
            ["title", "description"].iter().filter_map(|key| value.name(key)).collect();
        parts.extend(
            value.each("fields", |field| Some(format!("{}: {}", field.words("name"), field.words("value")))),
        );
        let url = value.name("url");
        (!parts.is_empty() || url.is_some()).then_some(Embed { parts, url })
    }
}

impl Quoted {
    fn read(value: &Value) -> Self {
        Quoted { author: author(value).map(|author| author.name), text: value.words("content") }
    }
}

impl Emoji {
    /// Reads an emoji; none without a name.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let id = value.id("id");
        let name = value.name("name").or_else(|| id.map(|_| "deleted".to_owned()))?;
        Some(Emoji { name, id, is_animated: value.truth("animated") })
    }

    /// As a message would hold it.
    pub(crate) fn written(&self) -> String {
        match self.id {
            Some(id) => format!("<{}:{}:{id}>", if self.is_animated { "a" } else { "" }, self.name),
            None => self.name.clone(),
        }
    }
}
