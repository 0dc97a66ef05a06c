//! Admission: an event becomes a fact before anything else happens to it.

use std::sync::Arc;

use super::Agent;
use super::live::{Batch, Then};
use crate::event::{Conversation, Header, NewEvent, Priority};
use crate::input::Command;
use crate::policy::{Question, Slot};
use crate::record::Record;

impl Agent {
    pub(super) fn handle_admit(&mut self, ticket: u64, event: NewEvent) {
        let id = self.admit(event);
        self.command(Command::Acknowledge { ticket, event: id });
    }

    /// Records an event, and lets policy say how urgent it is where it may.
    pub(super) fn admit(&mut self, event: NewEvent) -> crate::ids::EventId {
        let id = self.state.last_event.next();
        if let Some(conversation) = &event.conversation {
            self.alias(conversation);
        }
        let held = self.config.bound.contains_key(&Slot::EventPriority)
            && !event.priority.preempts()
            && event.source.kind != crate::event::SourceKind::System;
        let header = Header {
            id,
            source: event.source,
            external_id: event.external_id,
            priority: event.priority,
            conversation: event.conversation,
            at: self.now(),
            bytes: u32::try_from(event.body.text.len()).unwrap_or(u32::MAX),
            returned: 0,
            control: event.control,
        };
        self.step.bodies.push((id, event.body));
        self.record(Record::Admitted { event: header.clone(), held });
        self.note_arrival();
        if held {
            self.ask_priority(&header);
        }
        id
    }

    /// Has policy say how urgent a held event is.
    pub(super) fn ask_priority(&mut self, header: &Header) {
        let question = Question::EventPriority {
            event: header.id,
            kind: header.source.kind,
            instance: header.source.instance.clone(),
            priority: header.priority,
        };
        self.ask(question, Then::Prioritise(header.id));
    }

    /// Something new waits: what was decided about the batch before is decided anew.
    pub(super) fn note_arrival(&mut self) {
        self.live.idle_at = None;
        if self.live.batch == Batch::LeftAlone {
            self.live.batch = Batch::New;
        }
    }

    pub(super) fn prioritise(&mut self, event: crate::ids::EventId, priority: Priority) {
        self.record(Record::Reprioritised { event, priority });
        self.note_arrival();
    }

    /// Gives a conversation its alias, once and for good (`B-DIS-5`).
    fn alias(&mut self, conversation: &Conversation) {
        if self.state.alias(conversation).is_some() {
            return;
        }
        let prefix = self.config.alias_prefixes.get(&conversation.instance).map_or("c", |prefix| &**prefix);
        let given = |(_, alias): &(Conversation, Arc<str>)| {
            alias.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok())
        };
        let number = self.state.aliases.iter().filter_map(given).max().unwrap_or(0) + 1;
        let alias = format!("{prefix}{number}").into();
        self.record(Record::Aliased { conversation: conversation.clone(), alias });
    }
}
