//! What an operator sees of an agent: updates in, entries out. Pure: no terminal, no clock, no network.
//!
//! Owns what is told apart (think, scratch, delivered) and that nothing is shown twice. Refuses to draw.

mod entry;
mod live;

use std::collections::HashSet;
use std::sync::Arc;

use klbr_core::action::End;
use klbr_core::event::SourceKind;
use klbr_core::ids::{ActionId, EventId, Seq};
use klbr_core::policy::Cause;
use klbr_core::record::{BreakCause, TurnCause, TurnEnd, WaitEnd};
use klbr_core::time::{Human, Timestamp};
use klbr_core::update::{Happening, Update};

pub(crate) use entry::{Entry, Kind};
pub(crate) use live::State;

/// What is seen of one agent.
#[derive(Debug, Default)]
pub(crate) struct View {
    entries: Vec<Entry>,
    last: Option<Seq>,
    live: live::Live,
    /// The actions' names of the last reply, in order: what an action that never began was called.
    calls: Vec<Arc<str>>,
    pending: Vec<Pending>,
    shown: HashSet<EventId>,
}

/// A message of this client that the agent has not been shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    /// Its idempotency key.
    pub(crate) key: String,
    /// What it says.
    pub(crate) text: String,
    /// Its event, once it is durable.
    pub(crate) event: Option<EventId>,
}

impl View {
    /// Takes an update in; false when it was known already.
    pub(crate) fn apply(&mut self, update: &Update) -> bool {
        if let Some(id) = update.id {
            if self.last.is_some_and(|last| id <= last) {
                return false;
            }
            self.last = Some(id);
        }
        self.happen(update.at, &update.happening);
        true
    }

    /// The durable entries, oldest first. They are only ever added to.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What streams and has not become durable.
    pub(crate) fn streaming(&self) -> Vec<Entry> {
        self.live.streaming()
    }

    /// What goes on at `now`.
    pub(crate) fn states(&self, now: Timestamp) -> Vec<State> {
        self.live.states(now)
    }

    /// The oldest effect that waits for the operator.
    pub(crate) fn held(&self) -> Option<ActionId> {
        self.live.held()
    }

    /// Whether a turn is under way.
    pub(crate) fn in_turn(&self) -> bool {
        self.live.in_turn()
    }

    /// This client's messages that the agent has not been shown.
    pub(crate) fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// A message of this client is on its way.
    pub(crate) fn send(&mut self, key: String, text: String) {
        self.pending.push(Pending { key, text, event: None });
    }

    /// The message of this key is durable.
    pub(crate) fn sent(&mut self, key: &str, event: EventId) {
        if self.shown.contains(&event) {
            self.pending.retain(|pending| pending.key != key);
        } else if let Some(pending) = self.pending.iter_mut().find(|pending| pending.key == key) {
            pending.event = Some(event);
        }
    }

    /// The message of this key will never be sent.
    pub(crate) fn refused(&mut self, at: Timestamp, key: &str, why: &str) {
        self.pending.retain(|pending| pending.key != key);
        self.note(at, Kind::Failure, format!("not sent: {why}"));
    }

    /// Adds an entry of this client's own.
    pub(crate) fn note(&mut self, at: Timestamp, kind: Kind, text: impl AsRef<str>) {
        self.push(at, kind, text.as_ref());
    }

    fn push(&mut self, at: Timestamp, kind: Kind, text: &str) {
        let text = text.trim_end();
        if !text.trim().is_empty() {
            self.entries.push(Entry::new(at, kind, text));
        }
    }

