//! `klbr doctor`.
pub(super) async fn run(_context: &crate::context::Context) -> crate::error::Outcome { Ok(()) }
