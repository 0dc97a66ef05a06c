//! Intake: what Discord tells becomes what an agent hears.
//!
//! Owns the filter (`B-DIS-2`), the names of happenings (`C-EVT-1`), priorities and attention (`B-ATT-1`). Pure:
//! it is told dispatches and keeps no connection; what it makes is admitted by whoever asks.

mod body;
mod filter;
mod reactions;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use klbr_core::event::{Author, Body, Bucket, Change, NewEvent, Priority, Source, SourceKind};

use crate::id::{ChannelId, MessageId};
use crate::payload::{Channel, Dispatch, Kind, Message, Reaction, User};
use crate::settings::Settings;
use crate::world::{Place, World};
pub(crate) use body::{message_body, short};
pub(crate) use filter::Filter;
use reactions::Reactions;

/// What one dispatch comes to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    /// What is to be admitted, in order.
    pub(crate) offers: Vec<Offer>,
    /// The message that the channel's cursor may pass once that is done.
    pub(crate) passes: Option<(ChannelId, MessageId)>,
}

/// An event to be admitted.
#[derive(Debug, PartialEq)]
pub(crate) struct Offer {
    pub(crate) event: NewEvent,
    /// The older event without which it means nothing to the agent: it is dropped when that was never admitted.
    pub(crate) only_after: Option<Arc<str>>,
}

impl From<NewEvent> for Offer {
    fn from(event: NewEvent) -> Self {
        Offer { event, only_after: None }
    }
}

/// Turns dispatches into events.
#[derive(Debug)]
pub(crate) struct Intake {
    filter: Filter,
    source: Source,
    reactions: Reactions,
}

impl Intake {
    pub(crate) fn new(settings: &Settings) -> Self {
        Intake {
            filter: Filter::new(settings),
            source: Source::new(SourceKind::Channel, settings.source.as_str()),
            reactions: Reactions::default(),
        }
    }

    /// Takes one dispatch in: what it says of the world, and what is to be admitted of it.
    pub(crate) fn handle(&mut self, world: &mut World, dispatch: Dispatch) -> Heard {
        match dispatch {
            Dispatch::Ready(ready) => world.me = Some(ready.me.id),
            Dispatch::Guild(guild) => {
                let behind = world.told(&guild).into_iter().filter(|channel| self.filter.admits(*channel));
                behind.for_each(|channel| world.open(channel));
            }
            Dispatch::GuildLeft(guild) => world.left(guild),
            Dispatch::Channel(channel) => drop(world.told_channel(&channel)),
            Dispatch::ChannelGone(channel) => world.gone(channel),
            Dispatch::ThreadMade(thread) => return self.thread(world, &thread),
            Dispatch::Message(message) => return self.message(world, &message),
            Dispatch::Edited(message) => return self.edited(world, &message),
            Dispatch::Deleted { channel, messages } => return self.deleted(world, channel, &messages),
            Dispatch::Reacted(reaction) => return self.reacted(world, &reaction),
            Dispatch::Unreacted(reaction) => self.reactions.take_back(&reaction),
            Dispatch::Resumed | Dispatch::Nothing => {}
        }
        Heard::default()
    }

    /// Takes a message in, told live or fetched.
    pub(crate) fn message(&self, world: &mut World, message: &Message) -> Heard {
        let place = world.locate(message.channel, message.guild).clone();
        if !self.filter.admits(message.channel) {
            return Heard::default();
        }
        world.saw(message);
        let passes = Some((message.channel, message.id));
        let Some(author) = &message.author else { return Heard { offers: Vec::new(), passes } };
        let Some(address) = self.filter.address(world.me, &place, message, author) else {
            return Heard { offers: Vec::new(), passes };
        };
        world.heard(message.channel, message.id.at());
        let event =
            self.event(message.id.external(), address, message_body(world, &place, message), message.channel);
        Heard { offers: vec![event.into()], passes }
    }

