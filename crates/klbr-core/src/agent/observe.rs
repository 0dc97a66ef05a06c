//! Observers and schedules: what hooks have the host do, together with how far they have come.

use super::Agent;
use crate::event::{Body, NewEvent, Priority, Source, SourceKind};
use crate::policy::{HostCommand, Observed};
use crate::record::Record;
use crate::time::Timestamp;

/// The source instance of what a schedule admits.
const SCHEDULE: &str = "schedule";

impl Agent {
    /// Takes an observer's report in, once: what it wants done is recorded with its cursor.
    pub(super) fn handle_observed(&mut self, observed: Observed) {
        let before = self.state.observers.get(&observed.observer).copied().unwrap_or_default();
        let is_news = observed.placed || observed.through > before;
        if !is_news || observed.through > self.state.seq {
            let Observed { observer, through, .. } = observed;
            return self.drop_late(format!("a report of {observer} through record {through}"));
        }
        let first = self.state.seq.next();
        for (n, command) in observed.commands.iter().enumerate() {
            match command {
                HostCommand::Admit { text, priority } => {
                    let source = Source::new(SourceKind::Job, observed.observer.clone());
                    let body = Body::text(text.clone());
                    self.admit(NewEvent::external(source, observed.key(n, first), *priority, body));
                }
                HostCommand::Mark(mark) => self.mark_as_policy(mark),
                HostCommand::Schedule { at, text } => {
                    let (key, text) = (observed.key(n, first).into(), text.clone());
                    self.record(Record::Scheduled { at: *at, key, text });
                }
            }
        }
        let Observed { observer, through, gave_up, .. } = observed;
        self.record(Record::ObserverAdvanced { observer, through, gave_up });
    }

    /// Admits what was scheduled for now.
    pub(super) fn take_schedule(&mut self) -> bool {
        let Some(((at, key), text)) = self.state.schedule.first_key_value() else { return false };
        if *at > self.now() {
            return false;
        }
        let source = Source::new(SourceKind::Timer, SCHEDULE);
        let event = NewEvent::external(source, key.clone(), Priority::Directed, Body::text(text.clone()));
        let key = (*at, key.clone());
        self.admit(event);
        self.record(Record::ScheduleKept { at: key.0, key: key.1 });
        true
    }

    /// When the next thing is scheduled.
    pub(super) fn next_scheduled(&self) -> Option<Timestamp> {
        self.state.schedule.first_key_value().map(|((at, _), _)| *at)
    }
}
