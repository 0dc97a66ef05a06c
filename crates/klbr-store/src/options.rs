//! How a store is opened.

/// How a [`SqliteStore`](crate::SqliteStore) is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What a commit survives.
    pub durability: Durability,
    /// Whether the store may be written.
    pub access: Access,
}

/// What a commit survives once it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: every acknowledgement follows a sync of the log that covers it.
    #[default]
    PowerCut,
    /// The end of the process, at any instruction; not a power cut. For tests and throw-away homes.
    ProcessEnd,
}

/// Whether a store may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It is made when it is not there, migrated, written. Only for the holder of the home's lock (`C-HOME`).
    #[default]
    Write,
    /// It has to be there, and every change is refused. Searches cover what its writer has indexed so far.
    Read,
}
