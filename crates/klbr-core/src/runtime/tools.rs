//! The actions that every agent has: looking back, and remembering.

mod expand;
mod history;
mod memory;

pub use expand::{Expansion, HistoryExpand, covered};
pub use history::{HistorySearch, Recall};
pub use memory::MemoryTool;
