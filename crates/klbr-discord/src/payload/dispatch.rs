//! The gateway's frames.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Emoji, Message, Read, User, read};
use crate::id::{ChannelId, GuildId, MessageId, UserId};

/// What a frame of the gateway says of itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope {
    /// Its operation.
    #[serde(default)]
    pub(crate) op: u64,
    /// Its sequence number, for a dispatch.
    #[serde(default, rename = "s")]
    pub(crate) sequence: Option<u64>,
    /// What it tells of, for a dispatch.
    #[serde(default, rename = "t")]
    pub(crate) name: Option<String>,
    /// What it tells.
    #[serde(default, rename = "d")]
    pub(crate) data: Value,
}

/// What a dispatch tells, as far as it concerns an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Dispatch {
    Ready(Ready),
    Resumed,
    Guild(Guild),
    /// A guild was left, or the bot was thrown out of it; not merely an outage.
    GuildLeft(GuildId),
    Channel(Channel),
    ChannelGone(ChannelId),
    ThreadMade(Channel),
    Message(Box<Message>),
    Edited(Box<Message>),
    Deleted {
        channel: ChannelId,
        messages: Vec<MessageId>,
    },
    Reacted(Reaction),
    Unreacted(Reaction),
    /// Known by name or not, it tells nothing that is shown.
    Nothing,
}

/// The beginning of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ready {
    pub(crate) me: User,
    /// The guilds that will be told of, each by a dispatch of its own.
    pub(crate) guilds: Vec<GuildId>,
}

/// A guild as it is told when a session begins, or when it is joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guild {
    pub(crate) id: GuildId,
    pub(crate) name: Option<String>,
    pub(crate) channels: Vec<Channel>,
}

/// What sort of place a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Two people.
    Dm,
    /// A few people, outside any guild.
    GroupDm,
    /// A guild's channel that can hold messages.
    Guild,
    /// A thread of a guild's channel.
    Thread,
    /// A guild's channel that holds none, such as a category or a forum.
    Mute,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Dm => "dm",
            Kind::GroupDm => "group dm",
            Kind::Guild => "guild",
            Kind::Thread => "thread",
            Kind::Mute => "no messages",
        }
    }

    /// The kind of a channel by Discord's number.
    pub(crate) fn of(number: u64) -> Self {
        match number {
            1 => Kind::Dm,
            3 => Kind::GroupDm,
            10..=12 => Kind::Thread,
            4 | 14..=16 => Kind::Mute,
            _ => Kind::Guild,
        }
    }
}

/// A channel, a thread or a direct message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) kind: Kind,
    pub(crate) guild: Option<GuildId>,
    pub(crate) name: Option<String>,
    pub(crate) parent: Option<ChannelId>,
    pub(crate) latest: Option<MessageId>,
    /// Whether it was made just now, for a thread.
    pub(crate) is_new: bool,
    /// Who made it, for a thread.
    pub(crate) owner: Option<UserId>,
}

/// A reaction that was added or taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reaction {
    pub(crate) user: UserId,
    /// Who that is, where Discord says so.
    pub(crate) name: Option<String>,
    pub(crate) is_bot: bool,
    pub(crate) channel: ChannelId,
    pub(crate) guild: Option<GuildId>,
    pub(crate) message: MessageId,
    /// Whose message it is on, where Discord says so.
    pub(crate) on: Option<UserId>,
    pub(crate) emoji: Emoji,
}

impl Dispatch {
    /// Reads a dispatch; none when it lacks what it cannot do without.
    pub(crate) fn read(name: &str, data: &Value) -> Option<Self> {
        Some(match name {
            "READY" => Dispatch::Ready(Ready {
                me: User::read(data.get("user")?)?,
                guilds: data.each("guilds", |guild| guild.id("id")),
            }),
            "RESUMED" => Dispatch::Resumed,
            "GUILD_CREATE" => Dispatch::Guild(Guild::read(data)?),
            "GUILD_DELETE" if !data.truth("unavailable") => Dispatch::GuildLeft(data.id("id")?),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_UPDATE" => {
                Dispatch::Channel(Channel::read(data, None)?)
            }
            "CHANNEL_DELETE" | "THREAD_DELETE" => Dispatch::ChannelGone(data.id("id")?),
            "THREAD_CREATE" => Dispatch::ThreadMade(Channel::read(data, None)?),
            "MESSAGE_CREATE" => Dispatch::Message(Box::new(Message::read(data)?)),
            "MESSAGE_UPDATE" => Dispatch::Edited(Box::new(Message::read(data)?)),
            "MESSAGE_DELETE" => {
                Dispatch::Deleted { channel: data.id("channel_id")?, messages: vec![data.id("id")?] }
            }
            "MESSAGE_DELETE_BULK" => {
                Dispatch::Deleted { channel: data.id("channel_id")?, messages: data.each("ids", read::id) }
            }
            "MESSAGE_REACTION_ADD" => Dispatch::Reacted(Reaction::read(data)?),
            "MESSAGE_REACTION_REMOVE" => Dispatch::Unreacted(Reaction::read(data)?),
            _ => Dispatch::Nothing,
        })
    }
}

impl Guild {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let id = value.id("id")?;
        let channel = |channel: &Value| Channel::read(channel, Some(id));
        let mut channels = value.each("channels", channel);
        channels.extend(value.each("threads", channel));
        let name = value.name("name").or_else(|| value.object("properties")?.name("name"));
        Some(Guild { id, name, channels })
    }
}

impl Channel {
    /// Reads a channel, which is in `guild` when it does not say so itself.
    pub(crate) fn read(value: &Value, guild: Option<GuildId>) -> Option<Self> {
        let names = value.each("recipients", User::read);
        let people = || names.iter().map(|user| user.name.as_str()).collect::<Vec<_>>().join(", ");
        Some(Channel {
            id: value.id("id")?,
            kind: Kind::of(value.number("type").unwrap_or_default()),
            guild: value.id("guild_id").or(guild),
            name: value.name("name").or_else(|| Some(people()).filter(|people| !people.is_empty())),
            parent: value.id("parent_id"),
            latest: value.id("last_message_id"),
            is_new: value.truth("newly_created"),
            owner: value.id("owner_id"),
        })
    }
}

impl Reaction {
    fn read(value: &Value) -> Option<Self> {
        let member = value.object("member");
        let user = member.and_then(|member| User::read(member.get("user")?));
        let nick = member.and_then(|member| member.name("nick"));
        Some(Reaction {
            user: value.id("user_id")?,
            is_bot: user.as_ref().is_some_and(|user| user.is_bot),
            name: nick.or_else(|| user.map(|user| user.name)),
            channel: value.id("channel_id")?,
            guild: value.id("guild_id"),
            message: value.id("message_id")?,
            on: value.id("message_author_id"),
            emoji: Emoji::read(value.get("emoji")?)?,
        })
    }
}
