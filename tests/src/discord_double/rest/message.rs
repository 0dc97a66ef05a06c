//! What the API does with messages and reactions.
//!
//! Owns the checks of a message's form, the nonce, and the order of a history. Refuses files: a body is JSON.

use serde_json::Value;

use super::super::nonce;
use super::super::payload::{self, Shown};
use super::super::permission::{ADD_REACTIONS, MANAGE_MESSAGES, MENTION_EVERYONE, READ_MESSAGE_HISTORY};
use super::super::record::Created;
use super::super::settings::NonceDeleted;
use super::super::snowflake::{Snowflake, now_ms};
use super::super::state::State;
use super::super::world::{Channel, Emoji, Mentions, Message};
use super::channel::{needs, speaking, unlocked, users, visible};
use super::{Done, Refused};
use crate::clock::Stamp;

/// The longest message, in code points.
const LONGEST: usize = 2_000;

/// How many different reactions a message may have.
const REACTIONS: usize = 20;

fn unknown() -> Refused {
    Refused::new(404, 10008, "Unknown Message")
}

/// A message as the bot may read it.
fn show(state: &State, message: &Message) -> Value {
    let mut value = payload::message(&state.world, message, Shown::Answer);
    let reads = state.settings.application_flags & (1 << 18 | 1 << 19) != 0;
    if !reads && !payload::is_readable(&state.world, message) {
        payload::strip(&mut value);
    }
    value
}

fn readable(state: &State, id: Snowflake) -> Result<(&Channel, u64), Refused> {
    let (channel, may) = visible(state, id)?;
    if !channel.kind.is_spoken() {
        return Err(Refused::new(400, 50008, "Cannot send messages in a non-text channel"));
    }
    Ok((channel, may))
}

pub(super) fn list(state: &State, id: Snowflake, query: &str) -> Result<Done, Refused> {
    let (channel, may) = readable(state, id)?;
    let (mut limit, mut bounds) = (50, Vec::new());
    for (name, value) in query.split('&').filter_map(|part| part.split_once('=')) {
        match name {
            "limit" => {
                limit = value.parse::<usize>().unwrap_or(0);
                if !(1..=100).contains(&limit) {
                    let words = "int value should be between 1 and 100.";
                    return Err(Refused::form("limit", "NUMBER_TYPE_MAX", words));
                }
            }
            "before" | "after" | "around" => match value.parse::<Snowflake>() {
                Ok(at) => bounds.push((name, at)),
                Err(words) => return Err(Refused::form(name, "NUMBER_TYPE_COERCE", &words)),
            },
            _ => {}
        }
    }
    if bounds.len() > 1 {
        let words = "before, after and around are mutually exclusive";
        return Err(Refused::form(bounds[1].0, "BASE_TYPE_BAD", words));
    }
    if may & READ_MESSAGE_HISTORY == 0 {
        return Ok(Done::with(Value::Array(Vec::new())));
    }
    let messages = &channel.messages;
    let mut found: Vec<&Message> = match bounds.first() {
        None => messages.values().rev().take(limit).collect(),
        Some(("before", at)) => messages.range(..*at).rev().take(limit).map(|(_, of)| of).collect(),
        Some(("after", at)) => messages.range(Snowflake(at.0 + 1)..).take(limit).map(|(_, of)| of).collect(),
        Some((_, at)) => {
            let half = limit / 2;
            let before = messages.range(..*at).rev().take(half).map(|(_, of)| of);
            before.chain(messages.range(*at..).take(limit - half).map(|(_, of)| of)).collect()
        }
    };
    found.sort_by_key(|message| std::cmp::Reverse(message.id));
    Ok(Done::with(found.into_iter().map(|message| show(state, message)).collect()))
}

pub(super) fn get(state: &State, id: Snowflake, at: Snowflake) -> Result<Done, Refused> {
    let (channel, may) = readable(state, id)?;
    needs(may, READ_MESSAGE_HISTORY)?;
    let message = channel.messages.get(&at).ok_or_else(unknown)?;
    Ok(Done::with(show(state, message)))
}

/// The words of a body, checked for their length.
fn content(body: &Value) -> Result<&str, Refused> {
    let content = match &body["content"] {
        Value::Null => "",
        Value::String(content) => content,
        _ => return Err(Refused::form("content", "STRING_TYPE_CONVERT", "Could not interpret as string.")),
    };
    if content.chars().count() > LONGEST {
        let words = "Must be 2000 or fewer in length.";
        return Err(Refused::form("content", "BASE_TYPE_MAX_LENGTH", words));
    }
    Ok(content)
}

