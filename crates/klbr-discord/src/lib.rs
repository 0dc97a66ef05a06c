//! Discord behind klbr's channel port.
pub mod settings;
mod id;
mod payload;
mod world;
mod intake;
mod kept;
mod http;
pub use settings::{Section, Settings};
