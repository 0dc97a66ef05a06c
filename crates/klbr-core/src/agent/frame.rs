//! Frames: which waiting events are shown together (`C-FRM-1`), and what deliveries resolve against.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Agent;
use crate::action::{Anchor, FrameContext};
use crate::attention::Item;
use crate::event::{Audience, Conversation, Header, Priority, SourceKind};
use crate::ids::EventId;
use crate::policy::Candidate;
use crate::time::Timestamp;

/// How many undecided items a frame previews.
const PREVIEW: usize = 6;

/// What one frame shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// The events shown in full, in the order in which they are shown.
    pub(super) events: Vec<Header>,
    /// Chatter that is counted instead.
    pub(super) folds: Vec<Fold>,
    /// Some of what waits for a decision, oldest first (`B-DIS-4`).
    pub(super) pending: Vec<Item>,
}

impl Selection {
    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.folds.is_empty()
    }

    /// Whether an event is shown in full.
    pub(super) fn shows(&self, event: EventId) -> bool {
        self.events.iter().any(|header| header.id == event)
    }

    /// The events whose bodies are needed: those shown, then those that the preview quotes.
    pub(super) fn bodies(&self) -> Vec<EventId> {
        let quoted = self.pending.iter().filter(|item| !self.shows(item.event)).map(|item| item.newest);
        self.events.iter().map(|header| header.id).chain(quoted).collect()
    }
}

/// Old chatter of one place, counted in one line.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub(super) place: Place,
    pub(super) events: Vec<EventId>,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// Where something was said: a conversation, or a source that has none.
pub(super) type Place = (Arc<str>, Option<Conversation>);

impl Header {
    pub(super) fn place(&self) -> Place {
        (self.source.instance.clone(), self.conversation.clone())
    }
}

impl Agent {
    /// Chooses what the next opening frame shows: the operator alone, else everything else by conversation,
    /// directed ones first, within the limits.
    pub(super) fn select(&self) -> Selection {
        let inbox = &self.state.inbox;
        let limits = &self.config.limits;
        let operator = inbox.waiting(Priority::Operator);
        let mut selection = Selection::default();
        if !operator.is_empty() {
            selection.events.extend(operator.values().take(limits.frame_events).cloned());
        } else {
            self.select_external(&mut selection);
            if let Some(chosen) = &self.live.chosen {
                let is_chosen = |header: &Header| {
                    chosen.contains(&header.id) || header.joins.is_some_and(|older| chosen.contains(&older))
                };
                selection.events.retain(is_chosen);
            }
        }
        if selection.events.iter().any(|header| header.source.kind == SourceKind::Channel) {
            selection.pending = self.state.attention.pending().take(PREVIEW).cloned().collect();
        }
        selection.events.extend(inbox.receipts().take(limits.frame_events).cloned());
        selection
    }

