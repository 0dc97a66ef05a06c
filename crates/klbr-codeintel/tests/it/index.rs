//! The index over a tree: what it finds, what it leaves out, how it stays true.

mod isolation;
mod surveys;
mod trees;
