//! The tests of klbr-core that see it from outside.

#![allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]

mod bad_input;
mod block;
mod budget;
mod context;
mod context_prefix;
mod context_properties;
mod machine;
mod notes;
#[cfg(feature = "testkit")]
mod runtime;
mod session;
