//! Who and what there is: users, guilds, channels, messages.
//!
//! Owns the state that both the API and the control change. Refuses to judge who may do what (`permission`), and to
//! write anything as JSON (`payload`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::permission;
use super::snowflake::{Snowflake, Source};

/// A person or a bot.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) id: Snowflake,
    pub(super) name: String,
    pub(super) global_name: Option<String>,
    pub(super) bot: bool,
    pub(super) accepts_dms: bool,
}

/// Someone's place in a guild.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) nick: Option<String>,
    pub(super) roles: Vec<Snowflake>,
    pub(super) joined: Snowflake,
}

/// A role of a guild; the one with the guild's own id is everyone's.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) id: Snowflake,
    pub(super) name: String,
    pub(super) permissions: u64,
    pub(super) position: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Guild {
    pub(super) id: Snowflake,
    pub(super) name: String,
    pub(super) owner: Snowflake,
    pub(super) roles: BTreeMap<Snowflake, Role>,
    pub(super) members: BTreeMap<Snowflake, Member>,
}

/// What a channel is, by Discord's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// A text channel of a guild.
    #[default]
    Text,
    /// A direct conversation.
    Dm,
    /// A voice channel.
    Voice,
    /// A group's direct conversation.
    Group,
    /// A category.
    Category,
    /// An announcement channel.
    Announcement,
    /// A public thread.
    PublicThread,
    /// A private thread.
    PrivateThread,
    /// A forum.
    Forum,
}

impl ChannelKind {
    pub(super) fn number(self) -> u8 {
        match self {
            ChannelKind::Text => 0,
            ChannelKind::Dm => 1,
            ChannelKind::Voice => 2,
            ChannelKind::Group => 3,
            ChannelKind::Category => 4,
            ChannelKind::Announcement => 5,
            ChannelKind::PublicThread => 11,
            ChannelKind::PrivateThread => 12,
            ChannelKind::Forum => 15,
        }
    }

    pub(super) fn is_thread(self) -> bool {
        matches!(self, ChannelKind::PublicThread | ChannelKind::PrivateThread)
    }

    /// Whether messages may stand in it.
    pub(super) fn is_spoken(self) -> bool {
        !matches!(self, ChannelKind::Category | ChannelKind::Forum)
    }
}

/// An exception to a channel's permissions, for a role or a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwrite {
    /// The role's or the member's id.
    pub id: Snowflake,
    /// Which of the two it is.
    pub is_member: bool,
    /// The bits that it gives.
    pub allow: u64,
    /// The bits that it takes.
    pub deny: u64,
}

/// What only threads have.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) archived: bool,
    pub(super) locked: bool,
    pub(super) owner: Snowflake,
}

#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) id: Snowflake,
    pub(super) kind: ChannelKind,
    pub(super) guild: Option<Snowflake>,
    pub(super) parent: Option<Snowflake>,
    pub(super) name: String,
    pub(super) recipients: Vec<Snowflake>,
    pub(super) overwrites: Vec<Overwrite>,
    pub(super) thread: Option<Thread>,
    pub(super) last: Option<Snowflake>,
    pub(super) messages: BTreeMap<Snowflake, Message>,
}

/// Who reacted with one emoji.
#[derive(Clone, Debug)]
pub(super) struct Reaction {
    pub(super) emoji: Emoji,
    pub(super) users: Vec<Snowflake>,
}

/// A unicode emoji, or one of a guild's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Emoji {
    pub(super) id: Option<Snowflake>,
    pub(super) name: String,
}

impl Emoji {
    /// Reads `👍` or `name:id`, as they stand in a path.
    pub(super) fn parse(text: &str) -> Option<Emoji> {
        if let Some((name, id)) = text.split_once(':') {
            let id = id.parse().ok()?;
            return (!name.is_empty()).then(|| Emoji { id: Some(id), name: name.to_owned() });
        }
        (!text.is_ascii()).then(|| Emoji { id: None, name: text.to_owned() })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: Snowflake,
    pub(super) channel: Snowflake,
    pub(super) author: Snowflake,
    pub(super) content: String,
    pub(super) edited_ms: Option<u64>,
    pub(super) mentions: Mentions,
    pub(super) reference: Option<Snowflake>,
    pub(super) attachments: Vec<Value>,
    pub(super) embeds: Vec<Value>,
    pub(super) stickers: Vec<Value>,
    pub(super) reactions: Vec<Reaction>,
    pub(super) tts: bool,
    pub(super) flags: u64,
}

/// Whom a message pings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mentions {
    /// Users.
    pub users: Vec<Snowflake>,
    /// Roles.
    pub roles: Vec<Snowflake>,
    /// `@everyone` or `@here`.
    pub everyone: bool,
}

impl Mentions {
    /// Whether anybody is pinged.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.roles.is_empty() && !self.everyone
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) ids: Source,
    pub(super) bot: Snowflake,
    pub(super) application: Snowflake,
    pub(super) users: BTreeMap<Snowflake, User>,
    pub(super) guilds: BTreeMap<Snowflake, Guild>,
    pub(super) channels: BTreeMap<Snowflake, Channel>,
}

