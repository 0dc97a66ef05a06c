//! The world as Discord writes it: users, members, guilds, channels, messages as JSON.
//!
//! Owns the shapes, which are Discord's down to which members are null and which are missing. Refuses to change
//! anything.

use serde_json::{Value, json};

use super::permission;
use super::snowflake::{Snowflake, timestamp};
use super::world::{Channel, Emoji, Guild, Member, Message, Role, User, World};

/// Where a message is shown, which decides what stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// In an event, with the guild and the author's membership.
    Event,
    /// In an answer of the API.
    Answer,
}

pub(super) fn user(user: &User) -> Value {
    let mut value = json!({
        "id": user.id, "username": user.name, "global_name": user.global_name,
        "discriminator": if user.bot { "0001" } else { "0" },
        "avatar": null, "avatar_decoration_data": null, "public_flags": 0,
        "clan": null, "primary_guild": null, "collectibles": null, "display_name_styles": null,
    });
    // Discord leaves it out for people.
    if user.bot {
        value["bot"] = true.into();
    }
    value
}

/// The bot itself, as `/users/@me` and READY tell of it.
pub(super) fn me(world: &World) -> Value {
    let mut value = world.users.get(&world.bot).map(user).unwrap_or_default();
    for (name, member) in [
        ("verified", json!(true)),
        ("mfa_enabled", json!(true)),
        ("email", Value::Null),
        ("flags", json!(0)),
        ("bio", json!("")),
        ("locale", json!("en-US")),
        ("banner", Value::Null),
        ("accent_color", Value::Null),
    ] {
        value[name] = member;
    }
    value
}

pub(super) fn user_of(world: &World, id: Snowflake) -> Value {
    world.users.get(&id).map(user).unwrap_or_default()
}

/// A membership without its user.
fn partial_member(member: &Member) -> Value {
    json!({
        "roles": member.roles, "nick": member.nick, "joined_at": member.joined.timestamp(),
        "premium_since": null, "deaf": false, "mute": false, "pending": false, "flags": 0,
        "avatar": null, "banner": null, "communication_disabled_until": null,
    })
}

pub(super) fn member(world: &World, id: Snowflake, member: &Member) -> Value {
    let mut value = partial_member(member);
    value["user"] = user_of(world, id);
    value
}

/// Someone's membership of a guild, if there is one.
pub(super) fn member_of(world: &World, guild: Snowflake, user: Snowflake) -> Option<Value> {
    world.guilds.get(&guild)?.members.get(&user).map(|of| member(world, user, of))
}

pub(super) fn role(guild: &Guild, role: &Role) -> Value {
    json!({
        "id": role.id, "name": role.name, "permissions": role.permissions.to_string(),
        "position": role.position, "color": 0, "hoist": false, "managed": false, "flags": 0,
        "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null},
        "mentionable": role.id != guild.id, "icon": null, "unicode_emoji": null,
    })
}

/// A guild as `/guilds/{id}` tells of it.
pub(super) fn guild(guild: &Guild) -> Value {
    let roles: Vec<Value> = guild.roles.values().map(|of| role(guild, of)).collect();
    json!({
        "id": guild.id, "name": guild.name, "owner_id": guild.owner, "roles": roles,
        "icon": null, "splash": null, "discovery_splash": null, "banner": null, "description": null,
        "afk_channel_id": null, "afk_timeout": 300, "application_id": null,
        "default_message_notifications": 0, "explicit_content_filter": 0, "verification_level": 0,
        "mfa_level": 0, "nsfw": false, "nsfw_level": 0, "premium_tier": 0,
        "premium_subscription_count": 0, "premium_progress_bar_enabled": false,
        "preferred_locale": "en-US", "emojis": [], "stickers": [], "features": [],
        "rules_channel_id": null, "public_updates_channel_id": null, "safety_alerts_channel_id": null,
        "system_channel_id": null, "system_channel_flags": 0, "vanity_url_code": null,
        "widget_enabled": false, "widget_channel_id": null,
    })
}

/// A guild as GUILD_CREATE tells of it, with what the bot may see.
pub(super) fn guild_create(world: &World, of: &Guild) -> Value {
    let mut value = guild(of);
    let visible = |channel: &&Channel| {
        channel.guild == Some(of.id)
            && permission::in_channel(world, channel, world.bot) & permission::VIEW_CHANNEL != 0
    };
    let (threads, channels): (Vec<&Channel>, Vec<&Channel>) =
        world.channels.values().filter(visible).partition(|channel| channel.kind.is_thread());
    // Within GUILD_CREATE a channel does not name its guild.
    let bare = |channels: Vec<&Channel>| {
        let value = channels.into_iter().map(|of| {
            let mut value = channel(world, of);
            value.as_object_mut().map(|members| members.remove("guild_id"));
            value
        });
        Value::Array(value.collect())
    };
    let members: Vec<Value> = of.members.iter().map(|(id, of)| member(world, *id, of)).collect();
    let joined = of.members.get(&world.bot).map(|member| member.joined.timestamp());
    for (name, member) in [
        ("joined_at", json!(joined)),
        ("member_count", json!(members.len())),
        ("members", Value::Array(members)),
        ("channels", bare(channels)),
        ("threads", bare(threads)),
        ("large", json!(false)),
        ("unavailable", json!(false)),
        ("presences", json!([])),
        ("voice_states", json!([])),
        ("stage_instances", json!([])),
        ("guild_scheduled_events", json!([])),
        ("soundboard_sounds", json!([])),
    ] {
        value[name] = member;
    }
    value
}

