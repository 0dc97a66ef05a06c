//! What the API does with channels and threads.
//!
//! Owns who may see and enter one. Refuses their messages.

use serde_json::{Value, json};

use super::super::payload;
use super::super::permission::{self, CREATE_PUBLIC_THREADS, VIEW_CHANNEL};
use super::super::snowflake::Snowflake;
use super::super::state::{Change, State};
use super::super::world::{Channel, ChannelKind, Thread};
use super::{Done, Refused};

/// A channel that the bot may see, and what it may do there.
pub(super) fn visible(state: &State, id: Snowflake) -> Result<(&Channel, u64), Refused> {
    let world = &state.world;
    let Some(channel) = world.channels.get(&id) else {
        return Err(Refused::new(404, 10003, "Unknown Channel"));
    };
    let may = permission::in_channel(world, channel, world.bot);
    if may & VIEW_CHANNEL == 0 {
        return Err(Refused::new(403, 50001, "Missing Access"));
    }
    Ok((channel, may))
}

/// What the bot needs to speak in a channel.
pub(super) fn speaking(channel: &Channel) -> u64 {
    if channel.kind.is_thread() { permission::SEND_MESSAGES_IN_THREADS } else { permission::SEND_MESSAGES }
}

pub(super) fn needs(may: u64, wanted: u64) -> Result<(), Refused> {
    if may & wanted == 0 { Err(Refused::new(403, 50013, "Missing Permissions")) } else { Ok(()) }
}

pub(super) fn get(state: &State, id: Snowflake) -> Result<Done, Refused> {
    let (channel, _) = visible(state, id)?;
    Ok(Done::with(payload::channel(&state.world, channel)))
}

pub(super) fn open_direct(state: &mut State, body: &Value) -> Result<Done, Refused> {
    let with = serde_json::from_value::<Snowflake>(body["recipient_id"].clone());
    let world = &mut state.world;
    match with.ok().filter(|user| *user != world.bot && world.users.contains_key(user)) {
        Some(user) => {
            let (id, _) = world.direct(user);
            get(state, id)
        }
        None => Err(Refused::new(400, 50033, "Invalid Recipient(s)")),
    }
}

pub(super) fn typing(state: &mut State, id: Snowflake) -> Result<Done, Refused> {
    let (channel, may) = visible(state, id)?;
    needs(may, speaking(channel))?;
    let bot = state.world.bot;
    state.types(id, bot);
    Ok(Done::empty())
}

/// A thread in a channel, under a message or by itself.
pub(super) fn open_thread(
    state: &mut State,
    id: Snowflake,
    under: Option<Snowflake>,
    body: &Value,
) -> Result<Done, Refused> {
    let (channel, may) = visible(state, id)?;
    if !matches!(channel.kind, ChannelKind::Text | ChannelKind::Announcement) {
        return Err(Refused::new(400, 50024, "Cannot execute action on this channel type"));
    }
    needs(may, CREATE_PUBLIC_THREADS)?;
    let name = body["name"].as_str().unwrap_or_default();
    if !(1..=100).contains(&name.chars().count()) {
        let words = "Must be between 1 and 100 in length.";
        return Err(Refused::form("name", "BASE_TYPE_BAD_LENGTH", words));
    }
    if let Some(message) = under {
        if !channel.messages.contains_key(&message) {
            return Err(Refused::new(404, 10008, "Unknown Message"));
        }
        if state.world.channels.contains_key(&message) {
            return Err(Refused::new(400, 160_004, "A thread has already been created for this message"));
        }
    }
    // Without a type a thread is private, by a default that Discord calls a mistake of its own.
    let is_public = under.is_some() || body["type"] == 11;
    let kind = if is_public { ChannelKind::PublicThread } else { ChannelKind::PrivateThread };
    let bot = state.world.bot;
    let thread = state.open_thread((id, under), kind, name, bot);
    let channel = state.world.channels.get(&thread).map(|of| payload::channel(&state.world, of));
    Ok(Done::made(channel.unwrap_or_default()))
}

pub(super) fn join(state: &State, id: Snowflake) -> Result<Done, Refused> {
    let (channel, _) = visible(state, id)?;
    if channel.thread.is_none() {
        return Err(Refused::new(400, 50024, "Cannot execute action on this channel type"));
    }
    Ok(Done::empty())
}

impl State {
    /// Makes a thread, and tells of it.
    pub(in super::super) fn open_thread(
        &mut self,
        (parent, under): (Snowflake, Option<Snowflake>),
        kind: ChannelKind,
        name: &str,
        owner: Snowflake,
    ) -> Snowflake {
        let guild = self.world.channels.get(&parent).and_then(|channel| channel.guild);
        let id = under.unwrap_or_else(|| self.world.ids.next());
        self.world.add_channel_as(id, kind, guild, Some(parent), name);
        if let Some(channel) = self.world.channels.get_mut(&id) {
            channel.thread = Some(Thread { owner, ..Thread::default() });
        }
        self.tell_channel(id, Change::Made);
        id
    }
}

/// Discord's words for a thread that is closed.
pub(super) fn unlocked(channel: &Channel) -> Result<(), Refused> {
    match &channel.thread {
        Some(thread) if thread.locked => Err(Refused::new(400, 160_005, "Thread is locked")),
        _ => Ok(()),
    }
}

/// A page of users.
pub(super) fn users(state: &State, ids: &[Snowflake]) -> Value {
    json!(ids.iter().map(|id| payload::user_of(&state.world, *id)).collect::<Vec<Value>>())
}
