//! One error inside the crate, sorted into the port's at its edge.

use std::sync::Arc;

use klbr_core::runtime::store::StoreError;

/// What can go wrong between a request and the database.
#[derive(Debug)]
pub(crate) enum Fail {
    /// SQLite says so.
    Sql(rusqlite::Error),
    /// This crate says so.
    Store(StoreError),
}

pub(crate) type Outcome<T> = Result<T, Fail>;

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Fail::Sql(error)
    }
}

impl From<StoreError> for Fail {
    fn from(error: StoreError) -> Self {
        Fail::Store(error)
    }
}

impl From<Fail> for StoreError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Store(error) => error,
            Fail::Sql(error) => sorted(&Arc::new(error)),
        }
    }
}

/// What SQLite's error means to whoever asked. Several requests may fail of one error.
pub(crate) fn sorted(error: &Arc<rusqlite::Error>) -> StoreError {
    if is_damage(error) {
        StoreError::Damaged(error.to_string())
    } else {
        StoreError::Unavailable(Box::new(error.clone()))
    }
}

/// Whether SQLite says that the file is not what it should be.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

pub(crate) fn damaged<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Fail::Store(StoreError::Damaged(what.into())))
}

pub(crate) fn contradiction<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Fail::Store(StoreError::Contradiction(what.into())))
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("it is closed".into())
}
