//! What the adapter knows of Discord: itself, guilds, and the places where people talk.
//!
//! Owns the latest message of each channel (`B-DIS-7`) and the durable cursor of each conversation (`B-DIS-10`).
//! Refuses to read or write anything: what has changed is handed out, to be kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use klbr_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ChannelId, GuildId, MessageId, UserId};
use crate::kept::Session;
use crate::payload::{Channel, Guild, Kind, Message};

/// The bits of a guild's id below those that say which shard it is in.
const SHARD_SHIFT: u32 = 22;

/// One place where people talk, as it is kept between two processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guild: Option<GuildId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<ChannelId>,
    /// The newest message that anyone has written there, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latest: Option<MessageId>,
    /// The cursor: everything up to this message is admitted, or was let pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<MessageId>,
    /// Whether messages after the cursor may have been missed.
    #[serde(default)]
    pub(crate) is_open: bool,
    /// How often that was found: what was fetched before it was found anew says nothing of what came since.
    #[serde(skip)]
    pub(crate) gaps: u32,
    /// When something that was heard there was last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) heard: Option<Timestamp>,
    /// What the cursor becomes once nothing is missed any more.
    #[serde(skip)]
    pub(crate) ahead: Option<MessageId>,
}

impl Place {
    /// A place of which nothing else is known.
    pub(crate) fn new(kind: Kind) -> Self {
        Place {
            kind,
            guild: None,
            name: None,
            parent: None,
            latest: None,
            after: None,
            is_open: false,
            gaps: 0,
            heard: None,
            ahead: None,
        }
    }
}

/// What is known, and which of it has changed since it was last kept.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) me: Option<UserId>,
    guilds: HashMap<GuildId, String>,
    places: BTreeMap<ChannelId, Place>,
    changed: BTreeSet<ChannelId>,
    /// Places that no other process has heard of: they were never kept.
    fresh: BTreeSet<ChannelId>,
    changed_guilds: BTreeSet<GuildId>,
    /// The shards' sessions, as far as they are admitted.
    sessions: BTreeMap<u32, Option<Session>>,
    changed_sessions: BTreeSet<u32>,
}

