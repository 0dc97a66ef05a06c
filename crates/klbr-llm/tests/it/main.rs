//! What klbr-llm does to the outside: recorded streams, conformance cases, real sockets.

mod discovery;
mod levels;
mod llama;
mod outcome;
mod properties;
mod quirks;
mod sampling;
mod server;
mod shared;
mod streams;