    /// What policy may choose from for the next opening frame; nothing when it shows the operator's words.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let inbox = &self.state.inbox;
        if !inbox.waiting(Priority::Operator).is_empty() {
            return Vec::new();
        }
        let mut selection = Selection::default();
        self.select_external(&mut selection);
        let is_joined = |header: &&Header| header.joins.is_some_and(|older| inbox.contains(older));
        let candidate = |header: &Header| Candidate {
            event: header.id,
            kind: header.source.kind,
            instance: header.source.instance.clone(),
            conversation: header.conversation.as_ref().and_then(|one| self.state.aliases.alias(one)).cloned(),
            priority: header.priority,
            waited_ms: self.now().since(header.at).as_millis() as u64,
            bytes: header.bytes,
        };
        selection.events.iter().filter(|header| !is_joined(header)).map(candidate).collect()
    }

    /// Chooses what joins a running turn at its step boundary: what jobs and teams deliver (`C-FRM-2`).
    pub(super) fn select_addition(&self) -> Selection {
        let is_delivery = |header: &&Header| matches!(header.source.kind, SourceKind::Job | SourceKind::Team);
        let directed = self.state.inbox.waiting(Priority::Directed).values();
        let ambient = self.state.inbox.waiting(Priority::Ambient).values();
        let events = directed.chain(ambient).filter(is_delivery).take(self.config.limits.frame_events);
        Selection { events: events.cloned().collect(), ..Selection::default() }
    }

    fn select_external(&self, selection: &mut Selection) {
        let limits = &self.config.limits;
        let inbox = &self.state.inbox;
        let waiting = || {
            [Priority::Directed, Priority::Ambient].into_iter().flat_map(|one| inbox.waiting(one).values())
        };
        // What is a newer version of something that waits is shown with it.
        let mut versions: BTreeMap<EventId, Vec<&Header>> = BTreeMap::new();
        let joined = |header: &Header| header.joins.filter(|&older| inbox.contains(older));
        for header in waiting() {
            if let Some(older) = joined(header) {
                versions.entry(older).or_default().push(header);
            }
        }
        let versions_of = |header: &Header| versions.get(&header.id).into_iter().flatten();
        let mut places: BTreeMap<Place, Vec<&Header>> = BTreeMap::new();
        for header in waiting().filter(|header| joined(header).is_none()) {
            places.entry(header.place()).or_default().push(header);
        }
        let mut places: Vec<(Place, Vec<&Header>)> = places.into_iter().collect();
        for (place, events) in &mut places {
            events.sort_unstable_by_key(|header| header.id);
            let mut fold = self.fold(place, events);
            if let Some(fold) = &mut fold {
                let older = fold.events.clone();
                fold.events.extend(older.iter().filter_map(|id| versions.get(id)).flatten().map(|h| h.id));
            }
            selection.folds.extend(fold);
        }
        let is_directed = |header: &&&Header| {
            header.priority == Priority::Directed
                || versions_of(header).any(|version| version.priority == Priority::Directed)
        };
        let urgency = |events: &[&Header]| {
            let directed = events.iter().filter(is_directed).map(|h| h.id).min();
            let oldest = events.iter().map(|h| h.id).min();
            (directed.is_none(), directed.or(oldest))
        };
        places.sort_by_key(|(_, events)| urgency(events));

        // A quarter of the budget, in bytes: what a token is taken for when nothing has been counted.
        let mut bytes =
            usize::try_from(self.config.context_tokens / 4).unwrap_or(usize::MAX).saturating_mul(3);
        for (_, events) in places {
            for header in events {
                let size = header.bytes as usize + 160;
                let full = selection.events.len() >= limits.frame_events || size > bytes;
                if full && !selection.events.is_empty() {
                    return;
                }
                bytes = bytes.saturating_sub(size);
                selection.events.push(header.clone());
                selection.events.extend(versions_of(header).copied().cloned());
            }
        }
    }

    /// Takes old chatter out of a conversation's events: what is older than a day, or past the newest 2,000.
    fn fold(&self, place: &Place, events: &mut Vec<&Header>) -> Option<Fold> {
        let limits = &self.config.limits;
        let ambient = events.iter().filter(|h| h.priority == Priority::Ambient).count();
        let mut surplus = ambient.saturating_sub(limits.fold_count);
        let mut folded = Vec::new();
        events.retain(|header| {
            let old = self.now().since(header.at) > limits.fold_age;
            let fold = header.priority == Priority::Ambient && (old || surplus > 0);
            if fold {
                surplus = surplus.saturating_sub(1);
                folded.push((header.id, header.at));
            }
            !fold
        });
        let (first, last) = (folded.first()?.1, folded.last()?.1);
        let events = folded.into_iter().map(|(id, _)| id).collect();
        Some(Fold { place: place.clone(), events, first, last })
    }
}

/// The conversations that events come from, each once.
pub(super) fn conversations(events: &[Header]) -> Vec<&Conversation> {
    let mut conversations: Vec<&Conversation> = Vec::new();
    for conversation in events.iter().filter_map(|header| header.conversation.as_ref()) {
        if !conversations.contains(&conversation) {
            conversations.push(conversation);
        }
    }
    conversations
}

/// What deliveries of a turn resolve their defaults against: a destination only when there is exactly one.
pub(super) fn context(events: &[Header]) -> FrameContext {
    let conversations = conversations(events);
    let anchor = |conversation: &&Conversation| {
        let is_message =
            |header: &&Header| header.amends.is_none() && header.conversation.as_ref() == Some(*conversation);
        let addressed = events.iter().filter(is_message).rfind(|h| h.priority == Priority::Directed);
        let newest = addressed.or_else(|| events.iter().rfind(is_message))?;
        let external_id = newest.external_id.clone();
        Some(Anchor { conversation: (*conversation).clone(), external_id })
    };
    let destination = match conversations[..] {
        [only] => Some(only.clone()),
        _ => None,
    };
    FrameContext { destination, anchors: conversations.iter().filter_map(anchor).collect() }
}

/// Who is owed a delivery: whoever addressed the agent (`C-YLD-5`).
pub(super) fn audience(events: &[Header]) -> Vec<Audience> {
    let mut audience: Vec<Audience> = Vec::new();
    for header in events {
        let owed = match (header.source.kind, header.priority) {
            (SourceKind::Operator, _) => true,
            (SourceKind::Channel, priority) => priority == Priority::Directed,
            (SourceKind::Timer | SourceKind::Job | SourceKind::Team | SourceKind::System, _) => false,
        };
        if owed && !audience.contains(&header.audience()) {
            audience.push(header.audience());
        }
    }
    audience
}
