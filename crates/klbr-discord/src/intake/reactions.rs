//! How often someone has added the same reaction, so that each time is a happening of its own.

use std::collections::{HashMap, VecDeque};

use crate::id::{MessageId, UserId};
use crate::payload::{Emoji, Reaction};

/// Reactions that were taken back and are remembered, at most.
const MOST: usize = 4_096;

type Key = (MessageId, UserId, Emoji);

/// Counts taken-back reactions; the oldest are forgotten first.
#[derive(Debug, Default)]
pub(super) struct Reactions {
    taken_back: HashMap<Key, u32>,
    order: VecDeque<Key>,
}

impl Reactions {
    /// Notes that a reaction was taken back: the next one like it is another.
    pub(super) fn take_back(&mut self, reaction: &Reaction) {
        let key = key(reaction);
        if !self.taken_back.contains_key(&key) {
            self.order.push_back(key.clone());
            if self.order.len() > MOST
                && let Some(oldest) = self.order.pop_front()
            {
                self.taken_back.remove(&oldest);
            }
        }
        *self.taken_back.entry(key).or_default() += 1;
    }

    /// The how-manieth time it is, from 1.
    pub(super) fn times(&self, reaction: &Reaction) -> u32 {
        self.taken_back.get(&key(reaction)).copied().unwrap_or_default() + 1
    }
}

fn key(reaction: &Reaction) -> Key {
    (reaction.message, reaction.user, reaction.emoji.clone())
}
