//! The tests of klbr-pyhost, against real Python processes.

mod defaults;
mod failures;
mod protocol;
mod support;
mod worker;
