//! Named points of the runtime, for proofs that kill the process exactly there (`C-PRF-1`).

/// A point that the runtime passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Events are about to be committed; nobody has been told.
    AdmitBeforeCommit,
    /// Events are committed; nobody has been told.
    AdmitBeforeAcknowledge,
    /// A frame is about to be committed.
    FrameBeforeCommit,
    /// A request is committed and about to be sent.
    RequestBeforeSend,
    /// A reply is whole and about to be committed.
    ReplyBeforeCommit,
    /// A reply and its intents are committed; nothing of it has been done.
    ReplyAfterCommit,
    /// An attempt is committed and about to be made.
    AttemptBeforeDispatch,
    /// An attempt has come to its end; its outcome is about to be committed.
    OutcomeBeforeCommit,
    /// A delivery's outcome is committed; no client has been told.
    OutcomeAfterCommit,
    /// A wait is about to be committed.
    WaitBeforeCommit,
    /// A wait is committed.
    WaitAfterCommit,
    /// A wait has ended; the end is about to be committed.
    WaitEndBeforeCommit,
    /// A turn's end is committed.
    TurnEndAfterCommit,
    /// A checkpoint is about to be kept.
    CheckpointBeforeWrite,
}

impl Point {
    /// Every point.
    pub const ALL: [Point; 14] = [
        Point::AdmitBeforeCommit,
        Point::AdmitBeforeAcknowledge,
        Point::FrameBeforeCommit,
        Point::RequestBeforeSend,
        Point::ReplyBeforeCommit,
        Point::ReplyAfterCommit,
        Point::AttemptBeforeDispatch,
        Point::OutcomeBeforeCommit,
        Point::OutcomeAfterCommit,
        Point::WaitBeforeCommit,
        Point::WaitAfterCommit,
        Point::WaitEndBeforeCommit,
        Point::TurnEndAfterCommit,
        Point::CheckpointBeforeWrite,
    ];

    /// The point's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Point::AdmitBeforeCommit => "admit-before-commit",
            Point::AdmitBeforeAcknowledge => "admit-before-acknowledge",
            Point::FrameBeforeCommit => "frame-before-commit",
            Point::RequestBeforeSend => "request-before-send",
            Point::ReplyBeforeCommit => "reply-before-commit",
            Point::ReplyAfterCommit => "reply-after-commit",
            Point::AttemptBeforeDispatch => "attempt-before-dispatch",
            Point::OutcomeBeforeCommit => "outcome-before-commit",
            Point::OutcomeAfterCommit => "outcome-after-commit",
            Point::WaitBeforeCommit => "wait-before-commit",
            Point::WaitAfterCommit => "wait-after-commit",
            Point::WaitEndBeforeCommit => "wait-end-before-commit",
            Point::TurnEndAfterCommit => "turn-end-after-commit",
            Point::CheckpointBeforeWrite => "checkpoint-before-write",
        }
    }
}

/// Is told of every point that the runtime passes, on the runtime's own thread: while it blocks, the agent
/// stands still.
pub trait Probe: Send + Sync + 'static {
    /// The runtime has come to this point.
    fn reached(&self, point: Point);
}
