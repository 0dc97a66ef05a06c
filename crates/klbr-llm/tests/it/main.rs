//! What klbr-llm does to the outside: recorded streams, conformance cases, real sockets.

mod shared;
mod streams;
