//! A life to keep: an agent whose records are numbered as they are made.

use std::sync::Arc;

use crate::action::{Class, End, FrameContext};
use crate::event::{Author, Body, Conversation, Header, Priority, Source, SourceKind};
use crate::ids::{AgentName, Epoch, EventId, FrameId, Seq, StepId, TurnId};
use crate::model::{AssistantMessage, Call, Finish};
use crate::record::{CallResult, Delivered, Record, Stamped, TurnEnd};
use crate::runtime::store::Commit;
use crate::time::Timestamp;

/// Makes an agent's records, one millisecond apart from the moment 1,000,000, and its commits.
#[derive(Clone, Debug)]
pub struct Script {
    agent: AgentName,
    seq: Seq,
    event: EventId,
    commit: Commit,
}

impl Script {
    /// The script of a new agent.
    ///
    /// # Panics
    ///
    /// Panics when `agent` is no agent's name.
    pub fn new(agent: &str) -> Self {
        let agent: AgentName = agent.parse().expect("the name is one of an agent");
        let commit = Commit { agent: agent.clone(), records: Vec::new(), bodies: Vec::new() };
        Script { agent, seq: Seq(0), event: EventId(0), commit }
    }

    /// The agent.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }

    /// What was added since the last time, as one commit.
    pub fn take(&mut self) -> Commit {
        let empty = Commit { agent: self.agent.clone(), records: Vec::new(), bodies: Vec::new() };
        std::mem::replace(&mut self.commit, empty)
    }

    /// Adds a record.
    pub fn record(&mut self, record: Record) -> Seq {
        self.seq = self.seq.next();
        let at = Timestamp(1_000_000 + self.seq.0.cast_signed());
        self.commit.records.push(Stamped { seq: self.seq, at, record });
        self.seq
    }

    /// Admits an event: `msg:N` of a channel, in a conversation.
    pub fn admit(&mut self, instance: &str, conversation: &str, author: &str, text: &str) -> EventId {
        self.event = self.event.next();
        let id = self.event;
        let header = header(id, instance, conversation, &format!("msg:{}", id.0), text);
        self.commit.bodies.push((id, body(author, text)));
        self.record(Record::Admitted { event: Header { at: Timestamp(0), ..header }, held: false });
        id
    }

    /// Puts events into a frame whose text quotes `text`.
    pub fn frame(&mut self, events: &[EventId], text: &str) -> Seq {
        self.record(Record::FrameMade {
            frame: FrameId(self.seq.0),
            addition: false,
            events: events.to_vec(),
            context: FrameContext::default(),
            audience: Vec::new(),
            text: format!("<channel>\n{text}\n</channel>").into(),
            date: None,
            told: None,
        })
    }

    /// Ends a turn; `returned` wait again.
    pub fn end_turn(&mut self, returned: &[EventId]) -> Seq {
        let end = TurnEnd::Yielded;
        let returned = returned.to_vec();
        self.record(Record::TurnEnded { turn: TurnId(1), end, returned })
    }

    /// A reply with scratch and one call.
    pub fn reply(&mut self, scratch: &str, call: &str, arguments: &str) -> StepId {
        let step = StepId { turn: TurnId(self.seq.0 + 1), number: 1 };
        let call = Call { id: "c1".into(), name: call.into(), arguments: arguments.into() };
        let message = AssistantMessage { text: scratch.into(), reasoning: None, calls: vec![call] };
        self.record(Record::StepSampled { step, message, finish: Finish::ToolCalls, usage: None });
        step
    }

    /// The intent of a reply's call.
    pub fn intend(&mut self, step: StepId, name: &str, arguments: &str) -> Seq {
        self.record(Record::Intended {
            action: step.action(1),
            name: name.into(),
            arguments: arguments.into(),
            class: Class::Irreversible,
            channel: None,
            epoch: Epoch(1),
        })
    }

    /// The end of a reply's call, with the result number `id`; a delivery when `said` gives its arguments.
    pub fn settle(&mut self, step: StepId, id: u64, full: &str, said: Option<&str>) -> Seq {
        self.record(Record::Settled {
            action: step.action(1),
            end: End::Confirmed,
            result: CallResult::plain(id, full),
            delivered: said.map(|arguments| Delivered {
                channel: "discord".into(),
                arguments: arguments.into(),
                sent: None,
            }),
        })
    }
}

/// An event's header.
pub fn header(id: EventId, instance: &str, conversation: &str, external_id: &str, text: &str) -> Header {
    let instance: Arc<str> = instance.into();
    Header {
        id,
        source: Source::new(SourceKind::Channel, instance.clone()),
        external_id: external_id.into(),
        priority: Priority::Directed,
        conversation: Some(Conversation { instance, id: conversation.into() }),
        at: Timestamp(1_000_000),
        bytes: text.len() as u32,
        returned: 0,
        attention: None,
        amends: None,
        joins: None,
        control: None,
        via: None,
    }
}

/// An event's body.
pub fn body(author: &str, text: &str) -> Body {
    let author = Author { id: author.into(), name: author.into() };
    Body { author: Some(author), attributes: vec![("kind".into(), "message".into())], ..Body::text(text) }
}