impl World {
    /// A world in which nobody but the bot is.
    pub(super) fn new() -> World {
        let mut world = World {
            ids: Source::default(),
            bot: Snowflake(0),
            application: Snowflake(0),
            users: BTreeMap::new(),
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
        };
        // A bot's user and its application share one id, as they do for every application made since 2016.
        world.bot = world.add_user("klbr", None, true);
        world.application = world.bot;
        world
    }

    pub(super) fn add_user(&mut self, name: &str, global_name: Option<String>, bot: bool) -> Snowflake {
        let id = self.ids.next();
        self.users.insert(id, User { id, name: name.to_owned(), global_name, bot, accepts_dms: true });
        id
    }

    /// A guild owned by `owner`, or by a stranger, of which the bot is a member.
    pub(super) fn add_guild(&mut self, name: &str, owner: Option<Snowflake>) -> Snowflake {
        let owner = owner.unwrap_or_else(|| self.add_user("owner", None, false));
        let id = self.ids.next();
        let everyone =
            Role { id, name: "@everyone".to_owned(), permissions: permission::DEFAULT, position: 0 };
        let guild = Guild {
            id,
            name: name.to_owned(),
            owner,
            roles: BTreeMap::from([(id, everyone)]),
            members: BTreeMap::new(),
        };
        self.guilds.insert(id, guild);
        for user in [owner, self.bot] {
            self.join(id, user);
        }
        id
    }

    pub(super) fn join(&mut self, guild: Snowflake, user: Snowflake) {
        let joined = self.ids.next();
        if let Some(guild) = self.guilds.get_mut(&guild) {
            let member = Member { nick: None, roles: Vec::new(), joined };
            guild.members.entry(user).or_insert(member);
        }
    }

    pub(super) fn add_role(
        &mut self,
        guild: Snowflake,
        name: &str,
        permissions: u64,
        members: &[Snowflake],
    ) -> Snowflake {
        let id = self.ids.next();
        if let Some(guild) = self.guilds.get_mut(&guild) {
            let position = guild.roles.len();
            guild.roles.insert(id, Role { id, name: name.to_owned(), permissions, position });
            for user in members {
                if let Some(member) = guild.members.get_mut(user) {
                    member.roles.push(id);
                }
            }
        }
        id
    }

    pub(super) fn add_channel(
        &mut self,
        kind: ChannelKind,
        guild: Option<Snowflake>,
        parent: Option<Snowflake>,
        name: &str,
    ) -> Snowflake {
        let id = self.ids.next();
        self.add_channel_as(id, kind, guild, parent, name);
        id
    }

    /// A channel whose id is given: a thread under a message has the message's.
    pub(super) fn add_channel_as(
        &mut self,
        id: Snowflake,
        kind: ChannelKind,
        guild: Option<Snowflake>,
        parent: Option<Snowflake>,
        name: &str,
    ) {
        let thread = kind.is_thread().then(Thread::default);
        let channel = Channel {
            id,
            kind,
            guild,
            parent,
            name: name.to_owned(),
            recipients: Vec::new(),
            overwrites: Vec::new(),
            thread,
            last: None,
            messages: BTreeMap::new(),
        };
        self.channels.insert(id, channel);
    }

    /// The direct conversation between the bot and someone, and whether it is new.
    pub(super) fn direct(&mut self, with: Snowflake) -> (Snowflake, bool) {
        let is_it = |channel: &&Channel| channel.kind == ChannelKind::Dm && channel.recipients == [with];
        if let Some(channel) = self.channels.values().find(is_it) {
            return (channel.id, false);
        }
        let id = self.add_channel(ChannelKind::Dm, None, None, "");
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.recipients = vec![with];
        }
        (id, true)
    }

    pub(super) fn message(&self, channel: Snowflake, id: Snowflake) -> Option<&Message> {
        self.channels.get(&channel)?.messages.get(&id)
    }

    pub(super) fn message_mut(&mut self, channel: Snowflake, id: Snowflake) -> Option<&mut Message> {
        self.channels.get_mut(&channel)?.messages.get_mut(&id)
    }

    /// Puts a message at a channel's end.
    pub(super) fn insert(&mut self, message: Message) {
        if let Some(channel) = self.channels.get_mut(&message.channel) {
            channel.last = Some(message.id);
            channel.messages.insert(message.id, message);
        }
    }

    /// A draft of a message, without anything but its words.
    pub(super) fn draft(&mut self, channel: Snowflake, author: Snowflake, content: &str) -> Message {
        Message {
            id: self.ids.next(),
            channel,
            author,
            content: content.to_owned(),
            edited_ms: None,
            mentions: Mentions::default(),
            reference: None,
            attachments: Vec::new(),
            embeds: Vec::new(),
            stickers: Vec::new(),
            reactions: Vec::new(),
            tts: false,
            flags: 0,
        }
    }
}
