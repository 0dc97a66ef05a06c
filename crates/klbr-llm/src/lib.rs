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
//! With its own types, async-openai refuses chunks that real servers send; bringing our own types cures
//! that much. What no type brings back is gone below it: whether a stream ended with its marker or merely
//! ended, an unterminated last line, and a server error's headers, `Retry-After` among them. It also reads
//! a stream in a task of its own into a queue without bound, where here nothing outlives its owner.

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
