//! What is heard at all, and whom it addresses (`B-DIS-2`).

use std::collections::BTreeSet;

use klbr_core::event::Bucket;

use super::{Address, is_private};
use crate::id::{ChannelId, UserId};
use crate::payload::{Message, User};
use crate::settings::{EventMode, Settings};
use crate::world::Place;

/// The filter. A thread counts as a channel of its own.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    mode: EventMode,
    include_bots: bool,
    channels: BTreeSet<ChannelId>,
}

impl Filter {
    pub(super) fn new(settings: &Settings) -> Self {
        Filter {
            mode: settings.event_mode,
            include_bots: settings.include_bots,
            channels: settings.channels.clone(),
        }
    }

    /// Whether anything of a channel is heard: with a list, only of those in it.
    pub(crate) fn admits(&self, channel: ChannelId) -> bool {
        self.channels.is_empty() || self.channels.contains(&channel)
    }

    /// Whether chatter of a channel is heard.
    pub(crate) fn hears_all_of(&self, channel: ChannelId) -> bool {
        self.admits(channel) && (self.mode == EventMode::All || !self.channels.is_empty())
    }

    pub(crate) fn hears_bots(&self) -> bool {
        self.include_bots
    }

    /// How a message of an admitted channel addresses the agent; none when it is not heard.
    pub(crate) fn address(
        &self,
        me: Option<UserId>,
        place: &Place,
        message: &Message,
        author: &User,
    ) -> Option<Address> {
        if Some(author.id) == me || (author.is_bot && !self.include_bots) {
            return None;
        }
        if is_private(place) {
            return Some(Address::directed(Bucket::Dm, author.is_bot));
        }
        if message.mentions.iter().any(|user| Some(user.id) == me) {
            return Some(Address::directed(Bucket::Mention, author.is_bot));
        }
        self.hears_all_of(message.channel).then(Address::ambient)
    }
}
