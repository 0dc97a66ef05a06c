//! The proofs of klbr that need more than one crate: fakes as real processes, and the judges that watch from outside.
//!
//! - [`clock`]: stamps that processes of one machine may compare.
//! - [`validity`]: whether a captured request is one that any provider would take.
//! - [`prefix`]: whether a request extends the one before it, byte for byte.

pub mod clock;
pub mod prefix;
pub mod validity;
