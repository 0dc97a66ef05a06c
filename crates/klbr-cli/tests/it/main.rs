//! The command as a process: what it prints, how it ends, what it leaves behind.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail where they stand, like the test")]

mod chat;
mod daemon;
mod demo;
mod errors;
mod memory;
mod model;
mod program;
