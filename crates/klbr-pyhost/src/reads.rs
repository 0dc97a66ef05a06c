//! What every hook may read of its agent while it is asked: what was said lately, and a search of the history.
//!
//! Owns the bounds: so many records are looked at, and no more. Refuses to write.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use klbr_core::ids::{AgentName, Seq};
use klbr_core::record::{Record, Stamped};
use klbr_core::runtime::clock::{Clock as _, SystemClock};
use klbr_core::runtime::store::{Search, Store, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::{Caller, HostCallError, HostCalls};
use crate::protocol::Offer;

/// How many of the newest records are looked at for what was said lately.
const LOOKED_AT: u64 = 2_000;

/// The most finds of one search.
const FINDS: usize = 50;

const RECENT: &str = "recent_deliveries";
const SEARCH: &str = "history_search";

/// The reads, and whatever else the host offers.
pub struct Reads {
    host: Arc<dyn HostCalls>,
    agent: OnceLock<(Arc<dyn Store>, AgentName)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recent {
    #[serde(default)]
    conversation: Option<String>,
    #[serde(default = "ten")]
    minutes: f64,
}

fn ten() -> f64 {
    10.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sought {
    text: String,
    #[serde(default)]
    limit: Option<usize>,
}

impl Reads {
    /// Reads of no agent yet, beside what another host offers.
    pub fn over(host: Arc<dyn HostCalls>) -> Self {
        Reads { host, agent: OnceLock::new() }
    }

    /// Lets hooks read this agent; the first one that it is told of stays.
    pub fn of(&self, store: Arc<dyn Store>, agent: AgentName) {
        // Attached a second time it is the same agent.
        let _ = self.agent.set((store, agent));
    }

    fn agent(&self) -> Result<&(Arc<dyn Store>, AgentName), HostCallError> {
        let absent = || failed("absent", "the agent is not there yet");
        self.agent.get().ok_or_else(absent)
    }

    async fn recent(&self, asked: Recent) -> Result<Value, HostCallError> {
        let (store, name) = self.agent()?;
        let last = store.last(name).await.map_err(unread)?;
        let after = Seq(last.0.saturating_sub(LOOKED_AT));
        let since = SystemClock.now().0.saturating_sub((asked.minutes.max(0.0) * 60_000.0) as i64);
        let records = store.records(name, after, LOOKED_AT as usize).await.map_err(unread)?;
        let said = records.iter().filter(|stamped| stamped.at.0 >= since).filter_map(delivery);
        let fits = |said: &Value| {
            asked.conversation.as_ref().is_none_or(|wanted| said["conversation"] == wanted.as_str())
        };
        Ok(said.filter(fits).collect())
    }

    async fn search(&self, asked: Sought) -> Result<Value, HostCallError> {
        let limit = asked.limit.unwrap_or(10).min(FINDS);
        let search = Search { text: asked.text, limit, ..Search::default() };
        let (store, name) = self.agent()?;
        let hits = store.search(name, search).await.map_err(unread)?;
        Ok(json!(hits))
    }
}

/// What a record says that was said, if it was.
fn delivery(stamped: &Stamped) -> Option<Value> {
    let (Record::Settled { action, delivered, .. } | Record::Receipt { action, delivered, .. }) =
        &stamped.record
    else {
        return None;
    };
    let said = delivered.as_ref()?;
    let arguments: Value = serde_json::from_str(&said.arguments).unwrap_or_default();
    Some(json!({
        "action": action.to_string(),
        "at": stamped.at,
        "channel": said.channel,
        "conversation": said.sent.as_ref().map(|sent| sent.conversation.id.clone()),
        "arguments": arguments,
    }))
}

fn failed(code: &'static str, message: impl Into<String>) -> HostCallError {
    HostCallError { code, message: message.into() }
}

fn unread(error: StoreError) -> HostCallError {
    failed("store", error.to_string())
}

fn parsed<T: for<'de> Deserialize<'de>>(arguments: Value) -> Result<T, HostCallError> {
    serde_json::from_value(arguments).map_err(|error| failed("arguments", error.to_string()))
}

#[async_trait]
impl HostCalls for Reads {
    fn offers(&self) -> Vec<Offer> {
        let offer = |name: &str, doc: &str, parameters: Value| Offer {
            name: name.into(),
            doc: doc.into(),
            parameters: json!({ "type": "object", "properties": parameters }),
        };
        let mut offers = self.host.offers();
        offers.push(offer(
            RECENT,
            "What the agent said in the last `minutes` (10), to one `conversation` by its channel's id or to anyone.",
            json!({ "conversation": { "type": "string" }, "minutes": { "type": "number" } }),
        ));
        offers.push(offer(
            SEARCH,
            "Searches everything that was said, heard and answered; best first.",
            json!({ "text": { "type": "string" }, "limit": { "type": "integer" } }),
        ));
        offers
    }

    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError> {
        match name {
            RECENT => self.recent(parsed(arguments)?).await,
            SEARCH => self.search(parsed(arguments)?).await,
            other => self.host.call(caller, other, arguments).await,
        }
    }
}
