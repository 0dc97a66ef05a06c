//! The judge: the rules that hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use klbr_core::agent::Agent;
use klbr_core::config::Config;
use klbr_core::context::Content;
use klbr_core::ids::{ActionId, Epoch, EventId, Generation, TurnId};
use klbr_core::input::{Command, Step};
use klbr_core::ledger::{Fate, Ledger};
use klbr_core::model::{AssistantMessage, Message, Request};
use klbr_core::policy::Question;
use klbr_core::record::{Move, Record, Stamped};
use klbr_core::status::Status;

use super::world::CANARY;

#[derive(Default)]
pub(super) struct Judge {
    admitted: BTreeSet<EventId>,
    acknowledged: BTreeSet<EventId>,
    fates: BTreeMap<EventId, Fate>,
    attempted: BTreeMap<ActionId, u32>,
    settled: BTreeSet<ActionId>,
    performed: BTreeMap<ActionId, u32>,
    /// The calls that each action has made and not heard of.
    inside: BTreeMap<ActionId, BTreeSet<ActionId>>,
    /// Actions whose call is answered before their end.
    open: BTreeSet<ActionId>,
    results: BTreeSet<u64>,
    generation: Generation,
    lanes: BTreeMap<Arc<str>, (Generation, Request)>,
    turns: u64,
    /// Calls that cells made.
    inner: u64,
    /// The epoch that each turn's actions were judged under.
    judged_under: BTreeMap<TurnId, Epoch>,
    /// The lines of each content that a file had, by what a bracket shows of its hash.
    files: BTreeMap<String, Vec<String>>,
}

impl Judge {
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    pub(super) fn inner(&self) -> u64 {
        self.inner
    }

