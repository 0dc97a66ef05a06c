//! The judge of the crash matrix: what a client, the model server and the file system saw, and the rules.
//!
//! Pure: evidence in, violations out, so that doctored evidence proves the judge.

mod discord;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use klbr_core::action::{End, FailureKind};
use klbr_core::event::{Priority, SourceKind};
use klbr_core::ids::ActionId;
use klbr_core::ledger::Ledger;
use klbr_core::record::{Record, Stamped};
use klbr_core::update::{Happening, Update};

use crate::clock::Stamp;
use crate::prefix::{Break, extension};
use crate::validity::{Rules, check};
pub use discord::{Participation, Said};

/// What canaries in scratch and reasoning begin with.
pub const CANARY: &str = "CANARY";

/// A message in the client's log.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The key that names it.
    pub key: String,
    /// What its answer repeats.
    pub marker: String,
    /// The event's id, once acknowledged.
    pub event: Option<u64>,
}

impl Sent {
    /// What the model answers it with.
    pub fn answer(&self) -> String {
        format!("re {}", self.marker)
    }
}

/// What was seen of one home from outside.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The client's log.
    pub messages: Vec<Sent>,
    /// The updates as a client was told them that resumed with the last id across every restart.
    pub updates: Vec<Update>,
    /// What that client was told twice or out of order, and keys that had a second id.
    pub faults: Vec<String>,
    /// The lines of the file that commands append their own number to.
    pub effects: Vec<String>,
    /// The records, as the last daemon showed them.
    pub records: Vec<Stamped>,
    /// The ledger, as the last daemon showed it.
    pub ledger: Ledger,
    /// What the model server captured.
    pub requests: Requests,
    /// What a check of the closed store found.
    pub store: Vec<String>,
    /// What was said and made at Discord, where the world is that.
    pub discord: Option<Participation>,
}

/// How long a request that was dropped at once may be read after the one that followed it on another connection.
const OVERTAKES: Duration = Duration::from_millis(500);

/// The judge of captured requests; keeps only the last of them.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// How many.
    pub count: usize,
    /// How many were read after the one that followed them: each has a connection of its own.
    pub overtaken: usize,
    /// What is wrong with them.
    pub violations: Vec<String>,
    /// The last one's body.
    pub last: Vec<u8>,
    /// The body of the one before.
    before: Vec<u8>,
    /// When the last one was read.
    read: Option<Stamp>,
}

impl Requests {
    /// Judges the next request: valid by itself, and an extension of the one before (`C-PFX-1`). Nothing that a run
    /// does is a cause for a break.
    pub fn take(&mut self, body: Vec<u8>, read: Stamp) {
        self.count += 1;
        if let Err(violation) = check(&body, Rules::default()) {
            self.violations.push(format!("request {} is invalid: {violation}", self.count));
        }
        if let Err(broken) = follows(&self.last, &body) {
            let is_close = self.read.is_some_and(|before| read.since(before) < OVERTAKES);
            if is_close && follows(&self.before, &body).is_ok() && follows(&body, &self.last).is_ok() {
                self.overtaken += 1;
                self.before = body;
                return;
            }
            self.violations.push(format!("request {} does not extend the one before: {broken}", self.count));
        }
        self.read = Some(read);
        self.before = std::mem::replace(&mut self.last, body);
    }

    /// How often the transcript that the last request carries asks to say this, word for word.
    fn said(&self, content: &str) -> usize {
        let body: serde_json::Value = serde_json::from_slice(&self.last).unwrap_or_default();
        let calls = body["messages"].as_array().into_iter().flatten();
        calls
            .filter_map(|message| message["tool_calls"].as_array())
            .flatten()
            .filter_map(|call| {
                serde_json::from_str::<serde_json::Value>(call["function"]["arguments"].as_str()?).ok()
            })
            .filter(|arguments| arguments["content"] == content)
            .count()
    }
}

/// Whether a request extends the one before it, if there is one.
fn follows(before: &[u8], body: &[u8]) -> Result<(), Break> {
    if before.is_empty() { Ok(()) } else { extension(before, body).map(drop) }
}

/// What is known of one action from the updates.
#[derive(Default)]
struct Action {
    name: String,
    content: Option<String>,
    nonce: Option<String>,
    started: usize,
    ends: Vec<Ended>,
}

#[derive(Debug)]
enum Ended {
    Delivered,
    With(End),
}

