//! The one asynchronous place: the ports, and the loop that drives an agent between them.

pub mod actions;
pub mod adapter;
mod builder;
pub mod channel;
pub mod clock;
mod driver;
mod handle;
pub mod local;
pub mod model;
pub mod policy;
pub mod probe;
pub mod store;
pub mod surroundings;
pub mod tool;
pub mod tools;
mod updates;

pub use builder::{AgentBuilder, RunningAgent, StartError};
pub use driver::RunError;
pub use handle::{Admission, AdmitError, AgentHandle, Stopped};
pub use updates::Updates;
