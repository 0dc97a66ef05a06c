//! Model servers behind klbr's model port.
pub(crate) mod failure;
pub mod stream;
