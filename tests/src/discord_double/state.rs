//! What the API, the gateway and the control share, under one lock.
//!
//! Owns the lock, and the changes that are also dispatched: whoever changes the world, the sessions hear of it in the
//! same breath. Refuses to know who asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::fault::Faults;
use super::gateway::Answers;
use super::gateway::session::{self, Dispatch, Sessions};
use super::limit::Limits;
use super::nonce::Nonces;
use super::payload::{self, Shown};
use super::permission;
use super::record::Record;
use super::settings::Settings;
use super::snowflake::Snowflake;
use super::world::{ChannelKind, Emoji, Message, Reaction, World};
use crate::control::Gates;

/// The double.
#[derive(Debug)]
pub(super) struct Double {
    state: Mutex<State>,
    pub(super) token: String,
    /// `127.0.0.1:port`.
    pub(super) address: String,
    pub(super) gates: Gates,
}

impl Double {
    pub(super) fn new(token: String, address: String) -> Double {
        let state = State {
            world: World::new(),
            sessions: Sessions::default(),
            record: Record::new(),
            settings: Settings::default(),
            faults: Faults::default(),
            limits: Limits::default(),
            nonces: Nonces::default(),
            answers: Answers::default(),
        };
        Double { state: Mutex::new(state), token, address, gates: Gates::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) world: World,
    pub(super) sessions: Sessions,
    pub(super) record: Record,
    pub(super) settings: Settings,
    pub(super) faults: Faults,
    pub(super) limits: Limits,
    pub(super) nonces: Nonces,
    pub(super) answers: Answers,
}

impl State {
    pub(super) fn dispatch(&mut self, event: Dispatch) {
        self.sessions.dispatch(&event, self.settings.replay);
    }

    /// Whether the bot sees a channel.
    fn sees(&self, channel: Snowflake) -> bool {
        let Some(channel) = self.world.channels.get(&channel) else { return false };
        permission::in_channel(&self.world, channel, self.world.bot) & permission::VIEW_CHANNEL != 0
    }

    fn guild_of(&self, channel: Snowflake) -> Option<Snowflake> {
        self.world.channels.get(&channel).and_then(|channel| channel.guild)
    }

    /// An event about a channel, where the bot sees it.
    fn about(
        &mut self,
        channel: Snowflake,
        name: &'static str,
        (in_guild, direct): (u64, u64),
        data: Value,
        stripped: Option<Value>,
    ) {
        let guild = self.guild_of(channel);
        if self.sees(channel) {
            let intents = if guild.is_some() { in_guild } else { direct };
            self.dispatch(Dispatch { name, guild, intents, data, stripped });
        }
    }

    fn tell_message(&mut self, name: &'static str, message: &Message, nonce: Option<&Value>) {
        let mut data = payload::message(&self.world, message, Shown::Event);
        if let Some(nonce) = nonce {
            data["nonce"] = nonce.clone();
        }
        let stripped = (!payload::is_readable(&self.world, message)).then(|| {
            let mut stripped = data.clone();
            payload::strip(&mut stripped);
            stripped
        });
        let intents = (session::GUILD_MESSAGES, session::DIRECT_MESSAGES);
        self.about(message.channel, name, intents, data, stripped);
    }

    /// Puts a message into its channel, and tells of it.
    pub(super) fn post(&mut self, message: Message, nonce: Option<&Value>) {
        self.world.insert(message.clone());
        self.tell_message("MESSAGE_CREATE", &message, nonce);
    }

    /// Tells that a message is no longer what it was.
    pub(super) fn edited(&mut self, channel: Snowflake, id: Snowflake) {
        if let Some(message) = self.world.message(channel, id).cloned() {
            self.tell_message("MESSAGE_UPDATE", &message, None);
        }
    }

    /// Takes a message out; whether it was there.
    pub(super) fn delete(&mut self, channel: Snowflake, id: Snowflake) -> bool {
        let removed = self.world.channels.get_mut(&channel).and_then(|of| of.messages.remove(&id));
        if removed.is_none() {
            return false;
        }
        self.record.delete(id);
        let mut data = json!({"id": id, "channel_id": channel});
        if let Some(guild) = self.guild_of(channel) {
            data["guild_id"] = json!(guild);
        }
        let intents = (session::GUILD_MESSAGES, session::DIRECT_MESSAGES);
        self.about(channel, "MESSAGE_DELETE", intents, data, None);
        true
    }

