//! The one asynchronous place: the ports, and the loop that drives an agent between them.

pub mod model;
pub mod store;
