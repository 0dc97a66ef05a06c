//! The SQLite store of klbr: what an agent's life is kept in.
//!
//! [`SqliteStore`] is the store port over one file: durable records with group commit, the tables that serve
//! questions, full-text search over history.

mod body;
mod error;
mod lane;
mod options;
mod reader;
mod row;
mod schema;
mod script;
mod store;
mod tables;
mod upcast;
mod writer;

pub use options::{Access, Durability, Options};
pub use schema::OpenError;
pub use store::SqliteStore;