impl Evidence {
    /// What holds at any moment: nothing is told twice, no effect is made twice, no scratch is delivered.
    pub fn judge_so_far(&self) -> Vec<String> {
        let mut found = self.faults.clone();
        found.extend(self.requests.violations.iter().cloned());
        let actions = actions(&self.updates);
        self.judge_deliveries(&mut found);
        for (action, seen) in &actions {
            if seen.started != 1 {
                found.push(format!("{action} was told to begin {} times", seen.started));
            }
            if seen.ends.len() > 1 {
                found.push(format!("{action} ({}) ended more than once: {:?}", seen.name, seen.ends));
            }
        }
        self.judge_effects(&actions, &mut found);
        if let Some(discord) = &self.discord {
            discord.judge_so_far(&mut found);
        }
        found
    }

    /// What holds once all is quiet, beside what holds at any moment.
    pub fn judge(&self) -> Vec<String> {
        let mut found = self.judge_so_far();
        self.judge_messages(&mut found);
        self.judge_completeness(&mut found);
        self.judge_attempts(&mut found);
        let actions = actions(&self.updates);
        let begun: BTreeSet<&str> = actions.values().filter_map(|seen| seen.nonce.as_deref()).collect();
        for line in self.effects.iter().filter(|line| !begun.contains(line.as_str())) {
            found.push(format!("the effect {line} was made, and no action was told to begin"));
        }
        for (action, seen) in &actions {
            match (&*seen.name, seen.ends.as_slice()) {
                (_, []) => found.push(format!("{action} ({}) never ended", seen.name)),
                ("process", [Ended::With(End::Confirmed)]) => {
                    let nonce = seen.nonce.as_deref().unwrap_or_default();
                    if !self.effects.iter().any(|line| line == nonce) {
                        found
                            .push(format!("{action} is confirmed, and its line {nonce:?} was never written"));
                    }
                }
                _ => {}
            }
        }
        if !self.ledger.balances() {
            found.push(format!("the ledger does not balance: {}", self.ledger));
        }
        let said = match &self.discord {
            None => 0,
            Some(discord) => {
                discord.judge(&self.updates, &actions, &mut found);
                discord.said.len() + discord.chatter.len()
            }
        };
        // Beside the messages there are the late outcomes, of which the confirmed wake nobody and may wait (`C-REC-3`).
        let (ledger, quiet, late) =
            (self.ledger, self.late(Priority::Ambient), self.late(Priority::Directed));
        let sent = self.messages.len() + said;
        if ledger.admitted != sent as u64 + quiet + late
            || ledger.shown + ledger.waiting != ledger.admitted
            || ledger.waiting > quiet
        {
            found.push(format!(
                "{sent} messages were sent, {} outcomes came late, and the ledger is {ledger}",
                quiet + late
            ));
        }
        found.extend(self.store.iter().map(|fault| format!("the store: {fault}")));
        found
    }

    /// How many markers were answered more than once; the judge asks whether the model itself had said it so often.
    pub fn said_again(&self) -> usize {
        self.answers().values().filter(|count| **count > 1).count()
    }

    /// How many attempts ended as unknown.
    pub fn unknown(&self) -> usize {
        let is_unknown = |update: &&Update| {
            matches!(&update.happening, Happening::ActionEnded { end: Some(End::Unknown), .. })
        };
        self.updates.iter().filter(is_unknown).count()
    }

    /// How many outcomes were admitted as events of the harness's own with this priority.
    fn late(&self, wanted: Priority) -> u64 {
        let is_late = |update: &&Update| matches!(&update.happening, Happening::Admitted { source: SourceKind::System, priority, .. } if *priority == wanted);
        self.updates.iter().filter(is_late).count() as u64
    }

    fn answers(&self) -> BTreeMap<&str, usize> {
        let mut answers = BTreeMap::new();
        for update in &self.updates {
            if let Happening::Delivered { text, .. } = &update.happening {
                *answers.entry(text.as_str()).or_default() += 1;
            }
        }
        answers
    }

    fn judge_deliveries(&self, found: &mut Vec<String>) {
        let known: BTreeSet<String> = self.messages.iter().map(Sent::answer).collect();
        for (text, count) in self.answers() {
            if text.contains(CANARY) {
                found.push(format!("scratch was delivered: {text:?}"));
            }
            let is_known = match &self.discord {
                None => known.contains(text),
                Some(discord) => discord.asks_for(text),
            };
            if !is_known {
                found.push(format!("{text:?} was delivered, and answers no message"));
            }
            if count > 1 {
                let said = self.requests.said(text);
                if said < count {
                    found.push(format!(
                        "{text:?} was delivered {count} times; the model said it {said} times"
                    ));
                }
            }
        }
    }

