//! The proofs of klbr that need more than one crate: fakes as real processes, and the judges that watch from outside.
//!
//! - [`fake_model`]: a scripted model server as a process (`fake-model`), and the client of its control.
//! - [`process`]: children of a proof, started, awaited with a watchdog, signalled, never left behind.
//! - [`proc_tree`]: a tree of processes that is hard to kill (`proc-tree`), and the judge of who still lives.
//! - [`validity`]: whether a captured request is one that any provider would take.
//! - [`prefix`]: whether a request extends the one before it, byte for byte.
//! - [`clock`]: stamps that processes of one machine may compare.

pub mod clock;
pub mod fake_model;
pub mod prefix;
pub mod proc_tree;
pub mod process;
pub mod validity;
