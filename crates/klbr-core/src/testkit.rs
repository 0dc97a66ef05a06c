//! What tests of agents, stores and channels are made with. Not for production.

pub mod memory_store;
pub mod store_suite;

pub use memory_store::{Fault, MemoryStore};
