//! The hands of an agent on a disk: what it may see and change, which instructions it finds, how text is cut.
//!
//! Nearly everything here is a pure function over paths and texts: a [`view::View`] decides, [`instructions`] names the
//! files that go to the model, [`chunk`] cuts text for a search index. Paths are absolute, `/`-separated and
//! resolved by their text, as [`klbr_core::context::paths`] says. Only `code` (a feature) touches files: the actions that read and edit code.

pub mod chunk;
#[cfg(feature = "code")]
pub mod code;
pub mod instructions;
pub mod view;