impl World {
    pub(crate) fn place(&self, channel: ChannelId) -> Option<&Place> {
        self.places.get(&channel)
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = (ChannelId, &Place)> {
        self.places.iter().map(|(channel, place)| (*channel, place))
    }

    pub(crate) fn guild(&self, guild: GuildId) -> Option<&str> {
        self.guilds.get(&guild).map(String::as_str)
    }

    /// The place of a message that has just been told of, made when it was not known.
    pub(crate) fn locate(&mut self, channel: ChannelId, guild: Option<GuildId>) -> &Place {
        let fresh = || Place::new(if guild.is_some() { Kind::Guild } else { Kind::Dm });
        let (changed, unkept) = (&mut self.changed, &mut self.fresh);
        let place = self.places.entry(channel).or_insert_with(|| {
            changed.insert(channel);
            unkept.insert(channel);
            fresh()
        });
        if place.guild.is_none() && guild.is_some() {
            place.guild = guild;
            if place.kind == Kind::Dm {
                place.kind = Kind::Guild;
            }
            changed.insert(channel);
        }
        place
    }

    /// Takes in what a message says of its channel: it is the newest, and a direct message has its author's name.
    pub(crate) fn saw(&mut self, message: &Message) {
        self.locate(message.channel, message.guild);
        let is_mine = message.author.as_ref().is_some_and(|author| Some(author.id) == self.me);
        let name = message.author.as_ref().filter(|_| !is_mine).map(|author| author.name.clone());
        self.change(message.channel, |place| {
            place.latest = place.latest.max(Some(message.id));
            // A place that nothing was known of begins just before its first message.
            place.after = place.after.or(MessageId::new(message.id.get() - 1));
            if place.kind == Kind::Dm && place.name.is_none() {
                place.name = name;
            }
        });
    }

    /// Notes that something that was heard was said there.
    pub(crate) fn heard(&mut self, channel: ChannelId, at: Timestamp) {
        self.change(channel, |place| place.heard = place.heard.max(Some(at)));
    }

    /// Takes in what a guild says of its channels. A channel that was not known begins here: its newest message is
    /// where its cursor starts. Answers with those that have newer messages than their cursor.
    pub(crate) fn told(&mut self, guild: &Guild) -> Vec<ChannelId> {
        if let Some(name) = &guild.name
            && self.guilds.insert(guild.id, name.clone()).as_ref() != Some(name)
        {
            self.changed_guilds.insert(guild.id);
        }
        guild.channels.iter().filter(|channel| self.told_channel(channel)).map(|channel| channel.id).collect()
    }

    /// Takes in what is said of one channel; whether it has newer messages than its cursor. One that has none has
    /// missed none.
    pub(crate) fn told_channel(&mut self, channel: &Channel) -> bool {
        self.locate(channel.id, channel.guild);
        let mut is_behind = false;
        self.change(channel.id, |place| {
            place.kind = channel.kind;
            place.name = channel.name.clone().or(place.name.take());
            place.parent = channel.parent.or(place.parent);
            place.latest = place.latest.max(channel.latest);
            match (place.after, channel.latest) {
                (Some(after), Some(latest)) => is_behind = latest > after,
                // Its own id is older than any message in it.
                (None, latest) => place.after = latest.or(MessageId::new(channel.id.get())),
                (Some(_), None) => {}
            }
        });
        if !is_behind && channel.latest.is_some() {
            self.close(channel.id);
        }
        is_behind
    }

    /// Forgets a channel that is gone: nothing can be fetched from it any more.
    pub(crate) fn gone(&mut self, channel: ChannelId) {
        if self.places.remove(&channel).is_some() {
            self.changed.insert(channel);
        }
    }

    /// Forgets the channels of a guild that was left.
    pub(crate) fn left(&mut self, guild: GuildId) {
        let of_it = |(channel, place): (&ChannelId, &Place)| (place.guild == Some(guild)).then_some(*channel);
        for channel in self.places.iter().filter_map(of_it).collect::<Vec<_>>() {
            self.gone(channel);
        }
    }

    /// Moves a cursor forward over what was admitted or let pass; not past what may have been missed.
    pub(crate) fn passed(&mut self, channel: ChannelId, message: MessageId) {
        self.change(channel, |place| match place.is_open {
            false => place.after = place.after.max(Some(message)),
            true => place.ahead = place.ahead.max(Some(message)),
        });
    }

    /// Moves a cursor forward over what was fetched after it.
    pub(crate) fn fetched(&mut self, channel: ChannelId, message: MessageId) {
        self.change(channel, |place| place.after = place.after.max(Some(message)));
    }

    /// Notes that a session of one of `total` shards begins anew: messages may have been missed in every conversation
    /// of it that was ever heard, and in every private one: of those nobody else tells that there is anything new.
    pub(crate) fn begin(&mut self, shard: u32, total: u32) {
        let total = u64::from(total.max(1));
        let is_its = |place: &Place| match place.guild {
            Some(guild) => (guild.get() >> SHARD_SHIFT) % total == u64::from(shard),
            None => shard == 0,
        };
        let heard = |(channel, place): (&ChannelId, &Place)| {
            let is_private = matches!(place.kind, Kind::Dm | Kind::GroupDm);
            ((place.heard.is_some() || is_private) && is_its(place)).then_some(*channel)
        };
        for channel in self.places.iter().filter_map(heard).collect::<Vec<_>>() {
            self.open(channel);
        }
    }

    /// Notes that everything of a shard's session up to this dispatch is admitted or was let pass.
    pub(crate) fn admitted(&mut self, shard: u32, sequence: u64) {
        if let Some(Some(session)) = self.sessions.get_mut(&shard)
            && session.sequence < sequence
        {
            session.sequence = sequence;
            self.changed_sessions.insert(shard);
        }
    }

    /// Replaces what is known of a shard's session.
    pub(crate) fn set_session(&mut self, shard: u32, session: Option<Session>) {
        self.sessions.insert(shard, session);
        self.changed_sessions.insert(shard);
    }

    /// The session of a shard, as far as it is admitted.
    pub(crate) fn session(&self, shard: u32) -> Option<&Session> {
        self.sessions.get(&shard)?.as_ref()
    }

    /// Notes that messages may have been missed there.
    pub(crate) fn open(&mut self, channel: ChannelId) {
        self.change(channel, |place| {
            place.is_open = place.after.is_some();
            place.gaps += 1;
        });
    }

    /// Notes that a gap was filled, unless messages may have been missed since.
    pub(crate) fn filled(&mut self, channel: ChannelId, gap: u32) {
        if self.place(channel).is_some_and(|place| place.gaps == gap) {
            self.close(channel);
        }
    }

    /// Notes that nothing is missed there any more.
    pub(crate) fn close(&mut self, channel: ChannelId) {
        self.change(channel, |place| {
            place.is_open = false;
            place.after = place.after.max(place.ahead.take());
        });
    }

    /// Where messages may have been missed.
    pub(crate) fn open_places(&self) -> Vec<ChannelId> {
        self.places.iter().filter(|(_, place)| place.is_open).map(|(channel, _)| *channel).collect()
    }

    fn change(&mut self, channel: ChannelId, change: impl FnOnce(&mut Place)) {
        let Some(place) = self.places.get_mut(&channel) else { return };
        let before = place.clone();
        change(place);
        if *place != before {
            self.changed.insert(channel);
        }
    }

    /// Puts back what an earlier process kept.
    pub(crate) fn restore(&mut self, kept: Restored) {
        self.places = kept.places;
        self.guilds = kept.guilds;
        self.sessions = kept.sessions.into_iter().map(|(shard, session)| (shard, Some(session))).collect();
    }

    /// What has changed since the last time: each place as it is now, none for one that is gone.
    pub(crate) fn take_changed(&mut self) -> Changed {
        let places = std::mem::take(&mut self.changed).into_iter();
        let guilds = std::mem::take(&mut self.changed_guilds).into_iter();
        let sessions = std::mem::take(&mut self.changed_sessions).into_iter();
        Changed {
            places: places.map(|channel| (channel, self.places.get(&channel).cloned())).collect(),
            guilds: guilds.filter_map(|guild| Some((guild, self.guilds.get(&guild)?.clone()))).collect(),
            sessions: sessions
                .filter_map(|shard| Some((shard, self.sessions.get(&shard)?.clone())))
                .collect(),
        }
    }

    /// Whether a place was never kept.
    pub(crate) fn is_fresh(&self, channel: ChannelId) -> bool {
        self.fresh.contains(&channel)
    }

    /// Takes in that changes are kept.
    pub(crate) fn kept(&mut self, changed: &Changed) {
        for (channel, _) in &changed.places {
            self.fresh.remove(channel);
        }
    }

    /// Puts changes back that could not be kept.
    pub(crate) fn put_back(&mut self, changed: &Changed) {
        self.changed.extend(changed.places.iter().map(|(channel, _)| *channel));
        self.changed_guilds.extend(changed.guilds.iter().map(|(guild, _)| *guild));
        self.changed_sessions.extend(changed.sessions.iter().map(|(shard, _)| *shard));
    }
}

/// What has changed in the [`World`].
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) places: Vec<(ChannelId, Option<Place>)>,
    pub(crate) guilds: Vec<(GuildId, String)>,
    pub(crate) sessions: Vec<(u32, Option<Session>)>,
}

