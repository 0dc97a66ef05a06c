//! The SQLite store of klbr: what an agent's life is kept in.
//!
//! [`SqliteStore`] is the store port over one file: durable records with group commit, the tables that serve
//! questions, full-text search over history. [`HomeLock`] keeps a second writer out of a home, and [`upkeep`]
//! checks, copies, restores and exports the file.

mod body;
mod error;
mod lane;
mod lock;
mod options;
mod reader;
mod row;
mod schema;
mod script;
mod store;
mod tables;
mod upcast;
pub mod upkeep;
mod writer;

pub use lock::{Holder, HomeLock, LockError};
pub use options::{Access, Durability, Options};
pub use schema::OpenError;
pub use store::SqliteStore;