    fn judge_messages(&self, found: &mut Vec<String>) {
        let mut admitted: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for update in &self.updates {
            if let Happening::Admitted { event, external_id, .. } = &update.happening {
                admitted.entry(external_id).or_default().push(event.0);
            }
        }
        let answers = self.answers();
        for message in &self.messages {
            let key = message.key.as_str();
            match (message.event, admitted.get(key).map(Vec::as_slice)) {
                (None, _) => found.push(format!("{key} was never acknowledged")),
                (Some(event), Some([told])) if *told == event => {}
                (Some(event), told) => {
                    found.push(format!("{key} was acknowledged as {event} and is admitted as {told:?}"));
                }
            }
            if !answers.contains_key(message.answer().as_str()) {
                found.push(format!("{key} was acknowledged and never answered"));
            }
        }
    }

    /// A client that resumes is told what every record tells, once and in order.
    fn judge_completeness(&self, found: &mut Vec<String>) {
        let told: Vec<Update> = self.records.iter().filter_map(Update::from_record).collect();
        let gap = told.iter().zip(&self.updates).find(|(record, update)| record != update);
        if let Some((record, update)) = gap {
            found.push(format!("the records tell {record:?} where the client was told {update:?}"));
        } else if told.len() != self.updates.len() {
            let (records, client) = (told.len(), self.updates.len());
            found.push(format!("the records tell {records} updates; the client was told {client}"));
        }
    }

    fn judge_effects(&self, actions: &BTreeMap<ActionId, Action>, found: &mut Vec<String>) {
        let by_nonce: BTreeMap<&str, (&ActionId, &Action)> = actions
            .iter()
            .filter_map(|(action, seen)| Some((seen.nonce.as_deref()?, (action, seen))))
            .collect();
        let mut seen_lines = BTreeSet::new();
        for line in &self.effects {
            if !seen_lines.insert(line) {
                found.push(format!("the effect {line} was made twice"));
            }
            // What was not told yet is told to a client that resumes.
            let Some((action, seen)) = by_nonce.get(line.as_str()) else { continue };
            match seen.ends.as_slice() {
                [] | [Ended::With(End::Confirmed | End::Unknown)] => {}
                [Ended::With(End::Failed { why: FailureKind::Cancelled | FailureKind::TimedOut })] => {}
                ends => found.push(format!("the effect {line} was made, and {action} ended as {ends:?}")),
            }
        }
    }

    /// No attempt that may not be repeated is made twice, and one that a crash cut off is flagged unknown.
    fn judge_attempts(&self, found: &mut Vec<String>) {
        let mut open: BTreeSet<ActionId> = BTreeSet::new();
        let mut cut_off: BTreeSet<ActionId> = BTreeSet::new();
        let mut processes: BTreeSet<ActionId> = BTreeSet::new();
        for stamped in &self.records {
            match &stamped.record {
                Record::Intended { action, name, .. } if &**name == "process" => {
                    processes.insert(*action);
                }
                Record::Attempted { action, number } if processes.contains(action) => {
                    if *number != 1 {
                        found.push(format!("{action} was attempted again, and may not be repeated"));
                    }
                    open.insert(*action);
                }
                Record::Recovered => cut_off.append(&mut open),
                Record::Settled { action, end, .. } | Record::Receipt { action, end, .. } => {
                    open.remove(action);
                    if cut_off.remove(action) && *end != End::Unknown {
                        found.push(format!("{action} was cut off by a crash and ended as {end:?}"));
                    }
                }
                _ => {}
            }
        }
        found.extend(
            cut_off.iter().map(|action| format!("{action} was cut off by a crash and never flagged")),
        );
    }
}

/// What is known of each action.
fn actions(updates: &[Update]) -> BTreeMap<ActionId, Action> {
    let mut actions: BTreeMap<ActionId, Action> = BTreeMap::new();
    for update in updates {
        match &update.happening {
            Happening::ActionStarted { action, name, arguments } => {
                let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
                let text = |member: &str| arguments[member].as_str().map(str::to_owned);
                let seen = actions.entry(*action).or_default();
                seen.name = name.to_string();
                seen.content = text("content");
                seen.nonce = text("command").and_then(|line| nonce(&line));
                seen.started += 1;
            }
            Happening::Delivered { action, .. } => {
                actions.entry(*action).or_default().ends.push(Ended::Delivered);
            }
            // A call that could not be run never began.
            Happening::ActionEnded { action, end: Some(end), .. } => {
                if let Some(seen) = actions.get_mut(action) {
                    seen.ends.push(Ended::With(end.clone()));
                }
            }
            _ => {}
        }
    }
    actions
}

/// The command line that makes an effect of its own number.
pub(super) fn command(file: &std::path::Path) -> String {
    format!("echo {{nonce}} >> '{}'; sleep 0.02", file.display())
}

fn nonce(line: &str) -> Option<String> {
    Some(line.strip_prefix("echo ")?.split(' ').next()?.to_owned())
}
