//! The surroundings port: what a host knows that the prompt says and that may change while an agent lives.

use async_trait::async_trait;

use crate::context::prefix::Facts;

/// Tells an agent what its host knows: the mode, the plan, the personality, where it works, instruction files, servers'
/// instructions.
///
/// The prefix says it as it was when the prefix was made; a later change is a note in the next frame that
/// starts a turn (`C-PFX-1`). An agent without surroundings has no such facts.
#[async_trait]
pub trait Surroundings: Send + Sync + 'static {
    /// The facts as they are now; the date and the pinned memories are overwritten.
    ///
    /// Asked whenever a frame is loaded, which waits for the answer: what takes long is kept at hand instead.
    /// A fact that cannot be told at the moment is told as it was: what is left empty counts as taken away.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any point, and the question is then asked again.
    async fn facts(&self) -> Facts;
}
