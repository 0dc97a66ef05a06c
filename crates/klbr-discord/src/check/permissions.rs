//! What the bot may do in a channel, from roles and overwrites.

use std::str::FromStr;

use serde_json::Value;
use twilight_model::channel::ChannelType;
use twilight_model::channel::permission_overwrite::{PermissionOverwrite, PermissionOverwriteType};
use twilight_model::guild::Permissions;
use twilight_model::id::Id;
use twilight_util::permission_calculator::PermissionCalculator;

use crate::id::{GuildId, RoleId, UserId};
use crate::payload::{Kind, Read};

/// The names of the permissions that the adapter needs in a channel and the bot does not have.
pub(super) fn missing(
    guild: GuildId,
    me: UserId,
    guild_body: &Value,
    member: &Value,
    channel: &Value,
    kind: Kind,
) -> Vec<&'static str> {
    let roles: Vec<(RoleId, Permissions)> =
        guild_body.each("roles", |role| Some((role.id("id")?, permissions(role, "permissions"))));
    let everyone = roles.iter().find(|(id, _)| id.get() == guild.get());
    let everyone = everyone.map_or(Permissions::empty(), |(_, permissions)| *permissions);
    let mine: Vec<RoleId> =
        member.list("roles").iter().filter_map(|id| RoleId::from_str(id.as_str()?).ok()).collect();
    let mine: Vec<_> =
        roles.iter().filter(|(id, _)| mine.contains(id)).map(|(id, may)| (Id::new(id.get()), *may)).collect();
    let overwrites: Vec<PermissionOverwrite> = channel.each("permission_overwrites", overwrite);
    let mut calculator = PermissionCalculator::new(Id::new(guild.get()), Id::new(me.get()), everyone, &mine);
    if let Some(owner) = guild_body.id::<UserId>("owner_id") {
        calculator = calculator.owner_id(Id::new(owner.get()));
    }
    let channel_type = match kind {
        Kind::Thread => ChannelType::PublicThread,
        Kind::Dm | Kind::GroupDm | Kind::Guild | Kind::Mute => ChannelType::GuildText,
    };
    let may = calculator.in_channel(channel_type, &overwrites);
    let send = match kind {
        Kind::Thread => (Permissions::SEND_MESSAGES_IN_THREADS, "Send Messages in Threads"),
        Kind::Dm | Kind::GroupDm | Kind::Guild | Kind::Mute => (Permissions::SEND_MESSAGES, "Send Messages"),
    };
    let needed = [
        (Permissions::VIEW_CHANNEL, "View Channel"),
        send,
        (Permissions::READ_MESSAGE_HISTORY, "Read Message History"),
        (Permissions::ADD_REACTIONS, "Add Reactions"),
    ];
    needed.into_iter().filter(|(permission, _)| !may.contains(*permission)).map(|(_, name)| name).collect()
}

fn overwrite(value: &Value) -> Option<PermissionOverwrite> {
    Some(PermissionOverwrite {
        allow: permissions(value, "allow"),
        deny: permissions(value, "deny"),
        id: Id::new(value.id::<RoleId>("id")?.get()),
        kind: match value.number("type") {
            Some(1) => PermissionOverwriteType::Member,
            _ => PermissionOverwriteType::Role,
        },
    })
}

/// Permissions are written as a number in a text.
fn permissions(value: &Value, key: &str) -> Permissions {
    let bits = value.text(key).and_then(|text| text.parse().ok()).or_else(|| value.number(key));
    Permissions::from_bits_truncate(bits.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn missing_with(overwrites: Value, kind: Kind) -> Vec<&'static str> {
        let may = Permissions::VIEW_CHANNEL | Permissions::SEND_MESSAGES | Permissions::READ_MESSAGE_HISTORY;
        let react = Permissions::ADD_REACTIONS.bits().to_string();
        let guild = json!({"owner_id": "99", "roles": [
            {"id": "1", "permissions": may.bits().to_string()}, {"id": "5", "permissions": react}]});
        let member = json!({"roles": ["5"]});
        let channel = json!({ "permission_overwrites": overwrites });
        missing(GuildId::new(1).unwrap(), UserId::new(7).unwrap(), &guild, &member, &channel, kind)
    }

    #[test]
    fn roles_and_overwrites_say_what_is_missing() {
        assert_eq!(missing_with(json!([]), Kind::Guild), Vec::<&str>::new());
        assert_eq!(missing_with(json!([]), Kind::Thread), ["Send Messages in Threads"]);
        let deny = Permissions::SEND_MESSAGES.bits().to_string();
        let denied = json!([{"id": "5", "type": 0, "deny": deny, "allow": "0"}]);
        assert_eq!(missing_with(denied, Kind::Guild), ["Send Messages"]);
        let hidden = json!([{"id": "1", "type": 0, "deny": Permissions::VIEW_CHANNEL.bits().to_string()}]);
        assert!(missing_with(hidden, Kind::Guild).contains(&"View Channel"));
    }
}
