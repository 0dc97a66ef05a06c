//! What a model reads, kept small and still: nothing already sent is ever rewritten.
//!
//! Owns the shape of every result at the moment it is inserted ([`Hygiene`]), the prefix and its notes
//! ([`prefix`]), which reasoning a request carries ([`reasoning`]), how paths are told and read ([`paths`]),
//! and the effort levels of a model ([`levels`]). Refuses to change an earlier message: a measure that comes
//! later than insertion has no place here, and compaction is the one break.

mod answer;
mod cap;
mod change;
mod content;
mod hygiene;
mod id;
mod insertion;
pub mod levels;
mod lines;
pub mod paths;
pub mod prefix;
pub mod proof;
mod read;
pub mod reasoning;
mod recall;
pub(crate) mod stub;
mod table;

pub use answer::{Answer, Change, Dedupe, Output, Patch, Read, Recall, Remembered};
pub use cap::Limits;
pub use content::Content;
pub use hygiene::{Changed, Entry, Hygiene, ReadRow, Seen, Trace, Unseen};
pub use id::ResultId;
pub use insertion::Insertion;
