//! The tests of klbr-workspace that see it from outside.