    /// Looks at what has just become durable.
    pub(super) fn commit(&mut self, step: &Step) -> Result<(), String> {
        for stamped in &step.records {
            self.record(&stamped.record)?;
            for moved in stamped.record.moves() {
                match moved {
                    Move::One(event, fate) => drop(self.fates.insert(event, fate)),
                    Move::Framed(fate) => {
                        self.fates.values_mut().filter(|f| **f == Fate::Framed).for_each(|f| *f = fate);
                    }
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), String> {
        let result = match record {
            Record::Admitted { event, .. } => {
                if !self.admitted.insert(event.id) {
                    return Err(format!("{} was given out twice", event.id));
                }
                None
            }
            Record::Called { action, .. } => {
                let caller = action.outer();
                if !action.is_inner()
                    || !self.attempted.contains_key(&caller)
                    || self.settled.contains(&caller)
                {
                    return Err(format!("{action} was called by what does not run"));
                }
                if !self.inside.entry(caller).or_default().insert(*action) {
                    return Err(format!("{action} was called twice"));
                }
                self.inner += 1;
                None
            }
            Record::Yielded { action, .. } | Record::Ended { action, .. } => {
                self.has_let_go(*action)?;
                None
            }
            Record::Attempted { action, number } => {
                self.attempted.insert(*action, *number);
                None
            }
            Record::Settled { action, result, delivered, .. } => {
                if !self.settled.insert(*action) {
                    return Err(format!("{action} was settled twice"));
                }
                self.has_let_go(*action)?;
                self.inside.entry(action.outer()).or_default().remove(action);
                if delivered.as_ref().is_some_and(|said| said.arguments.contains(CANARY)) {
                    return Err(format!("{action} delivered scratch"));
                }
                Some(result)
            }
            Record::Held { action, result, .. } | Record::Detached { action, result } => {
                if self.settled.contains(action) {
                    return Err(format!("{action} was answered after it was settled"));
                }
                self.has_let_go(*action)?;
                self.inside.entry(action.outer()).or_default().remove(action);
                self.open.insert(*action);
                Some(result)
            }
            Record::Receipt { action, .. } => {
                if !self.settled.insert(*action) {
                    return Err(format!("{action} has two receipts"));
                }
                None
            }
            Record::WaitEnded { result, .. } => Some(result),
            Record::PrefixBroken { at, .. } => return Err(format!("the agent broke its own prefix: {at:?}")),
            Record::PrefixMade { generation, .. } => {
                self.generation = *generation;
                None
            }
            Record::Compacted { .. } | Record::Reset | Record::DeadLettered { .. } => {
                // Declared breaks: the prefix that follows says why.
                self.generation = Generation(u64::MAX);
                None
            }
            Record::TurnEnded { .. } => {
                self.turns += 1;
                None
            }
            _ => None,
        };
        let is_inner = match record {
            Record::Held { action, .. }
            | Record::Settled { action, .. }
            | Record::Detached { action, .. } => action.is_inner(),
            _ => false,
        };
        match result {
            Some(result) if is_inner != (result.id == 0) => {
                Err(format!("result {} belongs to a call of a cell, or should", result.id))
            }
            Some(result) if !is_inner && !self.results.insert(result.id) => {
                Err(format!("result {} has two owners", result.id))
            }
            _ => Ok(()),
        }
    }

    /// An action comes to its end after everything that it has called (`C-EFF-2`).
    fn has_let_go(&self, action: ActionId) -> Result<(), String> {
        let first = self.inside.get(&action).filter(|_| !action.is_inner()).and_then(|open| open.first());
        first.map_or(Ok(()), |open| Err(format!("{action} ended before {open}, which it called")))
    }

    /// Looks at what is about to be done.
    pub(super) fn command(&mut self, command: &Command, agent: &Agent) -> Result<(), String> {
        match command {
            Command::Sample { request, .. } => {
                valid(request)?;
                self.rebuilds(request)?;
                self.extends(request)
            }
            Command::Act { attempt, .. } if &*attempt.name == "absent" => {
                Err("an action that is not available was run".to_owned())
            }
            Command::Act { attempt, .. } => self.is_attempted(attempt.action, attempt.number),
            Command::Deliver { delivery, .. } => {
                let attempt = delivery.attempt();
                if attempt.arguments.contains(CANARY) {
                    return Err(format!("{} would deliver scratch", attempt.action));
                }
                self.is_attempted(attempt.action, attempt.number)
            }
            Command::Decide {
                epoch,
                question:
                    Question::ActionReview(review)
                    | Question::DeliveryReview(review)
                    | Question::DeliveryFormat(review),
                ..
            } => match self.judged_under.insert(review.action.step.turn, *epoch) {
                Some(before) if before != *epoch => {
                    Err(format!("{} is judged under {epoch}, its turn began under {before}", review.action))
                }
                Some(_) | None => Ok(()),
            },
            Command::Answer { answered, .. } => match (answered.action, &answered.end) {
                (Some(action), Some(_)) if !self.settled.contains(&action) => {
                    Err(format!("the caller of {action} is told its end before that is recorded"))
                }
                (Some(action), None) if !self.open.contains(&action) => {
                    Err(format!("the caller of {action} is told that it is open, and it is not"))
                }
                (Some(_) | None, _) => Ok(()),
            },
            Command::Decide { .. }
            | Command::Activate { .. }
            | Command::Acknowledge { .. }
            | Command::Load { .. }
            | Command::DropSampling { .. }
            | Command::Reconcile { .. }
            | Command::Cancel { .. } => match agent.ledger().balances() {
                true => Ok(()),
                false => Err(format!("the ledger does not balance: {}", agent.ledger())),
            },
        }
    }

    fn is_attempted(&self, action: ActionId, number: u32) -> Result<(), String> {
        match self.attempted.get(&action) {
            Some(recorded) if *recorded == number => Ok(()),
            recorded => Err(format!("attempt {number} of {action} is made, and {recorded:?} is recorded")),
        }
    }

    /// A file has this content.
    pub(super) fn file(&mut self, text: &str) {
        let sha = Content::of(text.as_bytes()).hash().to_string()[..8].to_owned();
        self.files.entry(sha).or_insert_with(|| text.lines().map(str::to_owned).collect());
    }

    /// Whoever reads this request alone has everything that a stub in it claims.
    fn rebuilds(&self, request: &Request) -> Result<(), String> {
        let results: Vec<&str> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Tool { text, .. } => Some(&**text),
                Message::User { .. } | Message::Assistant(_) => None,
            })
            .collect();
        let by_id = |id: &str| {
            let starts = |text: &&&str| {
                text.strip_prefix('[').and_then(|rest| rest.strip_prefix(id)).is_some_and(|rest| {
                    rest.starts_with([']', ' '])
                        && !rest.contains("] Unchanged since #")
                        && !rest.contains("] Same result as #")
                })
            };
            results.iter().find(starts).copied()
        };
        for stub in &results {
            if let Some((bracket, claim)) = stub.split_once("] Unchanged since ") {
                let (id, lines) = claim.split_once(", which already shows lines ").ok_or("no lines")?;
                let full = by_id(id).ok_or(format!("{stub:?} names what is not in the request"))?;
                let (head, body) = full.split_once("]\n").ok_or(format!("{full:?} has no bracket"))?;
                let sha = bracket.rsplit(' ').next().unwrap_or_default();
                let file = self.files.get(sha).ok_or(format!("nothing has the hash {sha}"))?;
                let (from, to) = lines.trim_end_matches('.').split_once('-').ok_or("no range")?;
                let number = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
                let (from, to) = (number(from)?, number(to)?);
                let said: Vec<String> =
                    (from..=to).map(|line| format!("{line}: {}", file[line - 1])).collect();
                if !head.ends_with(sha) || !body.starts_with(&said.join("\n")) {
                    return Err(format!("{stub:?} names {head:?}, which does not show it"));
                }
            } else if let Some((_, id)) = stub.split_once("] Same result as ") {
                by_id(id.trim_end_matches('.')).ok_or(format!("{stub:?} names what is not there"))?;
            }
        }
        Ok(())
    }

    /// The prefix law: each request extends the lane's last one, or a break was declared.
    fn extends(&mut self, request: &Request) -> Result<(), String> {
        let before = self.lanes.insert(request.model.clone(), (self.generation, request.clone()));
        let Some((generation, before)) = before else { return Ok(()) };
        if generation != self.generation {
            return Ok(());
        }
        if before.system != request.system || before.tools != request.tools {
            return Err("the prefix changed without a cause".to_owned());
        }
        // What a request for a summary ends with is in no other request.
        let summary =
            |m: &Message| matches!(m, Message::User { text, .. } if text.starts_with("<instructions>"));
        let mut sent = before.messages.as_slice();
        // It asks about what came before an open wait, at the least.
        if request.messages.last().is_some_and(summary) {
            sent = &sent[..sent.len().min(request.messages.len() - 1)];
        }
        if let [rest @ .., last] = sent
            && summary(last)
        {
            sent = rest;
        }
        for (n, message) in sent.iter().enumerate() {
            let now = request.messages.get(n);
            let asks_for_summary = n + 1 == request.messages.len() && now.is_some_and(summary);
            if now.map(bare) != Some(bare(message)) && !asks_for_summary {
                return Err(format!("message {n} was rewritten: {message:?} became {:?}", now));
            }
        }
        Ok(())
    }

    /// An effect happens in the world.
    pub(super) fn performed(&mut self, action: ActionId, name: &str) -> Result<(), String> {
        let times = self.performed.entry(action).or_default();
        *times += 1;
        let may_repeat = matches!(name, "local_send" | "look" | "list");
        if *times > 1 && !may_repeat { Err(format!("{action} {name} happened twice")) } else { Ok(()) }
    }

    pub(super) fn was_performed(&self, action: ActionId) -> bool {
        self.performed.contains_key(&action)
    }

    pub(super) fn acknowledged(&mut self, event: EventId) -> Result<(), String> {
        if !self.admitted.contains(&event) {
            return Err(format!("{event} was acknowledged and is not recorded"));
        }
        self.acknowledged.insert(event);
        Ok(())
    }

    /// The ledger, counted anew from every move, is the machine's.
    pub(super) fn state(&self, agent: &Agent) -> Result<(), String> {
        let mut ledger = Ledger { admitted: self.admitted.len() as u64, ..Ledger::default() };
        for fate in self.fates.values() {
            *ledger.term(*fate) += 1;
        }
        if ledger != agent.ledger() || !ledger.balances() {
            return Err(format!("the ledger is {}, counted {ledger}", agent.ledger()));
        }
        Ok(())
    }

    /// A restored agent is the one that every record makes.
    pub(super) fn restored(
        &self,
        agent: &Agent,
        config: &Arc<Config>,
        kept: &[Stamped],
    ) -> Result<(), String> {
        let whole = Agent::restore(config.clone(), None, kept).map_err(|error| error.to_string())?;
        let parse = |agent: &Agent| serde_json::from_slice::<serde_json::Value>(&agent.snapshot());
        if parse(agent).ok() != parse(&whole).ok() {
            return Err("a checkpoint restores to another state than the records".to_owned());
        }
        self.state(agent)
    }

    /// When the world is calm, nothing that was acknowledged is unaccounted for.
    pub(super) fn end(&self, status: &Status) -> Result<(), String> {
        if let Some(lost) = self.acknowledged.iter().find(|event| !self.fates.contains_key(event)) {
            return Err(format!("{lost} was acknowledged and is lost"));
        }
        if let Some(open) = status.open_effects.iter().find(|effect| !effect.held) {
            return Err(format!("{} never got its receipt", open.action));
        }
        Ok(())
    }
}

fn bare(message: &Message) -> Message {
    match message {
        Message::Assistant(said) => Message::Assistant(AssistantMessage { reasoning: None, ..said.clone() }),
        Message::User { .. } | Message::Tool { .. } => message.clone(),
    }
}

/// Whether any provider would take these messages.
fn valid(request: &Request) -> Result<(), String> {
    let messages = &request.messages;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut before: Option<&Message> = None;
    for (n, message) in messages.iter().enumerate() {
        match message {
            Message::User { .. } => {
                if let Some(id) = open.first() {
                    return Err(format!("message {n} stands before the result of call {id}"));
                }
                if matches!(before, Some(Message::User { .. })) {
                    return Err(format!("messages {} and {n} are both the user's: {messages:#?}", n - 1));
                }
            }
            Message::Assistant(said) => {
                if let Some(id) = open.first() {
                    return Err(format!("message {n} stands before the result of call {id}"));
                }
                if matches!(before, None | Some(Message::Assistant(_))) {
                    return Err(format!("message {n} is the assistant's, after {before:?}"));
                }
                for call in &said.calls {
                    if call.id.is_empty() || !used.insert(&call.id) {
                        return Err(format!("call id {:?} is not unique", call.id));
                    }
                    open.insert(&call.id);
                }
            }
            Message::Tool { call_id, .. } => {
                if !open.remove(&**call_id) {
                    return Err(format!("message {n} answers {call_id:?}, which is not open"));
                }
            }
        }
        before = Some(message);
    }
    match (open.first(), before) {
        (Some(id), _) => Err(format!("call {id} has no result")),
        (None, Some(Message::Assistant(_)) | None) => Err("the request ends with the assistant".to_owned()),
        (None, Some(Message::User { .. } | Message::Tool { .. })) => Ok(()),
    }
}
