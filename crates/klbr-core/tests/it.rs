//! The tests of klbr-core that see it from outside.

mod block;
mod context;
mod context_prefix;
mod context_properties;
