//! To be replaced.
