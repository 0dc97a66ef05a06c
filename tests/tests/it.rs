//! The fakes and the judges, proven over real sockets and real processes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed helper is a failed test")]

#[path = "it/answers.rs"]
mod answers;
#[path = "it/connections.rs"]
mod connections;
#[path = "it/control.rs"]
mod control;
#[path = "it/operator.rs"]
mod operator;
#[path = "it/processes.rs"]
mod processes;
#[path = "it/tidy.rs"]
mod tidy;
#[path = "it/wire.rs"]
mod wire;
