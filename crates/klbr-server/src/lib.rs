//! The klbr daemon as a library: agents in a home directory, behind an HTTP and WebSocket API on loopback.
//!
//! [`Daemon`] is started from a [`Config`] by the program `klbrd`, by a command that hosts an agent in its
//! own process, and by tests. [`api`] is the vocabulary of the wire, for clients too. [`home`] says where
//! things are.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use klbr_server::{Config, Daemon};
//!
//! let running = Daemon::new(Config::new("/var/lib/klbr")).start().await?;
//! running.ready().await?.say("greeting", "Hello!").await?;
//! running.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod api;
pub mod config;
mod daemon;
pub mod home;
mod host;
mod http;
pub mod logging;
mod metrics;
mod model;
pub mod pause;
pub mod process;
mod python;
mod workspace;

pub use config::{Config, ConfigError};
pub use daemon::{Daemon, Running, StartError, whole_story};
pub use home::Home;
