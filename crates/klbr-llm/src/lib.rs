//! Model servers that speak OpenAI's chat completions, behind klbr's model port.
//!
//! [`Provider`] is the port's implementation: build it from a [`Config`], sample, list models. With nothing
//! configured, [`discovery`] looks for servers on this machine. [`levels`] answers which efforts a model
//! offers; [`Learned`] is what a server turned out not to take, as data to keep.
//!
//! The layers, from the wire inwards:
//!
//! - `http`: the client, timeouts, what transport errors mean
//! - [`stream`]: a reply out of bytes, without I/O: framing, lenient chunks, calls, inline reasoning
//! - `failure`: what went wrong, sorted by what may be done about it
//! - `convert`: the core's request as bytes
//!
//! # Why reqwest, and not async-openai's stream
//!
//! With its own types, async-openai refuses chunks that real servers send; bringing our own types solves
//! that much. What no type can bring back is lost below: whether a stream ended with its marker or just
//! ended, the names of events, an unterminated last line, an error's headers (`Retry-After`). Its stream
//! also lives in a task of its own, and a task that outlives its owner is what this project does not have.

pub mod config;
mod convert;
mod dialect;
pub mod discovery;
mod failure;
mod http;
mod learned;
pub mod levels;
mod models;
mod provider;
pub mod stream;

pub use config::{BaseUrl, Config, ConfigError, Secret, Timeouts};
pub use dialect::Dialect;
pub use learned::{Learned, LearnedModel};
pub use models::Offered;
pub use provider::Provider;
