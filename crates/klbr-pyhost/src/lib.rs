//! The Python side of klbr, hosted: policy that an owner writes in Python, and the cells that a model writes.
//!
//! Rust keeps the deadlines, the limits, the records and the way back; Python answers questions. Two kinds of process,
//! never one: the hook [`Worker`] and the [`Workbench`]. Both are started, limited, heard and killed here,
//! with everything that came of them.
//!
//! Read first: [`Worker`], then [`HookPolicy`] (the core's policy port), [`Live`] (what is in force, and how it changes),
//! [`PythonTool`] (cells as an action of the model's, and the other actions as their functions).

mod activation;
mod at_work;
mod files;
mod frame;
mod history;
mod hooks;
mod host;
mod invocation;
mod journal;
mod live;
mod manifest;
mod observers;
mod process;
mod protocol;
mod publish;
mod python_tool;
mod questions;
mod reads;
mod session;
mod settings;
mod slots;
mod sources;
mod transforms;
mod typegen;
mod workbench;
mod worker;

pub use activation::{Difference, Refused, Report, Trial, Variables};
pub use history::{NoWayBack, Probation};
pub use host::{Caller, HostCallError, HostCalls, NoHost};
pub use invocation::{Invocation, Outcome, Recorder};
pub use journal::Records;
pub use live::{ActivateError, Attached, Live, Order, Parts, roll_back};
pub use manifest::{
    Affected, Bound, Hook, KeptError, Known, MANIFEST, Manifest, ManifestError, Manifests, Problem, Skill,
};
pub use observers::{
    Advance, Batch, Begin, Committed, Journal, JournalError, Observer, Observers, Wish, place,
};
pub use process::{Limits, Program};
pub use protocol::{
    FailedHook, HookError, HookErrorKind, Level, LoadedHook, Logged, Offer, PROTOCOL, Part, Variable,
    WaitAsked,
};
pub use publish::{TreeError, Trees};
pub use python_tool::{CellTimes, PYTHON, PythonTool};
pub use questions::Questions;
pub use reads::Reads;
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