    /// An edit is a happening of its own, named by when it was made; without that it is only an unfurled link.
    fn edited(&self, world: &mut World, message: &Message) -> Heard {
        let Some(edited) = message.edited.clone() else { return Heard::default() };
        let place = world.locate(message.channel, message.guild).clone();
        if !self.filter.admits(message.channel) {
            return Heard::default();
        }
        let of = message.id.external();
        // Without an author it cannot be judged: it is one if the message itself was.
        let (address, only_after) = match &message.author {
            Some(author) => match self.filter.address(world.me, &place, message, author) {
                Some(address) => (address, None),
                None => return Heard::default(),
            },
            None => (Address::of_place(&place), Some(Arc::from(of.as_str()))),
        };
        let name = format!("edit:{}:{edited}", message.id);
        let event = self
            .event(name, address, message_body(world, &place, message), message.channel)
            .amending(of, Change::Edited);
        Heard { offers: vec![Offer { event, only_after }], passes: None }
    }

    fn deleted(&self, world: &mut World, channel: ChannelId, messages: &[MessageId]) -> Heard {
        if !self.filter.admits(channel) {
            return Heard::default();
        }
        let Some(place) = world.place(channel).cloned() else { return Heard::default() };
        let offer = |message: &MessageId| {
            let of: Arc<str> = message.external().into();
            let event = self
                .event(format!("del:{message}"), Address::ambient(), body::deletion(world, &place), channel)
                .amending(of.clone(), Change::Deleted);
            Offer { event, only_after: Some(of) }
        };
        Heard { offers: messages.iter().map(offer).collect(), passes: None }
    }

    /// Someone reacted to a message of the agent's (`B-DIS-11`).
    fn reacted(&mut self, world: &mut World, reaction: &Reaction) -> Heard {
        let place = world.locate(reaction.channel, reaction.guild).clone();
        let on_mine = reaction.on.is_some() && reaction.on == world.me;
        let is_mine = Some(reaction.user) == world.me;
        let is_heard = self.filter.admits(reaction.channel) && (!reaction.is_bot || self.filter.hears_bots());
        if !on_mine || is_mine || !is_heard {
            return Heard::default();
        }
        let emoji = reaction.emoji.written();
        let times = self.reactions.times(reaction);
        let name = format!("react:{}:{}:{emoji}:{times}", reaction.message, reaction.user);
        let event = self
            .event(
                name,
                Address::ambient(),
                body::reaction(world, &place, reaction, &emoji),
                reaction.channel,
            )
            .amending(reaction.message.external(), Change::Reacted);
        Heard { offers: vec![event.into()], passes: None }
    }

    /// A thread that was just made is told in the channel that it belongs to (`B-DIS-11`).
    fn thread(&self, world: &mut World, thread: &Channel) -> Heard {
        world.told_channel(thread);
        let (Some(parent), true) = (thread.parent, thread.is_new) else { return Heard::default() };
        let place = world.locate(parent, thread.guild).clone();
        if !self.filter.hears_all_of(parent) || (thread.owner.is_some() && thread.owner == world.me) {
            return Heard::default();
        }
        let name = format!("thread:{}", thread.id);
        let event = self.event(name, Address::ambient(), body::thread(world, &place, thread), parent);
        Heard { offers: vec![event.into()], passes: None }
    }

    fn event(&self, name: String, address: Address, body: Body, channel: ChannelId) -> NewEvent {
        let event = NewEvent::external(self.source.clone(), name, address.priority, body);
        let event = event.in_conversation(channel.to_string());
        match address.bucket {
            Some(bucket) => event.for_attention(bucket),
            None => event,
        }
    }
}

/// How a message addresses the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) priority: Priority,
    pub(crate) bucket: Option<Bucket>,
}

impl Address {
    fn ambient() -> Self {
        Address { priority: Priority::Ambient, bucket: None }
    }

    /// A message to the agent: an item of attention, unless a bot wrote it (`B-ATT-1`).
    fn directed(bucket: Bucket, is_bot: bool) -> Self {
        Address { priority: Priority::Directed, bucket: Some(bucket).filter(|_| !is_bot) }
    }

    /// What is said in private is addressed to the agent; anything else only if it says so.
    fn of_place(place: &Place) -> Self {
        match is_private(place) {
            true => Address::directed(Bucket::Dm, false),
            false => Address::ambient(),
        }
    }
}

/// Whether a place is outside any guild.
pub(crate) fn is_private(place: &Place) -> bool {
    place.guild.is_none() && matches!(place.kind, Kind::Dm | Kind::GroupDm)
}

/// A person as an event names them.
pub(crate) fn author(user: &User) -> Author {
    Author { id: user.id.to_string().into(), name: short(&user.name, 100).into() }
}
