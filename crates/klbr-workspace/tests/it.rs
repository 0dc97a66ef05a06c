//! The tests of klbr-workspace that see it from outside.

mod chunk;
#[cfg(feature = "code")]
mod code;
mod instructions;
mod view;
