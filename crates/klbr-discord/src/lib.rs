//! Discord behind klbr's channel port: an agent takes part in conversations, hears everything, and speaks on purpose.
//!
//! [`Discord`] is the adapter of one agent. It gives the agent's builder the channel and the tools, and
//! [`Discord::run`] is the future that listens for as long as the agent lives. [`Settings`] come from a lookup
//! (`B-DIS-1`); [`check()`] says what to enable in the developer portal before anything is started.
//!
//! How an event comes in: the gateway's frames are read leniently (`payload`), become events (`intake`), and are
//! admitted many at once and in order (`pump`). Cursors and sessions move only over what is durable; what was told
//! while nobody listened is fetched (`catchup`). How the agent speaks: a delivery is planned, sent under one nonce, and
//! its end is confirmed, failed or unknown (`send`).
//!
//! What is used of twilight: the gateway's protocol on one connection, routes, ids' instants, permissions. None of its
//! types stands in a public signature. Its models are not used, since they refuse payloads that Discord sends; nor is
//! its HTTP client, since it hides rate limits and takes an unreadable answer for a failure.
//!
//! TLS on the gateway uses the process's default provider of rustls; where there is none, the only one that is compiled
//! in.

mod backoff;
mod catchup;
mod check;
mod conversations;
mod discord;
mod gateway;
mod http;
mod id;
mod intake;
mod kept;
mod payload;
mod pump;
mod send;
pub mod settings;
mod tools;
mod typing;
mod world;

pub use check::{Finding, Report, Severity, check};
pub use conversations::KnownConversation;
pub use discord::{Discord, RunError};
pub use gateway::Fatal;
pub use http::TlsError;
pub use id::{ChannelId, IdError};
pub use settings::{Section, Settings, SettingsError};
