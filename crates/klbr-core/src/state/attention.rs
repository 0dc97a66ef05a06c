//! The attention items of an agent, and what records do to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attention::{Decision, Item, Response, Shown, Status};
use crate::event::{Bucket, Change, Conversation, Header};
use crate::ids::{EventId, FrameId};
use crate::time::Timestamp;

/// Decided items that are remembered; what was decided before stays in the history.
const DECIDED: usize = 256;

/// The items: every undecided one, and the newest of the decided.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Items {
    pending: BTreeMap<EventId, Item>,
    decided: BTreeMap<EventId, Item>,
    /// Undecided items that were shown, by source instance and by when.
    ageing: BTreeMap<Arc<str>, BTreeSet<(Timestamp, EventId)>>,
}

impl Items {
    /// Takes in what an event means for the items.
    pub(super) fn admit(&mut self, header: &Header) {
        let older = header.amends.as_ref().and_then(|amends| {
            let item = self.find(Some(&header.source.instance), &amends.of)?;
            Some((item.event, amends.change))
        });
        match older {
            Some((event, Change::Edited)) => {
                if let Some(item) = self.pending.get_mut(&event).or_else(|| self.decided.get_mut(&event)) {
                    item.newest = header.id;
                }
                return;
            }
            Some((event, Change::Deleted)) => {
                self.forget(event);
                return;
            }
            Some((_, Change::Reacted)) | None => {}
        }
        let Some(bucket) = header.attention else { return };
        let mut key = header.key();
        if let Some(amends) = header.amends.as_ref().filter(|amends| amends.change == Change::Edited) {
            key.external_id = amends.of.clone();
        }
        let item = Item {
            event: header.id,
            newest: header.id,
            key,
            conversation: header.conversation.clone(),
            bucket,
            status: Status::Pending,
            action: Response::None,
            note: None,
            at: header.at,
            shown: None,
            decided: None,
        };
        self.pending.insert(header.id, item);
    }

    /// Notes that events were shown: an undecided item ages from the first time on.
    pub(super) fn show(&mut self, events: &[EventId], frame: FrameId, at: Timestamp) {
        for event in events {
            let Some(item) = self.pending.get_mut(event).filter(|item| item.shown.is_none()) else {
                continue;
            };
            item.shown = Some(Shown { frame, at });
            self.ageing.entry(item.key.instance.clone()).or_default().insert((at, *event));
        }
    }

    /// Takes in a decision.
    pub(super) fn mark(
        &mut self,
        event: EventId,
        status: Status,
        action: Response,
        note: Option<&Arc<str>>,
        decision: Decision,
    ) -> Result<(), &'static str> {
        let mut item = self.forget(event).ok_or("there is no such item")?;
        if let (Status::Pending, Some(shown)) = (status, &mut item.shown) {
            // It waits for a decision anew, and ages from now on.
            shown.at = decision.at;
            self.ageing.entry(item.key.instance.clone()).or_default().insert((shown.at, event));
        }
        item.status = status;
        item.action = action;
        item.note = note.cloned();
        item.decided = Some(decision);
        match status {
            Status::Pending => self.pending.insert(event, item),
            Status::Seen | Status::Acted | Status::Ignored => self.decided.insert(event, item),
        };
        while self.decided.len() > DECIDED {
            self.decided.pop_first();
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, event: EventId) -> Option<Item> {
        let item = self.pending.remove(&event).or_else(|| self.decided.remove(&event))?;
        if let (Some(shown), Some(ageing)) = (item.shown, self.ageing.get_mut(&item.key.instance)) {
            ageing.remove(&(shown.at, event));
        }
        Some(item)
    }

    /// The undecided items, oldest first.
    pub(crate) fn pending(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.pending.values()
    }

    /// The remembered items that were decided, oldest first.
    pub(crate) fn decided(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.decided.values()
    }

    pub(crate) fn is_pending(&self, event: EventId) -> bool {
        self.pending.contains_key(&event)
    }

    /// The undecided items of an instance that were shown, in the order in which they age.
    pub(crate) fn ageing(&self) -> impl Iterator<Item = (&Arc<str>, &BTreeSet<(Timestamp, EventId)>)> {
        self.ageing.iter().filter(|(_, items)| !items.is_empty())
    }

    /// The item with this name, of one source instance or of any; undecided ones first, newest first.
    pub(crate) fn find(&self, instance: Option<&str>, name: &str) -> Option<&Item> {
        let is_it = |item: &&Item| {
            instance.is_none_or(|instance| &*item.key.instance == instance) && item.is_named(name)
        };
        self.pending().rev().find(is_it).or_else(|| self.decided().rev().find(is_it))
    }

    /// The newest undecided direct message of a conversation.
    pub(crate) fn newest_dm(&self, conversation: &Conversation) -> Option<&Item> {
        let is_it =
            |item: &&Item| item.bucket == Bucket::Dm && item.conversation.as_ref() == Some(conversation);
        self.pending().rev().find(is_it)
    }
}
