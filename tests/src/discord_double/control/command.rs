//! What the control may be told to do, as data.
//!
//! Owns the forms that both sides share. Refuses to do any of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::fault::Fault;
use super::super::gateway::Answer;
use super::super::gateway::session::Tricks;
use super::super::snowflake::Snowflake;
use super::super::world::{ChannelKind, Overwrite};

/// One thing that is done to the world, the gateway or the script: the body of `POST /control`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Makes a user; answers with the id.
    User(NewUser),
    /// Makes a guild with the bot in it; answers with the id.
    Guild(NewGuild),
    /// Makes a channel of a guild; answers with the id.
    Channel(NewChannel),
    /// Makes a thread; answers with the id.
    Thread(NewThread),
    /// Opens the direct conversation between the bot and someone; answers with the id.
    Direct {
        /// The other one.
        user: Snowflake,
    },
    /// Has someone join a guild.
    Join {
        /// The guild.
        guild: Snowflake,
        /// Who.
        user: Snowflake,
    },
    /// Has someone leave a guild; the bot is put out of it.
    Leave {
        /// The guild.
        guild: Snowflake,
        /// Who.
        user: Snowflake,
    },
    /// Makes a role; answers with the id.
    Role(NewRole),
    /// Sets what everyone may in a guild, as bits.
    Everyone {
        /// The guild.
        guild: Snowflake,
        /// The bits.
        permissions: u64,
    },
    /// Sets an exception in a channel, in place of the one for the same role or member.
    Overwrite {
        /// The channel.
        channel: Snowflake,
        /// The exception.
        overwrite: Overwrite,
    },
    /// Takes a channel or thread away, and its messages.
    DeleteChannel {
        /// The channel.
        channel: Snowflake,
    },
    /// Archives a thread, locks it, or neither.
    Archive {
        /// The thread.
        channel: Snowflake,
        /// Whether it is archived.
        archived: bool,
        /// Whether it is locked.
        locked: bool,
    },
    /// Says something; answers with the message's id.
    Say(Say),
    /// Changes what was said.
    Edit {
        /// The channel.
        channel: Snowflake,
        /// The message.
        message: Snowflake,
        /// The new words.
        content: String,
    },
    /// Takes a message away.
    Delete {
        /// The channel.
        channel: Snowflake,
        /// The message.
        message: Snowflake,
    },
    /// Adds a reaction, or takes it back.
    React(React),
    /// Has someone begin to write.
    Typing {
        /// The channel.
        channel: Snowflake,
        /// Who.
        user: Snowflake,
    },
    /// Says much; answers with a [`Burst`] when all is said.
    Burst(NewBurst),
    /// Sets some of the [`Settings`](super::super::Settings): an object with those.
    Set(Value),
    /// Adds rules for what goes wrong, after those that are there.
    Faults(Vec<Fault>),
    /// Forgets the rules, and lets go what waits at no gate.
    ClearFaults,
    /// Lets so many requests through a gate, come or to come.
    Release {
        /// The gate.
        gate: String,
        /// How many.
        times: usize,
    },
    /// Ends connections of the gateway; answers with how many.
    Cut {
        /// Those of this shard, or all.
        shard: Option<u64>,
        /// How.
        how: CutHow,
    },
    /// Prepares the answers to the next IDENTIFYs, in this order, before the truth comes again.
    OnIdentify(Vec<Answer>),
    /// Prepares the answers to the next RESUMEs, in this order, before the truth comes again.
    OnResume(Vec<Answer>),
    /// What is done with the next dispatches.
    Tricks(Tricks),
    /// Writes a text to the connections as it is; answers with how many.
    Raw {
        /// Those of this shard, or all.
        shard: Option<u64>,
        /// The text.
        text: String,
    },
    /// Dispatches any event to every session, numbered and kept like the others.
    Dispatch {
        /// Its name.
        name: String,
        /// Its data.
        data: Value,
    },
    /// Forgets all sessions: no resume succeeds, and connections are closed with 4009.
    Expire,
    /// Empties the record; numbers go on.
    ClearRecord,
}

/// A user to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewUser {
    /// The name that is unique on Discord.
    pub name: String,
    /// The name that is shown.
    pub global_name: Option<String>,
    /// Whether it is a bot.
    pub bot: bool,
    /// Whether it refuses the bot's direct messages.
    pub refuses_dms: bool,
    /// The guilds that it joins.
    pub guilds: Vec<Snowflake>,
}

/// A guild to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewGuild {
    /// Its name.
    pub name: String,
    /// Its owner; a stranger where none is named.
    pub owner: Option<Snowflake>,
    /// Its members beside the owner and the bot.
    pub members: Vec<Snowflake>,
}

/// A channel to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewChannel {
    /// Its guild.
    pub guild: Snowflake,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ChannelKind,
    /// Its category.
    pub parent: Option<Snowflake>,
}

/// A thread to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewThread {
    /// The channel that it is in.
    pub channel: Snowflake,
    /// Its name.
    pub name: String,
    /// The message that it begins under, which gives it its id.
    pub message: Option<Snowflake>,
    /// Who opens it; the bot where nobody is named.
    pub owner: Option<Snowflake>,
}

/// A role to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewRole {
    /// Its guild.
    pub guild: Snowflake,
    /// Its name.
    pub name: String,
    /// What it gives, as bits.
    pub permissions: u64,
    /// Who has it.
    pub members: Vec<Snowflake>,
}

/// Something to be said. Words mention whom they name: `<@id>`, `<@&id>`, `@everyone`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Say {
    /// Who says it.
    pub author: Snowflake,
    /// Where.
    pub channel: Snowflake,
    /// The words; not checked for their length.
    pub content: String,
    /// Users that it mentions beside those in its words.
    pub mentions: Vec<Snowflake>,
    /// The message that it answers, which mentions its author.
    pub reply_to: Option<Snowflake>,
    /// Attachments, as Discord writes them.
    pub attachments: Vec<Value>,
    /// Embeds, as Discord writes them.
    pub embeds: Vec<Value>,
    /// Stickers, as Discord writes them.
    pub stickers: Vec<Value>,
    /// Not dispatched: only the history has it.
    pub missed: bool,
}

/// A reaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct React {
    /// The channel.
    pub channel: Snowflake,
    /// The message.
    pub message: Snowflake,
    /// Who.
    pub user: Snowflake,
    /// `👍` or `name:id`.
    pub emoji: String,
    /// Whether it is taken back.
    pub removes: bool,
}

/// Many messages to be said, author after author, channel after channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewBurst {
    /// Who says them, in turn.
    pub authors: Vec<Snowflake>,
    /// Where, in turn.
    pub channels: Vec<Snowflake>,
    /// How many.
    pub count: usize,
    /// How many in a second; as fast as it goes where it is 0.
    pub per_second: u64,
    /// What each says, with its place in the burst behind it.
    pub content: String,
    /// Every so many mention the bot; none where it is 0.
    pub mention_every: usize,
}

/// A burst that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// The messages, in their order.
    pub ids: Vec<Snowflake>,
    /// Those that mention the bot.
    pub mentions: Vec<Snowflake>,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// How connections are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutHow {
    /// Without a word.
    Cut,
    /// With a close code.
    Close(u16),
    /// By asking the client to reconnect (op 7).
    Reconnect,
    /// By invalid session (op 9), resumable or not.
    Invalid(bool),
    /// By asking for a heartbeat (op 1), which ends nothing.
    Heartbeat,
}
