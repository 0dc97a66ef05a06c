//! Attention: who decides what becomes of a message that was addressed to the agent (`B-ATT-2` to `B-ATT-5`).

use std::sync::Arc;

use super::Agent;
use super::live::Then;
use crate::action::{End, FailureKind, FrameContext, Sent};
use crate::attention::{Decider, Item, Mark, Response, Status};
use crate::ids::{ActionId, EventId};
use crate::policy::Question;
use crate::record::Record;
use crate::time::Timestamp;

/// Choices that an error names, at most.
const CHOICES: usize = 12;

impl Agent {
    /// Carries out the model's own decision about an item of `channel`; says what came of it.
    pub(super) fn mark_as_model(
        &mut self,
        action: ActionId,
        channel: &str,
        arguments: &str,
    ) -> (End, String) {
        let invalid = |why: String| (End::failed(FailureKind::Invalid), format!("Not marked: {why}."));
        let mark: Mark = match serde_json::from_str(arguments) {
            Ok(mark) => mark,
            Err(error) => return invalid(error.to_string()),
        };
        let Some(item) = self.state.attention.find(Some(channel), &mark.item) else {
            return invalid(self.unknown_item(Some(channel), &mark.item));
        };
        let event = item.event;
        let text = format!(
            "marked item:{} status:{} action:{}",
            item.key.external_id,
            mark.status.as_str(),
            mark.response().as_str()
        );
        self.mark(event, &mark, Decider::Model { action });
        (End::Confirmed, text)
    }

    /// Carries out the operator's decision about an item. Ends nothing.
    pub(super) fn mark_as_operator(&mut self, mark: &Mark) {
        match self.state.attention.find(None, &mark.item).map(|item| item.event) {
            Some(event) => self.mark(event, mark, Decider::Operator),
            None => self.drop_late(self.unknown_item(None, &mark.item)),
        }
    }

    /// Carries out a hook's decision about an item.
    pub(super) fn mark_as_policy(&mut self, mark: &Mark) {
        match self.state.attention.find(None, &mark.item).map(|item| item.event) {
            Some(event) => self.mark(event, mark, Decider::Policy),
            None => self.drop_late(self.unknown_item(None, &mark.item)),
        }
    }

    fn mark(&mut self, item: EventId, mark: &Mark, decider: Decider) {
        let (status, action, note) = (mark.status, mark.response(), mark.note.clone());
        self.record(Record::Marked { item, status, action, note, decider });
    }

    fn unknown_item(&self, channel: Option<&str>, name: &str) -> String {
        let is_here = |item: &&Item| channel.is_none_or(|channel| &*item.key.instance == channel);
        let known: Vec<&str> = self
            .state
            .attention
            .pending()
            .rev()
            .filter(is_here)
            .take(CHOICES)
            .map(|item| &*item.key.external_id)
            .collect();
        match known[..] {
            [] => format!("there is no item {name:?}, and nothing waits for a decision"),
            _ => format!("there is no item {name:?}; undecided are {}", known.join(", ")),
        }
    }

    /// The item that something that was sent answers: the one that the call named; else what the frame would
    /// have it reply to; else the newest undecided direct message of that conversation (`B-ATT-4`).
    pub(super) fn item_of(&self, sent: &Sent, context: &FrameContext) -> Option<&Item> {
        let items = &self.state.attention;
        let instance = &sent.conversation.instance;
        if let Some(name) = &sent.item {
            return items.find(Some(instance), name);
        }
        let anchor = context.anchors.iter().find(|anchor| anchor.conversation == sent.conversation);
        let target = sent.reply_to.as_ref().or(anchor.map(|anchor| &anchor.external_id));
        target
            .and_then(|name| items.find(Some(instance), name))
            .filter(|item| items.is_pending(item.event))
            .or_else(|| items.newest_dm(&sent.conversation))
    }

    /// Marks what something that was sent answers (`B-ATT-3`); says which item that was.
    pub(super) fn mark_as_sent(
        &mut self,
        action: ActionId,
        sent: &Sent,
        context: &FrameContext,
    ) -> Option<String> {
        if sent.messages.is_empty() {
            return None;
        }
        let Some(item) = self.item_of(sent, context) else {
            return sent.item.as_ref().map(|name| format!("item:{name} unknown"));
        };
        let (event, name) = (item.event, item.key.external_id.clone());
        let response = if sent.reply_to.is_some() { Response::Replied } else { Response::Messaged };
        let note: Arc<str> = format!("answered by {action}").into();
        self.record(Record::Marked {
            item: event,
            status: Status::Acted,
            action: response,
            note: Some(note),
            decider: Decider::Receipt { action },
        });
        Some(format!("item:{name} acted"))
    }

    /// Has policy look at the item that has been shown for longest, once it is due to age.
    pub(super) fn age_attention(&mut self) -> bool {
        let Some((due, event)) = self.next_to_age() else { return false };
        if due > self.now() {
            return false;
        }
        let Some(item) = self.state.attention.pending().find(|item| item.event == event) else {
            return false;
        };
        let Some(shown) = item.shown else { return false };
        let question = Question::Age {
            item: item.key.external_id.clone(),
            instance: item.key.instance.clone(),
            bucket: item.bucket,
            shown_ms: self.now().since(shown.at).as_millis() as u64,
        };
        self.ask(question, Then::Age(event));
        true
    }

    /// Ends an item's wait for a decision, or keeps it open for as long as this process lives.
    pub(super) fn age(&mut self, event: EventId, ages: bool) {
        let item = self.state.attention.pending().find(|item| item.event == event);
        let Some(shown) = item.and_then(|item| item.shown) else { return };
        if !ages {
            self.live.ageless.insert(event);
            return;
        }
        self.record(Record::Marked {
            item: event,
            status: Status::Seen,
            action: Response::Noted,
            note: Some(format!("shown in frame {}, not decided", shown.frame).into()),
            decider: Decider::Ageing,
        });
    }

    /// When the next item is due to age, and which.
    pub(super) fn next_to_age(&self) -> Option<(Timestamp, EventId)> {
        let next = |(instance, items): (&Arc<str>, &std::collections::BTreeSet<(Timestamp, EventId)>)| {
            let timeout = self.config.channels.get(instance)?.pending_timeout?;
            let is_open = |event: EventId| {
                !self.live.ageless.contains(&event) && !self.live.is_asking(Then::Age(event))
            };
            let (shown, event) = items.iter().find(|(_, event)| is_open(*event))?;
            Some((*shown + timeout, *event))
        };
        self.state.attention.ageing().filter_map(next).min()
    }
}
