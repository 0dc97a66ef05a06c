//! What tests of agents, stores and channels are made with. Not for production.

mod manual_clock;
pub mod memory_store;
mod recording_channel;
mod scripted_model;
pub mod store_suite;

pub use manual_clock::ManualClock;
pub use memory_store::{Fault, MemoryStore};
pub use recording_channel::RecordingChannel;
pub use scripted_model::{Scripted, ScriptedModel};
