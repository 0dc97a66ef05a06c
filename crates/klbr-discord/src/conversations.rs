//! The conversations that the adapter knows, as its clients are shown them.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ChannelId;
use crate::world::{Place, World};

/// One place where something was heard. Names are people's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownConversation {
    /// The id of its channel, which is also the conversation's id in the core.
    pub id: String,
    /// `dm`, `group dm`, `guild` or `thread`.
    pub kind: Cow<'static, str>,
    /// Its name; the other person's, for a direct message.
    pub name: Option<String>,
    /// The name of the channel that a thread belongs to.
    pub parent: Option<String>,
    /// The guild's name.
    pub guild: Option<String>,
    /// The newest message that anyone has written there, `msg:ID`, as far as is known.
    pub latest: Option<String>,
    /// When something that was heard there was last said, RFC 3339 in UTC.
    pub last_activity: Option<String>,
    /// Whether messages there may have been missed and are still being fetched.
    pub is_behind: bool,
}

/// Every place where something was heard, the most recently heard first.
pub(crate) fn known(world: &World) -> Vec<KnownConversation> {
    let mut heard: Vec<(ChannelId, &Place)> =
        world.places().filter(|(_, place)| place.heard.is_some()).collect();
    heard.sort_by_key(|(channel, place)| (std::cmp::Reverse(place.heard), *channel));
    heard.into_iter().map(|(channel, place)| conversation(world, channel, place)).collect()
}

/// One place as clients are shown it.
pub(crate) fn conversation(world: &World, channel: ChannelId, place: &Place) -> KnownConversation {
    let parent = place.parent.filter(|_| place.kind == crate::payload::Kind::Thread);
    KnownConversation {
        id: channel.to_string(),
        kind: place.kind.as_str().into(),
        name: place.name.clone(),
        parent: parent.and_then(|parent| world.place(parent)?.name.clone()),
        guild: place.guild.and_then(|guild| world.guild(guild)).map(str::to_owned),
        latest: place.latest.map(crate::id::MessageId::external),
        last_activity: place.heard.map(|at| at.to_string()),
        is_behind: place.is_open,
    }
}
