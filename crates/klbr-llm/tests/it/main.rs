//! What klbr-llm does to the outside: recorded streams, conformance cases, real sockets.

mod discovery;
mod levels;
mod quirks;
mod sampling;
mod server;
mod shared;
mod streams;
