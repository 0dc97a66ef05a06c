//! The actions that every agent has: looking back, and remembering.

mod history;
mod memory;

pub use history::{HistorySearch, Recall};
pub use memory::MemoryTool;
