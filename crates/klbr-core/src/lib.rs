//! The pure core of klbr.
//!
//! Without the feature `runtime` this crate does no I/O, reads no clock and knows no async.

pub mod action;
pub mod agent;
pub mod attention;
pub mod block;
pub mod config;
pub mod context;
pub mod event;
pub mod hash;
pub mod ids;
pub mod input;
pub mod ledger;
pub mod model;
pub mod policy;
pub mod record;
#[cfg(feature = "runtime")]
pub mod runtime;
pub mod state;
pub mod status;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod time;
pub mod update;
