//! The model port: how the runtime asks a provider for one reply.

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::model::{Delta, Failure, Request, Sampled};

/// What arrives while a reply streams.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A part of the reply; may be shown, is never kept.
    Delta(Delta),
    /// The whole reply. Nothing follows it.
    Finished(Sampled),
}

/// A reply on its way. Ends after [`Piece::Finished`] or the first error.
///
/// Dropping it cancels the sampling: the connection is closed at once.
pub type Reply = BoxStream<'static, Result<Piece, Failure>>;

/// Something that can be sampled.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Starts one sampling.
    ///
    /// # Errors
    ///
    /// Fails when the provider refuses or cannot be reached before a reply begins.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, like dropping the reply, closes the connection at once.
    async fn sample(&self, request: Request) -> Result<Reply, Failure>;
}
