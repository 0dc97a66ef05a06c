//! The pure core of klbr.
//!
//! Without the feature `runtime` this crate does no I/O, reads no clock and knows no async.

pub mod block;
pub mod model;
#[cfg(feature = "runtime")]
pub mod runtime;
