//! The proofs of klbr that need more than one crate: fakes as real processes, and the judges that watch from outside.

pub mod conformance;