    fn happen(&mut self, at: Timestamp, happening: &Happening) {
        self.live.apply(at, happening);
        match happening {
            Happening::ThinkDelta { .. } | Happening::ScratchDelta { .. } | Happening::CallDelta { .. } => {}
            Happening::Admitted { event, source: SourceKind::Operator, external_id, .. } => {
                self.sent(external_id, *event);
            }
            Happening::Admitted { .. } | Happening::Consumed { .. } => {}
            Happening::Marked { item, status, note, decider, .. } => {
                let note = note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
                self.push(
                    at,
                    Kind::Note,
                    &format!("{item} is marked {} by {decider}{note}", status.as_str()),
                );
            }
            Happening::Shown { events, text, .. } => {
                self.shown.extend(events);
                self.pending.retain(|pending| !pending.event.is_some_and(|event| events.contains(&event)));
                self.entries.extend(entry::of_frame(at, text));
            }
            Happening::TurnStarted { cause, .. } => match cause {
                TurnCause::Events => {}
                TurnCause::WaitTimedOut => self.push(at, Kind::Note, "a turn begins: the wait is over"),
                TurnCause::Idle => {
                    self.push(at, Kind::Note, "a turn begins: nothing has happened for a while")
                }
            },
            Happening::Nudged { text, .. } => self.entries.extend(entry::of_frame(at, text)),
            Happening::Replied { think, scratch, calls, .. } => {
                self.push(at, Kind::Think, think.as_deref().unwrap_or_default());
                self.push(at, Kind::Scratch, scratch);
                self.calls.clone_from(calls);
            }
            Happening::ReplyDropped { scratch, .. } => {
                if &**scratch != "(interrupted)" {
                    self.push(at, Kind::Scratch, scratch);
                }
                self.push(at, Kind::Note, "the reply was dropped in the middle");
            }
            Happening::SamplingFailed { failure, retry_at, .. } => {
                let then = if retry_at.is_some() { "" } else { "; it is not tried again" };
                let failed = Entry::new(at, Kind::Failure, &format!("{failure}{then}"));
                // The same failure over and over is one entry; the countdown shows that it goes on.
                if self.entries.last().is_none_or(|last| last.kind != failed.kind || last.text != failed.text)
                {
                    self.entries.push(failed);
                }
            }
            Happening::ActionStarted { .. } => {}
            Happening::Held { action, name, arguments, reason } => {
                let text = format!("{action} {name} {arguments}: {reason}");
                self.push(at, Kind::Held, &text);
            }
            Happening::ActionEnded { action, end, result } => self.action_ended(at, *action, end, result),
            Happening::Delivered { channel, text, .. } if &**channel == "local" => {
                self.push(at, Kind::Delivered, text);
            }
            Happening::Delivered { channel, text, .. } => {
                self.push(at, Kind::Delivered, &format!("[{channel}] {text}"));
            }
            Happening::Waiting { until, reason } => {
                let reason = reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
                self.push(at, Kind::Wait, &format!("at most {}{reason}", Human(until.since(at))));
            }
            Happening::WaitEnded { end } => {
                let text = match end {
                    WaitEnd::TimedOut => "over: nothing came".to_owned(),
                    WaitEnd::Woken { by } => format!("woken by {by}"),
                    WaitEnd::Commanded { by } => format!("ended by the operator's {by}"),
                };
                self.push(at, Kind::Wait, &text);
            }
            Happening::TurnEnded { end, .. } => {
                let (kind, text) = match end {
                    TurnEnd::Yielded | TurnEnd::Waits => return,
                    TurnEnd::NothingDelivered => {
                        (Kind::Note, "the turn ended, and nothing was delivered".to_owned())
                    }
                    TurnEnd::Preempted { by } => (Kind::Note, format!("the turn was ended by {by}")),
                    TurnEnd::LimitReached => (Kind::Note, "the turn ended at its limit".to_owned()),
                    TurnEnd::Refused => {
                        (Kind::Failure, "the turn ended: the provider refused it for good".to_owned())
                    }
                };
                self.push(at, kind, &text);
            }
            Happening::PrefixMade { cause, .. } => {
                let cause = match cause {
                    BreakCause::First | BreakCause::Compaction | BreakCause::Reset => return,
                    BreakCause::Instructions => "the instructions changed",
                    BreakCause::Model => "the model changed",
                    BreakCause::Effort => "the effort changed",
                    BreakCause::Tools => "the tools changed",
                    BreakCause::Refused => "a refused message was replaced",
                };
                self.push(at, Kind::Note, &format!("the prompt begins anew: {cause}"));
            }
            Happening::SoulChanged { epoch } => {
                self.push(at, Kind::Note, &format!("the soul was replaced ({epoch})"))
            }
            Happening::Activated { epoch, manifest, cause } => {
                let manifest = manifest.as_deref().map_or("no policy", |name| &name[..name.len().min(12)]);
                let kind = if matches!(cause, Cause::Failed { .. }) { Kind::Failure } else { Kind::Note };
                self.push(at, kind, &format!("{manifest} is in force ({epoch}): {}", why(cause)));
            }
            Happening::Reset => {
                self.push(at, Kind::Note, "the conversation was reset; history stays searchable")
            }
            Happening::Compacting => self.push(at, Kind::Note, "the conversation is being summarised"),
            Happening::Compacted { covers, .. } => {
                self.push(at, Kind::Note, &format!("{covers} messages were summarised"));
            }
            Happening::CompactionFailed { why } => {
                self.push(at, Kind::Failure, &format!("no summary: {why}"))
            }
            Happening::PrefixBroken { model, offset } => {
                let text =
                    format!("{model} has to read its prompt again from byte {offset}; nothing declared it");
                self.push(at, Kind::Failure, &text);
            }
            Happening::DeadLettered { failure } => {
                self.push(
                    at,
                    Kind::Failure,
                    &format!("a message was given up, the provider refused it: {failure}"),
                );
            }
            Happening::Recovered => self.push(at, Kind::Note, "the process began anew; nothing was lost"),
            Happening::ClockHeld => self.push(at, Kind::Note, "the clock was set back; time holds still"),
        }
    }

    fn action_ended(&mut self, at: Timestamp, action: ActionId, end: &Option<End>, result: &str) {
        let begun = self.live.take_ended();
        let called = || self.calls.get(action.number.saturating_sub(1) as usize);
        let name = begun.as_ref().map(|running| &running.name).or_else(called).cloned().unwrap_or_default();
        let arguments = begun.map(|running| format!(" {}", running.arguments)).unwrap_or_default();
        let how = match end {
            Some(End::Confirmed) => String::new(),
            Some(End::Failed { why }) => format!("failed ({}), ", entry::failure(*why)),
            Some(End::Unknown) => "end unknown, ".to_owned(),
            None => "goes on, ".to_owned(),
        };
        self.push(at, Kind::Action, &format!("{name}{arguments} → {how}{result}"));
    }
}

/// Why something was put in force, in a few words.
pub(crate) fn why(cause: &Cause) -> String {
    match cause {
        Cause::First => "from the beginning".to_owned(),
        Cause::Activated => "activated".to_owned(),
        Cause::Soul => "the soul was replaced".to_owned(),
        Cause::RolledBack { to } => format!("rolled back to {to}"),
        Cause::Failed { epoch, to, reason } => format!("{epoch} kept failing, {to} came back: {reason}"),
    }
}

#[cfg(test)]
mod tests;
