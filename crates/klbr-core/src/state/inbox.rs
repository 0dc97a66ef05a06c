//! The inbox: what waits to be shown, by priority and then by arrival.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Header, Priority, SourceKind};
use crate::ids::EventId;

/// Waiting events, without their bodies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Inbox {
    control: BTreeMap<EventId, Header>,
    operator: BTreeMap<EventId, Header>,
    directed: BTreeMap<EventId, Header>,
    ambient: BTreeMap<EventId, Header>,
    /// The harness's own receipts that wake nobody; shown with whatever is shown next.
    receipts: BTreeMap<EventId, Header>,
    held: BTreeMap<EventId, Header>,
}

impl Inbox {
    /// The waiting events of one priority, oldest first.
    pub(crate) fn waiting(&self, priority: Priority) -> &BTreeMap<EventId, Header> {
        match priority {
            Priority::Control => &self.control,
            Priority::Operator => &self.operator,
            Priority::Directed => &self.directed,
            Priority::Ambient => &self.ambient,
        }
    }

    /// Receipts that wait for company.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = &Header> {
        self.receipts.values()
    }

    /// Events whose priority policy has still to tell.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Header> {
        self.held.values()
    }

    pub(crate) fn insert(&mut self, header: Header) {
        let place = match (header.priority, header.source.kind) {
            (Priority::Ambient, SourceKind::System) => &mut self.receipts,
            (Priority::Control, _) => &mut self.control,
            (Priority::Operator, _) => &mut self.operator,
            (Priority::Directed, _) => &mut self.directed,
            (Priority::Ambient, _) => &mut self.ambient,
        };
        place.insert(header.id, header);
    }

    pub(crate) fn hold(&mut self, header: Header) {
        self.held.insert(header.id, header);
    }

    pub(crate) fn remove(&mut self, event: EventId) -> Option<Header> {
        [
            &mut self.control,
            &mut self.operator,
            &mut self.directed,
            &mut self.ambient,
            &mut self.receipts,
            &mut self.held,
        ]
        .into_iter()
        .find_map(|place| place.remove(&event))
    }

    pub(crate) fn contains(&self, event: EventId) -> bool {
        [&self.control, &self.operator, &self.directed, &self.ambient, &self.receipts]
            .into_iter()
            .any(|place| place.contains_key(&event))
    }

    /// Whether policy has still to tell the event's priority.
    pub(crate) fn is_held(&self, event: EventId) -> bool {
        self.held.contains_key(&event)
    }

    /// The event of a source that waits or is held and has this external id.
    pub(crate) fn find(&self, instance: &str, external_id: &str) -> Option<&Header> {
        let is_it =
            |header: &&Header| &*header.external_id == external_id && &*header.source.instance == instance;
        [&self.directed, &self.ambient, &self.held]
            .into_iter()
            .find_map(|place| place.values().rev().find(is_it))
    }

    /// Everything that waits, most urgent first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Header> {
        [&self.control, &self.operator, &self.directed, &self.ambient, &self.receipts]
            .into_iter()
            .flat_map(BTreeMap::values)
    }
}
