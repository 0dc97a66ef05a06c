//! Admission: an event becomes a fact before anything else happens to it.

use std::sync::Arc;

use super::Agent;
use super::live::{Batch, Then};
use crate::event::{Change, Conversation, Header, NewEvent, Priority};
use crate::ids::EventId;
use crate::input::Command;
use crate::policy::{Question, Slot};
use crate::record::Record;

impl Agent {
    pub(super) fn handle_admit(&mut self, ticket: u64, event: NewEvent) {
        let id = self.admit(event);
        self.command(Command::Acknowledge { ticket, event: id });
    }

    /// Records an event, and lets policy say how urgent it is where it may.
    pub(super) fn admit(&mut self, event: NewEvent) -> EventId {
        let id = self.state.last_event.next();
        let (joins, change) = self.joins(&event);
        if let Some(conversation) = &event.conversation {
            self.alias(conversation);
        }
        let is_policys = !event.priority.preempts() && event.source.kind != crate::event::SourceKind::System;
        let held = is_policys && (self.is_bound(Slot::EventAccept) || self.is_bound(Slot::EventPriority));
        let header = Header {
            id,
            source: event.source,
            external_id: event.external_id,
            priority: event.priority,
            conversation: event.conversation,
            at: self.now(),
            bytes: u32::try_from(event.body.text.len()).unwrap_or(u32::MAX),
            returned: 0,
            attention: event.attention,
            amends: event.amends,
            joins,
            control: event.control,
            via: event.via,
        };
        self.step.bodies.push((id, event.body));
        self.record(Record::Admitted { event: header.clone(), held });
        self.note_arrival();
        if let (Some(older), Some(Change::Deleted)) = (joins, change) {
            self.withdraw(older);
        } else if held {
            self.ask_about(&header);
        } else if is_policys {
            self.note_default(&accept_question(&header));
            self.note_default(&priority_question(&header));
        }
        id
    }

    /// The event that an event is shown together with: the older version of itself, while that has never been
    /// shown (`C-EVT-2`).
    fn joins(&self, event: &NewEvent) -> (Option<EventId>, Option<Change>) {
        let Some(amends) = &event.amends else { return (None, None) };
        let older = self.state.inbox.find(&event.source.instance, &amends.of);
        let joins = older.filter(|older| older.returned == 0).map(|older| older.id);
        let is_version = amends.change != Change::Reacted;
        (joins.filter(|_| is_version), Some(amends.change))
    }

    /// Takes a message back that was never shown, with its newer versions and with what took it back.
    fn withdraw(&mut self, older: EventId) {
        let of_it = |header: &&Header| header.id == older || header.joins == Some(older);
        let inbox = &self.state.inbox;
        let events = inbox.iter().chain(inbox.held()).filter(of_it).map(|header| header.id).collect();
        // A frame that was being made of it is made anew.
        self.live.loading.take_if(|loading| loading.selection.shows(older));
        self.record(Record::Withdrawn { events });
    }

    /// Has policy say whether a held event is kept, and then how urgent it is.
    pub(super) fn ask_about(&mut self, header: &Header) {
        self.ask(accept_question(header), Then::Accept(header.id));
    }

    pub(super) fn accept(&mut self, event: EventId, accepted: bool) {
        let Some(header) = self.state.inbox.held().find(|header| header.id == event).cloned() else {
            return self.drop_late(format!("the acceptance of {event}, which was withdrawn"));
        };
        if accepted { self.ask_priority(&header) } else { self.record(Record::Declined { event }) }
    }

    fn ask_priority(&mut self, header: &Header) {
        self.ask(priority_question(header), Then::Prioritise(header.id));
    }

    /// Something new waits: what was decided about the batch before is decided anew.
    pub(super) fn note_arrival(&mut self) {
        self.live.idle_at = None;
        if self.live.batch == Batch::LeftAlone {
            self.live.batch = Batch::New;
        }
    }

    pub(super) fn prioritise(&mut self, event: EventId, priority: Priority) {
        if !self.state.inbox.is_held(event) {
            return self.drop_late(format!("the priority of {event}, which was withdrawn"));
        }
        self.record(Record::Reprioritised { event, priority });
        self.note_arrival();
    }

    /// Gives a conversation its alias, once and for good (`B-DIS-5`).
    fn alias(&mut self, conversation: &Conversation) {
        if self.state.aliases.alias(conversation).is_some() {
            return;
        }
        let channel = self.config.channels.get(&conversation.instance).cloned().unwrap_or_default();
        let prefix = channel.alias_prefix;
        let given = |(_, alias): (&Conversation, &Arc<str>)| {
            alias.strip_prefix(&*prefix).and_then(|number| number.parse::<u64>().ok())
        };
        let number = self.state.aliases.iter().filter_map(given).max().unwrap_or(0) + 1;
        let alias = format!("{prefix}{number}").into();
        self.record(Record::Aliased { conversation: conversation.clone(), alias });
    }
}

fn accept_question(header: &Header) -> Question {
    Question::EventAccept {
        event: header.id,
        kind: header.source.kind,
        instance: header.source.instance.clone(),
        external_id: header.external_id.clone(),
        conversation: header.conversation.as_ref().map(|conversation| conversation.id.clone()),
        priority: header.priority,
        bytes: header.bytes,
    }
}

fn priority_question(header: &Header) -> Question {
    Question::EventPriority {
        event: header.id,
        kind: header.source.kind,
        instance: header.source.instance.clone(),
        priority: header.priority,
    }
}
