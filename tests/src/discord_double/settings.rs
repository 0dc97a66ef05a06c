//! What may be set on a running double.
//!
//! Owns the figures and their defaults, which are Discord's where Discord documents one. Refuses to act on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All that may be set; what a change leaves out stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The heartbeat interval that HELLO tells, in milliseconds; 41,250.
    pub heartbeat_ms: u64,
    /// Whether heartbeats are acknowledged; without, the connection is a zombie.
    pub acknowledge: bool,
    /// Whether HELLO is sent at all.
    pub hello: bool,
    /// How many of the next gateway connections are turned away with 503.
    pub turn_away: u64,
    /// How long a session may be resumed after its connection went, in milliseconds; 180,000.
    pub session_ms: u64,
    /// How many dispatches a session keeps for a resume; 50,000.
    pub replay: usize,
    /// How soon after another an IDENTIFY is answered with invalid session, in milliseconds; 0 lets all through.
    ///
    /// Discord's is 5,000. What came too soon is noted in any case.
    pub identify_ms: u64,
    /// What `/gateway/bot` recommends; 1.
    pub shards: u64,
    /// The application's flags: which privileged intents are switched on in the developer portal (all, limited).
    pub application_flags: u64,
    /// How long a nonce is known, in milliseconds; 180,000 ("a few minutes").
    pub nonce_ms: u64,
    /// Whether a nonce is known in its channel alone, or to the author everywhere.
    pub nonce_scope: NonceScope,
    /// What is answered when the message under a nonce was deleted.
    pub nonce_deleted: NonceDeleted,
    /// Requests in a second over all routes; 50, 0 for no limit.
    pub global_per_second: u64,
    /// Limits by `METHOD /route`; `*` is the rest.
    pub limits: BTreeMap<String, Limit>,
}

/// Where a nonce is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonceScope {
    /// To the author, in the channel.
    Channel,
    /// To the author, in every channel.
    Author,
}

/// What a known nonce answers whose message is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonceDeleted {
    /// 404 with code 10008.
    UnknownMessage,
    /// A new message.
    Create,
}

/// A route's limit, for each channel or guild in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Requests in one period.
    pub requests: u64,
    /// The period in milliseconds.
    pub per_ms: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        const LIMITED: u64 = 1 << 13 | 1 << 15 | 1 << 19;
        Settings {
            heartbeat_ms: 41_250,
            acknowledge: true,
            hello: true,
            turn_away: 0,
            session_ms: 180_000,
            replay: 50_000,
            identify_ms: 0,
            shards: 1,
            application_flags: LIMITED,
            nonce_ms: 180_000,
            nonce_scope: NonceScope::Channel,
            nonce_deleted: NonceDeleted::UnknownMessage,
            global_per_second: 50,
            limits: BTreeMap::from([("*".to_owned(), Limit { requests: 30, per_ms: 1_000 })]),
        }
    }
}
