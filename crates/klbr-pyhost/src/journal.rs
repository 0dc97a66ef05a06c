//! The agent's own records as the journal of its observers: what they hear, and how what they wish becomes durable.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::attention::{Decider, Mark};
use klbr_core::event::{Header, SourceKind};
use klbr_core::ids::Seq;
use klbr_core::policy::{Heard, HostCommand, Observed};
use klbr_core::record::{Record, Stamped};
use klbr_core::runtime::AgentHandle;
use klbr_core::runtime::clock::{Clock as _, SystemClock};
use klbr_core::runtime::store::MemoryChange;
use serde_json::Value;
use tokio::sync::watch;

use crate::observers::{Advance, Batch, Committed, Journal, JournalError, Wish};

/// Records that are looked at before a read answers with what it has found.
const LOOKED_AT: u64 = 4_096;

/// Records that are loaded at once.
const PAGE: usize = 256;

/// How far an observer may usually lag behind, in records: what is older is a gap for it.
pub(crate) const LAG: u64 = 100_000;

/// The journal over one agent.
pub struct Records {
    agent: AgentHandle,
    /// The newest record that somebody was told of.
    newest: watch::Receiver<u64>,
    lag: u64,
}

impl Records {
    /// Over an agent of whose newest record somebody keeps telling. What is more than `lag` records old is a gap.
    pub fn new(agent: AgentHandle, newest: watch::Receiver<u64>, lag: u64) -> Self {
        Records { agent, newest, lag }
    }

    async fn committed(&self, stamped: &Stamped) -> Result<Committed, JournalError> {
        let mut body = serde_json::to_value(&stamped.record).map_err(failed)?;
        let mut made_by = None;
        if let Record::Admitted { event, .. } = &stamped.record {
            let bodies = self.agent.store().bodies(self.agent.agent(), &[event.id]).await.map_err(failed)?;
            body["text"] = bodies.first().map_or(Value::Null, |body| Value::from(&*body.text));
            made_by = observer_of(event);
        }
        Ok(Committed { seq: stamped.seq.0, at: stamped.at.0, body, made_by })
    }
}

/// The observer whose wish an event is.
fn observer_of(event: &Header) -> Option<Arc<str>> {
    let (name, _) = event.external_id.split_once(':')?;
    match event.source.kind {
        SourceKind::Job => (name == &*event.source.instance).then(|| name.into()),
        SourceKind::Timer => Some(name.into()),
        SourceKind::Operator | SourceKind::Channel | SourceKind::Team | SourceKind::System => None,
    }
}

/// Whether a hook itself brought a record about: none hears that, or it would hear itself for ever.
fn is_policys(record: &Record) -> bool {
    matches!(record, Record::Marked { decider: Decider::Policy, .. })
}

fn failed(error: impl std::fmt::Display) -> JournalError {
    JournalError(error.to_string())
}

#[async_trait]
impl Journal for Records {
    async fn cursor(&self, observer: &str) -> Result<Option<u64>, JournalError> {
        Ok(self.agent.observers().await.map_err(failed)?.get(observer).map(|seq| seq.0))
    }

    async fn newest(&self) -> Result<u64, JournalError> {
        Ok(self.agent.store().last(self.agent.agent()).await.map_err(failed)?.0)
    }

    async fn read(&self, hears: Heard, after: u64, limit: usize) -> Result<Batch, JournalError> {
        let (store, agent) = (self.agent.store(), self.agent.agent());
        let newest = self.newest().await?;
        let first_kept = newest.saturating_sub(self.lag) + 1;
        let mut batch = Batch { records: Vec::new(), first_kept, newest: after };
        if first_kept > after + 1 {
            return Ok(batch);
        }
        while batch.records.len() < limit && batch.newest < newest && batch.newest - after < LOOKED_AT {
            let page = store.records(agent, Seq(batch.newest), PAGE).await.map_err(failed)?;
            for stamped in &page {
                if batch.records.len() == limit {
                    break;
                }
                batch.newest = stamped.seq.0;
                if hears.hears(&stamped.record) && !is_policys(&stamped.record) {
                    batch.records.push(self.committed(stamped).await?);
                }
            }
            if page.is_empty() {
                break;
            }
        }
        Ok(batch)
    }

    async fn advance(&self, observer: &str, advance: Advance) -> Result<(), JournalError> {
        let name: Arc<str> = observer.into();
        let mut observed = Observed { observer: name, through: Seq(advance.cursor()), ..Observed::default() };
        match advance {
            Advance::Heard { seq, wishes } => {
                let now = SystemClock.now();
                for (n, wish) in wishes.into_iter().enumerate() {
                    observed.commands.push(match wish {
                        Wish::Admit { text, priority } => HostCommand::Admit { text, priority },
                        Wish::Mark { item, status, note } => {
                            let note = Some(note).filter(|note| !note.is_empty());
                            HostCommand::Mark(Box::new(Mark { item, status, action: None, note }))
                        }
                        Wish::Schedule { text, after_ms } => {
                            HostCommand::Schedule { at: now + Duration::from_millis(after_ms), text }
                        }
                        // Memories have no records. Under this key a repeat changes nothing more.
                        Wish::Remember { text, tags } => {
                            let key = format!("{observer}:{seq}:{n}");
                            let change = MemoryChange::Add { text, tags, pinned: false };
                            let (store, agent) = (self.agent.store(), self.agent.agent());
                            store.remember(agent, &key, now, change).await.map_err(failed)?;
                            continue;
                        }
                    });
                }
            }
            Advance::DeadLettered { attempts, reason, .. } => {
                observed.gave_up = Some(format!("failed {attempts} times: {reason}").into());
            }
            Advance::Gap { through } => {
                let first = through + 1;
                observed.gave_up =
                    Some(format!("gap: it lagged too far behind, and goes on with record {first}").into());
            }
            Advance::Placed { .. } => observed.placed = true,
        }
        self.agent.observed(observed).await.map_err(failed)
    }

    async fn wait(&self, after: u64) {
        let mut newest = self.newest.clone();
        if newest.wait_for(|newest| *newest > after).await.is_err() {
            // Nothing comes any more: the agent has stopped, and whoever waits will be stopped.
            std::future::pending::<()>().await;
        }
    }
}
