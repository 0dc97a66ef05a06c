//! The tests of klbr-pyhost, against real Python processes.

mod defaults;
mod failures;
mod live;
mod manifest;
mod protocol;
mod rewriting;
mod support;
mod trials;
mod workbench;
mod worker;
