//! What Discord tells, read leniently.
//!
//! Owns the structs that the rest of the crate works with. Nothing here fails because of a field that is missing,
//! new, null or of another type: what a thing cannot do without is asked for, the rest has a default
//! (`B-DIS-11`). A payload without what it needs is `None`, and its caller passes it over.

mod dispatch;
mod message;
mod read;

pub(crate) use dispatch::{Channel, Dispatch, Envelope, Guild, Kind, Reaction};
pub(crate) use message::{Attachment, Embed, Emoji, Message, User};
pub(crate) use read::Read;
