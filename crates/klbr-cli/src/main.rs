//! The `klbr` command.
mod text;
mod view;
fn main() {}
