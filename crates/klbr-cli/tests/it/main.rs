//! The command as a process: what it prints, how it ends, what it leaves behind.

mod chat;
mod daemon;
mod demo;
mod errors;
mod model;
mod program;