/// What an earlier process kept of the [`World`].
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub(crate) places: BTreeMap<ChannelId, Place>,
    pub(crate) guilds: HashMap<GuildId, String>,
    pub(crate) sessions: BTreeMap<u32, Session>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(id: u64, latest: Option<u64>) -> Channel {
        Channel {
            id: ChannelId::new(id).unwrap(),
            kind: Kind::Guild,
            guild: GuildId::new(1),
            name: Some(format!("channel {id}")),
            parent: None,
            latest: latest.and_then(MessageId::new),
            is_new: false,
            owner: None,
        }
    }

    fn after(world: &World, id: u64) -> Option<u64> {
        world.place(ChannelId::new(id).unwrap()).unwrap().after.map(MessageId::get)
    }

    #[test]
    fn b_dis_10_a_cursor_never_passes_what_may_have_been_missed() {
        let mut world = World::default();
        let (here, message) = (ChannelId::new(5).unwrap(), |id| MessageId::new(id).unwrap());
        assert!(!world.told_channel(&channel(5, Some(10))), "a channel begins at its newest message");
        assert!(world.told_channel(&channel(5, Some(20))), "and is behind when there is a newer one");
        world.open(here);
        world.passed(here, message(30));
        assert_eq!(after(&world, 5), Some(10), "what came live stays ahead of the gap");
        world.fetched(here, message(20));
        assert_eq!(after(&world, 5), Some(20));
        world.close(here);
        assert_eq!(after(&world, 5), Some(30));
        world.passed(here, message(25));
        assert_eq!(after(&world, 5), Some(30), "a cursor never moves back");
    }

    #[test]
    fn b_dis_10_what_was_fetched_before_a_gap_does_not_fill_it() {
        let mut world = World::default();
        let here = ChannelId::new(5).unwrap();
        world.told_channel(&channel(5, Some(10)));
        world.open(here);
        let gap = world.place(here).unwrap().gaps;
        world.open(here);
        world.filled(here, gap);
        assert_eq!(world.open_places(), [here], "another session began while the first gap was being filled");
        world.filled(here, world.place(here).unwrap().gaps);
        assert_eq!(world.open_places(), []);
    }

    #[test]
    fn b_dis_10_a_place_without_a_message_begins_with_its_first_one() {
        let mut world = World::default();
        assert!(!world.told_channel(&channel(5, None)));
        assert!(world.told_channel(&channel(5, Some(20))), "all that there is was said since it was told of");
        assert_eq!(after(&world, 5), Some(5), "which its own id is older than");
    }

    #[test]
    fn b_dis_10_a_private_place_is_looked_at_after_a_gap_whoever_spoke_there_first() {
        let mut world = World::default();
        let private = ChannelId::new(7).unwrap();
        let message =
            Message::read(&serde_json::json!({"id": "30", "channel_id": "7", "content": ""})).unwrap();
        world.saw(&message);
        assert_eq!(after(&world, 7), Some(29), "the first message is not behind the cursor");
        assert!(world.is_fresh(private));
        let changed = world.take_changed();
        world.kept(&changed);
        assert!(!world.is_fresh(private));
        world.begin(0, 1);
        assert_eq!(world.open_places(), [private]);
    }

    #[test]
    fn changes_are_handed_out_once_and_can_be_put_back() {
        let mut world = World::default();
        world.told(&Guild {
            id: GuildId::new(1).unwrap(),
            name: Some("g".into()),
            channels: vec![channel(5, None)],
        });
        let changed = world.take_changed();
        assert_eq!((changed.places.len(), changed.guilds.len()), (1, 1));
        assert!(world.take_changed().places.is_empty());
        world.put_back(&changed);
        assert_eq!(world.take_changed().places, changed.places);
        world.left(GuildId::new(1).unwrap());
        assert_eq!(world.take_changed().places, vec![(ChannelId::new(5).unwrap(), None)]);
    }
}