fn list_of(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// A nonce that is fit to be one, as text.
fn nonce_of(body: &Value) -> Result<Option<String>, Refused> {
    if body["nonce"].is_null() {
        return Ok(None);
    }
    let Some(text) = nonce::text(&body["nonce"]) else {
        return Err(Refused::form("nonce", "STRING_TYPE_CONVERT", "Could not interpret as string."));
    };
    if text.chars().count() > nonce::LONGEST {
        let words = "Must be 25 or fewer in length.";
        return Err(Refused::form("nonce", "BASE_TYPE_MAX_LENGTH", words));
    }
    Ok(Some(text))
}

/// The message that a body answers, if it is there.
fn reference(state: &State, channel: &Channel, may: u64, body: &Value) -> Result<Option<Snowflake>, Refused> {
    let of = &body["message_reference"];
    if of.is_null() {
        return Ok(None);
    }
    if may & READ_MESSAGE_HISTORY == 0 {
        let words = "Cannot reply without permission to read message history";
        return Err(Refused::new(400, 160_002, words));
    }
    let wanted = serde_json::from_value::<Snowflake>(of["message_id"].clone()).ok();
    let elsewhere = serde_json::from_value::<Snowflake>(of["channel_id"].clone()).ok();
    let is_here = elsewhere.is_none_or(|elsewhere| elsewhere == channel.id);
    let found = wanted.filter(|id| is_here && state.world.message(channel.id, *id).is_some());
    if found.is_none() && of["fail_if_not_exists"] != false {
        return Err(Refused::form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message"));
    }
    Ok(found)
}

pub(super) fn create(state: &mut State, id: Snowflake, request: u64, body: &Value) -> Result<Done, Refused> {
    let (channel, may) = readable(state, id)?;
    needs(may, speaking(channel))?;
    unlocked(channel)?;
    let reader = channel.recipients.first().and_then(|user| state.world.users.get(user));
    if reader.is_some_and(|user| !user.accepts_dms) {
        return Err(Refused::new(403, 50007, "Cannot send messages to this user"));
    }
    let content = content(body)?;
    let (embeds, stickers) = (list_of(&body["embeds"]), list_of(&body["sticker_ids"]));
    if content.trim().is_empty() && embeds.is_empty() && stickers.is_empty() {
        return Err(Refused::new(400, 50006, "Cannot send an empty message"));
    }
    let nonce = nonce_of(body)?;
    let reference = reference(state, channel, may, body)?;
    let replied = reference.and_then(|at| channel.messages.get(&at)).map(|message| message.author);
    let mentions = allowed(state, channel, may, content, &body["allowed_mentions"], replied)?;
    let enforced = body["enforce_nonce"] == true;
    if let Some(nonce) = nonce.as_deref().filter(|_| enforced)
        && let Some((channel, known)) = state.nonces.get(&state.settings, id, nonce)
    {
        match state.world.message(channel, known) {
            Some(message) => {
                let mut value = show(state, message);
                value["nonce"] = body["nonce"].clone();
                let (message, known_nonce) = (Some(known), true);
                return Ok(Done { message, known_nonce, ..Done::with(value) });
            }
            None if state.settings.nonce_deleted == NonceDeleted::UnknownMessage => return Err(unknown()),
            None => {}
        }
    }
    let author = state.world.bot;
    let mut message = state.world.draft(id, author, content);
    message.embeds = embeds;
    message.tts = body["tts"] == true;
    message.flags = body["flags"].as_u64().unwrap_or(0);
    message.reference = reference;
    message.mentions = mentions;
    if let Some(nonce) = &nonce {
        state.nonces.insert(&state.settings, id, nonce, message.id);
    }
    let given = nonce.map(|_| &body["nonce"]);
    state.record.create(Created {
        seq: 0,
        request,
        at: Stamp::now(),
        id: message.id,
        channel: id,
        content: content.to_owned(),
        nonce: given.cloned(),
        enforced,
        reference,
        pings: message.mentions.clone(),
        deleted: false,
    });
    if let Some(thread) = state.world.channels.get_mut(&id).and_then(|channel| channel.thread.as_mut()) {
        thread.archived = false;
    }
    let made = message.id;
    state.post(message, given);
    let mut value = state.world.message(id, made).map(|of| show(state, of)).unwrap_or_default();
    if let Some(given) = given {
        value["nonce"] = given.clone();
    }
    Ok(Done { message: Some(made), ..Done::with(value) })
}

/// Whom a message pings: what its words say, as far as it is allowed.
fn allowed(
    state: &State,
    channel: &Channel,
    may: u64,
    content: &str,
    rules: &Value,
    replied: Option<Snowflake>,
) -> Result<Mentions, Refused> {
    let mut mentions = state.mentions_in(channel.id, content);
    mentions.everyone &= may & MENTION_EVERYONE != 0;
    let mut pings_replied = true;
    if rules.is_object() {
        let parses =
            |what: &str| rules["parse"].as_array().is_some_and(|of| of.iter().any(|one| one == what));
        let listed = |what: &str| -> Option<Vec<Snowflake>> {
            serde_json::from_value(rules[what].clone()).ok().filter(|list: &Vec<_>| !list.is_empty())
        };
        for what in ["users", "roles"] {
            if parses(what) && listed(what).is_some() {
                let words = format!("parse:[\"{what}\"] and {what}: [ids...] are mutually exclusive.");
                return Err(Refused::form(
                    "allowed_mentions",
                    "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                    &words,
                ));
            }
        }
        let keep = |what: &str, ids: &mut Vec<Snowflake>| {
            if !parses(what) {
                let list = listed(what).unwrap_or_default();
                ids.retain(|id| list.contains(id));
            }
        };
        keep("users", &mut mentions.users);
        keep("roles", &mut mentions.roles);
        mentions.everyone &= parses("everyone");
        pings_replied = rules["replied_user"] == true;
    }
    if let Some(author) = replied.filter(|author| pings_replied && !mentions.users.contains(author)) {
        mentions.users.push(author);
    }
    Ok(mentions)
}

pub(super) fn edit(state: &mut State, id: Snowflake, at: Snowflake, body: &Value) -> Result<Done, Refused> {
    let (channel, may) = readable(state, id)?;
    unlocked(channel)?;
    let message = channel.messages.get(&at).ok_or_else(unknown)?;
    if message.author != state.world.bot {
        return Err(Refused::new(403, 50005, "Cannot edit a message authored by another user"));
    }
    if !body["content"].is_null() || body["embeds"].is_array() {
        let content = if body["content"].is_null() { &message.content } else { content(body)? };
        let embeds = body["embeds"].as_array().unwrap_or(&message.embeds);
        if content.trim().is_empty() && embeds.is_empty() {
            return Err(Refused::new(400, 50006, "Cannot send an empty message"));
        }
        let mentions = allowed(state, channel, may, content, &body["allowed_mentions"], None)?;
        let (content, embeds) = (content.to_owned(), embeds.clone());
        if let Some(message) = state.world.message_mut(id, at) {
            message.content = content;
            message.embeds = embeds;
            message.mentions = mentions;
            message.edited_ms = Some(now_ms());
        }
        state.edited(id, at);
    }
    let message = state.world.message(id, at).ok_or_else(unknown)?;
    Ok(Done { message: Some(at), ..Done::with(show(state, message)) })
}

pub(super) fn delete(state: &mut State, id: Snowflake, at: Snowflake) -> Result<Done, Refused> {
    let (channel, may) = readable(state, id)?;
    let message = channel.messages.get(&at).ok_or_else(unknown)?;
    if message.author != state.world.bot {
        needs(may, MANAGE_MESSAGES)?;
    }
    state.delete(id, at);
    Ok(Done { message: Some(at), ..Done::empty() })
}

pub(super) fn react(
    state: &mut State,
    id: Snowflake,
    at: Snowflake,
    emoji: &Emoji,
    adds: bool,
) -> Result<Done, Refused> {
    let (channel, may) = readable(state, id)?;
    let message = channel.messages.get(&at).ok_or_else(unknown)?;
    let is_there = message.reactions.iter().any(|reaction| reaction.emoji == *emoji);
    if adds {
        needs(may, READ_MESSAGE_HISTORY)?;
        // Who adds to a reaction that is there needs nothing more.
        if !is_there {
            needs(may, ADD_REACTIONS)?;
            if message.reactions.len() >= REACTIONS {
                return Err(Refused::new(403, 30010, "Maximum number of reactions reached (20)"));
            }
        }
    } else if !is_there {
        return Err(Refused::new(404, 10014, "Unknown Emoji"));
    }
    let bot = state.world.bot;
    state.react((id, at), bot, emoji, adds);
    Ok(Done { message: Some(at), ..Done::empty() })
}

pub(super) fn reactions(state: &State, id: Snowflake, at: Snowflake, emoji: &Emoji) -> Result<Done, Refused> {
    let (channel, _) = readable(state, id)?;
    let message = channel.messages.get(&at).ok_or_else(unknown)?;
    let reaction = message.reactions.iter().find(|reaction| reaction.emoji == *emoji);
    let reaction = reaction.ok_or_else(|| Refused::new(404, 10014, "Unknown Emoji"))?;
    Ok(Done::with(users(state, &reaction.users)))
}

impl State {
    /// Whom words mention, of those who are there.
    pub(in super::super) fn mentions_in(&self, channel: Snowflake, content: &str) -> Mentions {
        let mut mentions = Mentions {
            everyone: content.contains("@everyone") || content.contains("@here"),
            ..Mentions::default()
        };
        let guild = self.world.channels.get(&channel).and_then(|channel| channel.guild);
        let guild = guild.and_then(|guild| self.world.guilds.get(&guild));
        mentions.everyone &= guild.is_some();
        for part in content.split("<@").skip(1) {
            let Some((inner, _)) = part.split_once('>') else { continue };
            let (is_role, digits) = match inner.strip_prefix('&') {
                Some(digits) => (true, digits),
                None => (false, inner.trim_start_matches('!')),
            };
            let Ok(id) = digits.parse::<Snowflake>() else { continue };
            if is_role {
                let is_there = guild.is_some_and(|guild| guild.roles.contains_key(&id));
                if is_there && !mentions.roles.contains(&id) {
                    mentions.roles.push(id);
                }
            } else if self.world.users.contains_key(&id) && !mentions.users.contains(&id) {
                mentions.users.push(id);
            }
        }
        mentions
    }
}