    /// Adds someone's reaction, or takes it back; whether that changed anything.
    pub(super) fn react(
        &mut self,
        (channel, id): (Snowflake, Snowflake),
        user: Snowflake,
        emoji: &Emoji,
        adds: bool,
    ) -> bool {
        let Some(message) = self.world.message_mut(channel, id) else { return false };
        let author = message.author;
        let place = message.reactions.iter().position(|reaction| reaction.emoji == *emoji);
        let had = place.is_some_and(|place| message.reactions[place].users.contains(&user));
        if had == adds {
            return false;
        }
        match place {
            Some(place) if adds => message.reactions[place].users.push(user),
            Some(place) => message.reactions[place].users.retain(|other| *other != user),
            None => message.reactions.push(Reaction { emoji: emoji.clone(), users: vec![user] }),
        }
        message.reactions.retain(|reaction| !reaction.users.is_empty());
        let mut data = json!({
            "user_id": user, "channel_id": channel, "message_id": id,
            "emoji": payload::emoji(emoji), "burst": false, "type": 0,
        });
        if let Some(guild) = self.guild_of(channel) {
            data["guild_id"] = json!(guild);
            if let Some(member) = payload::member_of(&self.world, guild, user).filter(|_| adds) {
                data["member"] = member;
            }
        }
        if adds {
            data["message_author_id"] = json!(author);
        }
        let name = if adds { "MESSAGE_REACTION_ADD" } else { "MESSAGE_REACTION_REMOVE" };
        let intents = (session::GUILD_REACTIONS, session::DIRECT_REACTIONS);
        self.about(channel, name, intents, data, None);
        true
    }

    /// Someone begins to write.
    pub(super) fn types(&mut self, channel: Snowflake, user: Snowflake) {
        let seconds = super::snowflake::now_ms() / 1000;
        let mut data = json!({"channel_id": channel, "user_id": user, "timestamp": seconds});
        if let Some(guild) = self.guild_of(channel) {
            data["guild_id"] = json!(guild);
            if let Some(member) = payload::member_of(&self.world, guild, user) {
                data["member"] = member;
            }
        }
        let intents = (session::GUILD_TYPING, session::DIRECT_TYPING);
        self.about(channel, "TYPING_START", intents, data, None);
    }

    /// Tells that a channel or thread was made, changed or is about to go.
    pub(super) fn tell_channel(&mut self, id: Snowflake, what: Change) {
        let Some(channel) = self.world.channels.get(&id) else { return };
        let name = match (channel.kind.is_thread(), what) {
            (false, Change::Made) => "CHANNEL_CREATE",
            (false, Change::Changed) => "CHANNEL_UPDATE",
            (false, Change::Gone) => "CHANNEL_DELETE",
            (true, Change::Made) => "THREAD_CREATE",
            (true, Change::Changed) => "THREAD_UPDATE",
            (true, Change::Gone) => "THREAD_DELETE",
        };
        let mut data = payload::channel(&self.world, channel);
        if what == Change::Made && channel.kind.is_thread() {
            data["newly_created"] = true.into();
        }
        // Since API v8 a bot is not told of a new direct conversation.
        if channel.kind != ChannelKind::Dm {
            self.about(id, name, (session::GUILDS, 0), data, None);
        }
    }

    /// Tells that the bot was put out of a guild.
    pub(super) fn tell_out(&mut self, id: Snowflake) {
        self.dispatch(Dispatch {
            name: "GUILD_DELETE",
            guild: Some(id),
            intents: session::GUILDS,
            data: json!({"id": id}),
            stripped: None,
        });
    }

    /// Tells that a guild is there for the bot.
    pub(super) fn tell_guild(&mut self, id: Snowflake) {
        let Some(guild) = self.world.guilds.get(&id) else { return };
        let data = payload::guild_create(&self.world, guild);
        self.dispatch(Dispatch {
            name: "GUILD_CREATE",
            guild: Some(id),
            intents: session::GUILDS,
            data,
            stripped: None,
        });
    }
}

/// What happened to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Made,
    Changed,
    Gone,
}
