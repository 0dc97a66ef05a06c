//! What must hold at Discord: everything said is heard once, and whatever is made answers for one effect.

use std::collections::{BTreeMap, BTreeSet};

use klbr_core::action::End;
use klbr_core::attention::Status;
use klbr_core::event::SourceKind;
use klbr_core::ids::{ActionId, EventId};
use klbr_core::update::{Happening, Update};

use super::{Action, Ended};
use crate::discord_double::{Created, Snowflake};

/// A message to the agent.
#[derive(Clone, Debug)]
pub struct Said {
    /// Discord's id.
    pub id: Snowflake,
    /// What its answer repeats.
    pub marker: String,
}

impl Said {
    /// What the model answers it with.
    pub fn answer(&self) -> String {
        format!("re {}", self.marker)
    }
}

/// What the double of Discord has.
#[derive(Clone, Debug, Default)]
pub struct Participation {
    /// Direct messages and mentions.
    pub said: Vec<Said>,
    /// Other messages of people's.
    pub chatter: Vec<Snowflake>,
    /// The agent's messages, each as often as it was made.
    pub made: Vec<Created>,
}

/// How many deliveries of one text ended how.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    confirmed: usize,
    unknown: usize,
    failed: usize,
}

impl Participation {
    /// Whether a text answers something that was said.
    pub(super) fn asks_for(&self, text: &str) -> bool {
        self.said.iter().any(|said| said.answer() == text)
    }

    /// Whether all of it has come to its end as far as the updates tell: answered or given up on, and shown.
    pub fn is_over(&self, updates: &[Update]) -> bool {
        let shown = shown(updates);
        let admitted = admitted(updates);
        let ends = ends(&super::actions(updates));
        let is_shown =
            |id: &Snowflake| admitted.get(&name(*id)).is_some_and(|events| shown.contains(&events[0]));
        self.said.iter().all(|said| is_shown(&said.id) && ends.contains_key(&said.answer()))
            && self.chatter.iter().all(is_shown)
    }

    /// What holds at any moment: one nonce, one message.
    pub(super) fn judge_so_far(&self, found: &mut Vec<String>) {
        let mut nonces = BTreeSet::new();
        for made in &self.made {
            let Some(nonce) = made.nonce.as_ref().filter(|_| made.enforced) else {
                found.push(format!("{:?} was made without a nonce that is enforced", made.content));
                continue;
            };
            if !nonces.insert((made.channel, nonce.to_string())) {
                found.push(format!("{:?} was made twice under the nonce {nonce}", made.content));
            }
        }
    }

    /// What holds once all is quiet.
    pub(super) fn judge(
        &self,
        updates: &[Update],
        actions: &BTreeMap<ActionId, Action>,
        found: &mut Vec<String>,
    ) {
        let (admitted, shown, ends) = (admitted(updates), shown(updates), ends(actions));
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        for message in &self.made {
            *made.entry(&message.content).or_default() += 1;
        }
        for (text, made) in &made {
            let Ends { confirmed, unknown, .. } = ends.get(*text).copied().unwrap_or_default();
            if !self.asks_for(text) {
                found.push(format!("{text:?} was made, and answers no message"));
            }
            if *made > confirmed + unknown {
                found.push(format!(
                    "{text:?} was made {made} times; {confirmed} deliveries are confirmed, {unknown} unknown"
                ));
            }
        }
        for (text, Ends { confirmed, .. }) in &ends {
            let made = made.get(text.as_str()).copied().unwrap_or_default();
            if made < *confirmed {
                found.push(format!("{text:?} is confirmed {confirmed} times, and was made {made} times"));
            }
        }
        let everything = self.said.iter().map(|said| said.id).chain(self.chatter.iter().copied());
        let names: BTreeSet<String> = everything.map(name).collect();
        for name in &names {
            match admitted.get(name).map(Vec::as_slice) {
                Some([event]) if shown.contains(event) => {}
                Some([_]) => found.push(format!("{name} was admitted and never shown")),
                Some(more) => found.push(format!("{name} was admitted {} times", more.len())),
                None => found.push(format!("{name} was said, and never admitted")),
            }
        }
        for stranger in admitted.keys().filter(|name| !names.contains(*name)) {
            found.push(format!("{stranger} was admitted, and nobody said it"));
        }
        for said in &self.said {
            let Some(Ends { confirmed, unknown, failed }) = ends.get(&said.answer()).copied() else {
                found.push(format!("{} was said to the agent, and nothing came of it", name(said.id)));
                continue;
            };
            let event = admitted.get(&name(said.id)).map(|events| events[0]);
            let is_acted = updates.iter().any(|update| {
                matches!(&update.happening, Happening::Marked { item, status: Status::Acted, .. } if Some(*item) == event)
            });
            // B-ATT-3: only what was certainly sent marks its item.
            if is_acted != (confirmed > 0) {
                found.push(format!(
                    "{} is {}marked as acted on; of its answers {confirmed} are confirmed, {unknown} unknown, {failed} failed",
                    name(said.id),
                    if is_acted { "" } else { "not " },
                ));
            }
        }
    }
}

/// The name of a message's happening.
fn name(id: Snowflake) -> String {
    format!("msg:{id}")
}

/// The events from channels, by what names them at their source.
fn admitted(updates: &[Update]) -> BTreeMap<String, Vec<EventId>> {
    let mut admitted: BTreeMap<String, Vec<EventId>> = BTreeMap::new();
    for update in updates {
        if let Happening::Admitted { event, external_id, source: SourceKind::Channel, .. } = &update.happening
        {
            admitted.entry(external_id.to_string()).or_default().push(*event);
        }
    }
    admitted
}

fn shown(updates: &[Update]) -> BTreeSet<EventId> {
    let events = updates.iter().filter_map(|update| match &update.happening {
        Happening::Shown { events, .. } => Some(events),
        _ => None,
    });
    events.flatten().copied().collect()
}

/// How the deliveries of each text ended; those that have not are left out.
fn ends(actions: &BTreeMap<ActionId, Action>) -> BTreeMap<String, Ends> {
    let mut ends: BTreeMap<String, Ends> = BTreeMap::new();
    for action in actions.values().filter(|action| action.name == "discord_send") {
        let (Some(content), Some(end)) = (&action.content, action.ends.first()) else { continue };
        let ends = ends.entry(content.clone()).or_default();
        match end {
            Ended::Delivered | Ended::With(End::Confirmed) => ends.confirmed += 1,
            Ended::With(End::Unknown) => ends.unknown += 1,
            Ended::With(End::Failed { .. }) => ends.failed += 1,
        }
    }
    ends
}
