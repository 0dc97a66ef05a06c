//! The daemon from outside: in this process, and as a process of its own, each on a home of its own.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on says where")]

mod api;
mod code;
mod config;
mod lifecycle;
mod models;
mod policy;
mod processes;
mod refusals;
mod restart;
mod support;
mod workspace;
