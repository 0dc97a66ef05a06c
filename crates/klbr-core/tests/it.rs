//! The tests of klbr-core that see it from outside.

mod block;
