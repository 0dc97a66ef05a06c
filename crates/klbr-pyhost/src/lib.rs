//! The Python side of klbr, hosted: policy that an owner writes in Python, and the cells that a model writes.
//!
//! Rust keeps the deadlines, the limits, the records and the way back; Python answers questions. Two kinds of process,
//! never one: the hook [`Worker`] and the [`Workbench`]. Both are started, limited, heard and killed here,
//! with everything that came of them.
//!
//! Read first: [`Worker`], then [`HookPolicy`] (the core's policy port), [`Live`] (what is in force, and how it changes).

mod activation;
mod epochs;
mod files;
mod frame;
mod host;
mod invocation;
mod live;
mod manifest;
mod observers;
mod process;
mod protocol;
mod publish;
mod session;
mod slots;
mod sources;
mod transforms;
mod typegen;
mod workbench;
mod worker;

pub use activation::{Difference, Recorded, Refused, Report, Trial};
pub use epochs::{Cause, Epoch, EpochError, Epochs, Probation};
pub use host::{Caller, HostCallError, HostCalls, NoHost};
pub use invocation::{Invocation, Outcome, Recorder};
pub use live::{ActivateError, EpochLog, InForce, Live};
pub use manifest::{Affected, Bound, Hook, Known, MANIFEST, Manifest, ManifestError, Problem, Skill};
pub use observers::{
    Advance, Batch, Begin, Committed, HostCommand, Journal, JournalError, Observer, Observers, place,
};
pub use process::{Limits, Program};
pub use protocol::{
    FailedHook, HookError, HookErrorKind, Level, LoadedHook, Logged, Offer, PROTOCOL, Part, Variable,
    WaitAsked,
};
pub use publish::{TreeError, Trees};
pub use slots::{HookPolicy, SlotBinding};
pub use sources::Sources;
pub use transforms::{Held, OnFailure, Step, Transformed, Transforms};
pub use typegen::{all_slots, answer_kind, python_types};
pub use workbench::{
    ActState, Acted, Bench, Bounds, Cell, CellAnswer, CellEnd, Ladder, Printed, Rung, Workbench,
};
pub use worker::{
    Call, CallError, Change, Entry, Kind, Loaded, OnDeath, Patience, Spec, State, Watch, Worker,
};
