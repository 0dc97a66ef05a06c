//! What the adapter keeps between two processes, as typed entries.
//!
//! Owns the keys and their forms. An entry that cannot be read is passed over with a warning: what it said is then
//! asked for again.

use std::str::FromStr;

use klbr_core::ids::ActionId;
use klbr_core::runtime::adapter::AdapterState;
use klbr_core::runtime::store::StoreError;
use klbr_core::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::id::{ChannelId, MessageId};
use crate::world::{Changed, Restored};

/// How long the plan of a delivery and its claims on messages are kept.
const KEPT_FOR: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

/// A gateway session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Where it is resumed.
    #[serde(default)]
    pub(crate) url: Option<String>,
    /// Every dispatch up to this one was admitted or let pass.
    pub(crate) sequence: u64,
    /// How many shards there were.
    pub(crate) shards: u32,
}

/// What a delivery will say where: kept before its first request, and with each part that was confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) channel: ChannelId,
    /// The message that its first part refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<MessageId>,
    /// The message of each part that is confirmed, in order; none for one whose id could not be read.
    #[serde(default)]
    pub(crate) confirmed: Vec<Option<MessageId>>,
    pub(crate) at: Timestamp,
}

/// A message that a delivery has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    action: String,
    at: Timestamp,
}

/// The durable memory, typed.
#[derive(Clone)]
pub(crate) struct Kept(AdapterState);

impl Kept {
    pub(crate) fn new(state: AdapterState) -> Self {
        Kept(state)
    }

    /// What is known of Discord.
    pub(crate) async fn world(&self) -> Result<Restored, StoreError> {
        Ok(Restored {
            places: self.by_id("place/").await?,
            guilds: self.by_id("guild/").await?,
            sessions: self.by_id("session/").await?,
        })
    }

    /// Keeps what has changed in the world, cursors and sessions together, all or none.
    pub(crate) async fn keep(&self, changed: &Changed) -> Result<(), StoreError> {
        let mut entries: Vec<(String, Option<Vec<u8>>)> = Vec::new();
        for (channel, place) in &changed.places {
            entries.push((format!("place/{channel}"), place.as_ref().map(bytes)));
        }
        for (guild, name) in &changed.guilds {
            entries.push((format!("guild/{guild}"), Some(bytes(name))));
        }
        for (shard, session) in &changed.sessions {
            entries.push((format!("session/{shard}"), session.as_ref().map(bytes)));
        }
        self.put(&entries).await
    }

    /// The plan of a delivery; none when it never came to a request.
    pub(crate) async fn plan(&self, action: ActionId) -> Result<Option<Plan>, StoreError> {
        self.read(&plan_key(action)).await
    }

    /// Keeps the plan of a delivery, and the claims on what it has made.
    pub(crate) async fn keep_plan(&self, action: ActionId, plan: &Plan) -> Result<(), StoreError> {
        let mut entries = vec![(plan_key(action), Some(bytes(plan)))];
        for message in plan.confirmed.iter().flatten() {
            let claim = Claim { action: action.to_string(), at: plan.at };
            entries.push((claim_key(plan.channel, *message), Some(bytes(&claim))));
        }
        self.put(&entries).await
    }

    /// The messages of a channel that another delivery than this has made.
    pub(crate) async fn claimed_by_others(
        &self,
        channel: ChannelId,
        action: ActionId,
    ) -> Result<Vec<MessageId>, StoreError> {
        let action = action.to_string();
        let claims = self.entries::<Claim>(&format!("sent/{channel}/")).await?;
        let others = claims.into_iter().filter(|(_, claim)| claim.action != action);
        Ok(others.filter_map(|(key, _)| key.rsplit('/').next()?.parse().ok()).collect())
    }

    /// Forgets plans and claims that are too old to matter.
    pub(crate) async fn tidy(&self, now: Timestamp) -> Result<(), StoreError> {
        let is_old = |at: Timestamp| now.since(at) > KEPT_FOR;
        let plans = self.entries::<Plan>("effect/").await?;
        let claims = self.entries::<Claim>("sent/").await?;
        let old = plans.into_iter().filter(|(_, plan)| is_old(plan.at)).map(|(key, _)| key);
        let old = old.chain(claims.into_iter().filter(|(_, claim)| is_old(claim.at)).map(|(key, _)| key));
        self.put(&old.map(|key| (key, None)).collect::<Vec<_>>()).await
    }

    async fn put(&self, entries: &[(String, Option<Vec<u8>>)]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let borrowed: Vec<(&str, Option<&[u8]>)> =
            entries.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        self.0.put(&borrowed).await
    }

    async fn read<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        Ok(self.0.get(key).await?.and_then(|value| parse(key, &value)))
    }

    async fn entries<T: DeserializeOwned>(&self, prefix: &str) -> Result<Vec<(String, T)>, StoreError> {
        let entries = self.0.list(prefix).await?;
        let parsed = entries.into_iter().filter_map(|(key, value)| {
            let value = parse(&key, &value)?;
            Some((key, value))
        });
        Ok(parsed.collect())
    }

    /// The entries under a prefix, by the id that their key ends with.
    async fn by_id<I: FromStr, T: DeserializeOwned, C: FromIterator<(I, T)>>(
        &self,
        prefix: &str,
    ) -> Result<C, StoreError> {
        let entries = self.entries(prefix).await?;
        Ok(entries
            .into_iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.parse().ok()?, value)))
            .collect())
    }
}

fn plan_key(action: ActionId) -> String {
    format!("effect/{action}")
}

fn claim_key(channel: ChannelId, message: MessageId) -> String {
    format!("sent/{channel}/{message}")
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data always has a JSON form")
}

fn parse<T: DeserializeOwned>(key: &str, value: &[u8]) -> Option<T> {
    serde_json::from_slice(value)
        .inspect_err(
            |error| tracing::warn!(key, %error, "an entry of the adapter cannot be read: passed over"),
        )
        .ok()
}
