//! The proofs of klbr that need more than one crate: fakes as real processes, and the judges that watch from outside.
//!
//! - [`clock`]: stamps that processes of one machine may compare.
//! - [`conformance`]: the cases that klbr must pass, as data, and their runner.
//! - [`fake_model`]: a scripted model server as a process (`fake-model`), and the client of its control.
//! - [`prefix`]: whether a request extends the one before it, byte for byte.
//! - [`proc_tree`]: a tree of processes that is hard to kill (`proc-tree`), and the judge of who still lives.
//! - [`process`]: children of a proof, started, awaited with a watchdog, signalled, never left behind.
//! - [`simulator`]: a seeded world around the core, with a judge of what must hold whatever happens.
//! - [`trace`]: a life of two hundred turns, and how much of it a provider finds in its cache.
//! - [`validity`]: whether a captured request is one that any provider would take.

pub mod clock;
pub mod conformance;
pub mod fake_model;
pub mod prefix;
pub mod proc_tree;
pub mod process;
pub mod simulator;
pub mod trace;
pub mod validity;
