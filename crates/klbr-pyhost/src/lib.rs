//! The Python side of klbr, hosted: policy that an owner writes in Python, and the cells that a model writes.
//!
//! Rust keeps the deadlines, the limits, the records and the way back; Python answers questions. Two kinds of process,
//! never one: the hook [`Worker`] and the workbench. Both are started, limited, heard and killed here,
//! with everything that came of them.
//!
//! Read first: [`Worker`], then [`HookPolicy`] (the core's policy port).

mod files;
mod frame;
mod host;
mod invocation;
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
mod worker;

pub use host::{Caller, HostCallError, HostCalls, NoHost};
pub use invocation::{Invocation, Outcome, Recorder};
pub use manifest::{Affected, Bound, Hook, Known, MANIFEST, Manifest, ManifestError, Problem, Skill};
pub use observers::{
    Advance, Batch, Begin, Committed, HostCommand, Journal, JournalError, Observer, Observers, place,
};
pub use process::{Limits, Program};
pub use protocol::{FailedHook, HookError, HookErrorKind, LoadedHook, Offer, PROTOCOL, Part, Variable};
pub use publish::{TreeError, Trees};
pub use slots::{HookPolicy, SlotBinding};
pub use sources::Sources;
pub use transforms::{Held, OnFailure, Step, Transformed, Transforms};
pub use typegen::{all_slots, answer_kind, python_types};
pub use worker::{
    Call, CallError, Change, Entry, Kind, Loaded, OnDeath, Patience, Spec, State, Watch, Worker,
};