pub(super) fn channel(world: &World, channel: &Channel) -> Value {
    let mut value = json!({
        "id": channel.id, "type": channel.kind.number(), "last_message_id": channel.last, "flags": 0,
    });
    let Some(guild) = channel.guild else {
        let recipients: Vec<Value> = channel.recipients.iter().map(|id| user_of(world, *id)).collect();
        value["recipients"] = recipients.into();
        return value;
    };
    value["guild_id"] = json!(guild);
    value["name"] = json!(channel.name);
    value["parent_id"] = json!(channel.parent);
    value["rate_limit_per_user"] = 0.into();
    match &channel.thread {
        Some(thread) => {
            value["owner_id"] = json!(thread.owner);
            value["message_count"] = channel.messages.len().into();
            value["total_message_sent"] = channel.messages.len().into();
            value["member_count"] = 1.into();
            value["thread_metadata"] = json!({
                "archived": thread.archived, "locked": thread.locked, "auto_archive_duration": 1440,
                "archive_timestamp": channel.id.timestamp(), "create_timestamp": channel.id.timestamp(),
            });
        }
        None => {
            let overwrites = channel.overwrites.iter().map(|overwrite| {
                json!({
                    "id": overwrite.id, "type": u8::from(overwrite.is_member),
                    "allow": overwrite.allow.to_string(), "deny": overwrite.deny.to_string(),
                })
            });
            value["permission_overwrites"] = overwrites.collect();
            value["position"] = 0.into();
            value["topic"] = Value::Null;
            value["nsfw"] = false.into();
        }
    }
    value
}

pub(super) fn emoji(emoji: &Emoji) -> Value {
    json!({"id": emoji.id, "name": emoji.name})
}

/// A message; with the one it answers, but not with what that one answers.
pub(super) fn message(world: &World, of: &Message, shown: Shown) -> Value {
    let mut value = bare_message(world, of, shown);
    if let Some(reference) = of.reference {
        let guild = world.channels.get(&of.channel).and_then(|channel| channel.guild);
        value["type"] = 19.into();
        value["message_reference"] =
            json!({"type": 0, "channel_id": of.channel, "guild_id": guild, "message_id": reference});
        if guild.is_none() {
            value["message_reference"].as_object_mut().map(|members| members.remove("guild_id"));
        }
        // Null says that it was deleted.
        let referenced = world.message(of.channel, reference);
        value["referenced_message"] =
            referenced.map_or(Value::Null, |of| bare_message(world, of, Shown::Answer));
    }
    value
}

fn bare_message(world: &World, of: &Message, shown: Shown) -> Value {
    let channel = world.channels.get(&of.channel);
    let guild = channel.and_then(|channel| channel.guild);
    let membership = |user: Snowflake| {
        let member = world.guilds.get(&guild?)?.members.get(&user)?;
        Some(partial_member(member))
    };
    let mentioned = of.mentions.users.iter().map(|id| {
        let mut value = user_of(world, *id);
        if let Some(member) = membership(*id).filter(|_| shown == Shown::Event) {
            value["member"] = member;
        }
        value
    });
    let mut value = json!({
        "id": of.id, "channel_id": of.channel, "author": user_of(world, of.author), "type": 0,
        "content": of.content, "timestamp": of.id.timestamp(),
        "edited_timestamp": of.edited_ms.map(timestamp), "tts": of.tts, "pinned": false,
        "mention_everyone": of.mentions.everyone, "mention_roles": of.mentions.roles,
        "mentions": mentioned.collect::<Vec<Value>>(), "attachments": of.attachments,
        "embeds": of.embeds, "components": [], "flags": of.flags,
    });
    if !of.stickers.is_empty() {
        value["sticker_items"] = of.stickers.clone().into();
    }
    if !of.reactions.is_empty() && shown == Shown::Answer {
        let reactions = of.reactions.iter().map(|reaction| {
            json!({
                "emoji": emoji(&reaction.emoji), "count": reaction.users.len(),
                "count_details": {"burst": 0, "normal": reaction.users.len()}, "burst_colors": [],
                "me": reaction.users.contains(&world.bot), "me_burst": false, "burst_me": false,
            })
        });
        value["reactions"] = reactions.collect();
    }
    if shown == Shown::Event {
        value["channel_type"] = json!(channel.map(|channel| channel.kind.number()));
        if let Some(guild) = guild {
            value["guild_id"] = json!(guild);
            if let Some(member) = membership(of.author) {
                value["member"] = member;
            }
        }
    }
    value
}

/// Whether a bot without the intent for content may read this message all the same.
pub(super) fn is_readable(world: &World, of: &Message) -> bool {
    let is_direct = world.channels.get(&of.channel).is_none_or(|channel| channel.guild.is_none());
    is_direct || of.author == world.bot || of.mentions.users.contains(&world.bot)
}

/// Takes out what stands under the intent for content.
pub(super) fn strip(value: &mut Value) {
    value["content"] = "".into();
    for name in ["attachments", "embeds", "components"] {
        value[name] = json!([]);
    }
    if value["referenced_message"].is_object() {
        strip(&mut value["referenced_message"]);
    }
}
