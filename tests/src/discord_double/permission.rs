//! Who may do what, as Discord computes it.
//!
//! Owns the arithmetic of roles and overwrites. Refuses to change either.

use super::snowflake::Snowflake;
use super::world::{Channel, World};

pub(super) const CREATE_INSTANT_INVITE: u64 = 1;
pub(super) const ADMINISTRATOR: u64 = 1 << 3;
pub(super) const ADD_REACTIONS: u64 = 1 << 6;
pub(super) const VIEW_CHANNEL: u64 = 1 << 10;
pub(super) const SEND_MESSAGES: u64 = 1 << 11;
pub(super) const MANAGE_MESSAGES: u64 = 1 << 13;
pub(super) const EMBED_LINKS: u64 = 1 << 14;
pub(super) const ATTACH_FILES: u64 = 1 << 15;
pub(super) const READ_MESSAGE_HISTORY: u64 = 1 << 16;
pub(super) const MENTION_EVERYONE: u64 = 1 << 17;
pub(super) const USE_EXTERNAL_EMOJIS: u64 = 1 << 18;
pub(super) const CREATE_PUBLIC_THREADS: u64 = 1 << 35;
pub(super) const CREATE_PRIVATE_THREADS: u64 = 1 << 36;
pub(super) const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;

/// What everyone may in a new guild.
pub(super) const DEFAULT: u64 = CREATE_INSTANT_INVITE
    | ADD_REACTIONS
    | VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | MENTION_EVERYONE
    | USE_EXTERNAL_EMOJIS
    | CREATE_PUBLIC_THREADS
    | CREATE_PRIVATE_THREADS
    | SEND_MESSAGES_IN_THREADS;

/// What someone may in a whole guild; nothing where they are no member.
pub(super) fn in_guild(world: &World, guild: Snowflake, user: Snowflake) -> u64 {
    let Some(guild) = world.guilds.get(&guild) else { return 0 };
    let Some(member) = guild.members.get(&user) else { return 0 };
    if guild.owner == user {
        return u64::MAX;
    }
    let of = |role: &Snowflake| guild.roles.get(role).map_or(0, |role| role.permissions);
    let base = member.roles.iter().fold(of(&guild.id), |bits, role| bits | of(role));
    if base & ADMINISTRATOR != 0 { u64::MAX } else { base }
}

/// What someone may in a channel.
pub(super) fn in_channel(world: &World, channel: &Channel, user: Snowflake) -> u64 {
    let Some(guild_id) = channel.guild else {
        let is_party = user == world.bot || channel.recipients.contains(&user);
        return if is_party { u64::MAX } else { 0 };
    };
    let base = in_guild(world, guild_id, user);
    if base == u64::MAX {
        return base;
    }
    // A thread has what its parent has.
    let parent = channel.parent.filter(|_| channel.kind.is_thread()).and_then(|id| world.channels.get(&id));
    let overwrites = &parent.unwrap_or(channel).overwrites;
    let member = world.guilds.get(&guild_id).and_then(|guild| guild.members.get(&user));
    let roles = member.map(|member| member.roles.as_slice()).unwrap_or_default();
    let layers: [&dyn Fn(Snowflake, bool) -> bool; 3] = [
        &|id, is_member| !is_member && id == guild_id,
        &|id, is_member| !is_member && roles.contains(&id),
        &|id, is_member| is_member && id == user,
    ];
    layers.iter().fold(base, |bits, applies| {
        let of_layer = overwrites.iter().filter(|overwrite| applies(overwrite.id, overwrite.is_member));
        let (allow, deny) = of_layer.fold((0, 0), |(allow, deny), o| (allow | o.allow, deny | o.deny));
        (bits & !deny) | allow
    })
}
