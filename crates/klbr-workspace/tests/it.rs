//! The tests of klbr-workspace that see it from outside.

mod chunk;
mod instructions;
mod view;
