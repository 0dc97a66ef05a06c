//! The tests of klbr-pyhost, against real Python processes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and must say how it went")]

mod defaults;
mod failures;
mod leash;
mod live;
mod manifest;
mod protocol;
mod python_tool;
mod rewriting;
mod support;
mod trials;
mod workbench;
mod worker;
