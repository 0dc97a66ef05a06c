//! The command as a process: what it prints, how it ends, what it leaves behind.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's helpers fail where they stand, like the test"
)]

mod chat;
mod code;
mod daemon;
mod demo;
mod errors;
mod memory;
mod model;
mod policy;
mod program;
