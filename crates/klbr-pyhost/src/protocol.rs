//! The messages between the host and its Python processes. Owns their spelling, nothing else.
//!
//! The Python side is `python/klbr/_protocol.py`. Any change that an older side cannot read raises [`PROTOCOL`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that both sides must speak.
pub const PROTOCOL: u32 = 2;

/// From the host.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub(crate) enum ToPython {
    Hello(Hello),
    Call {
        id: u64,
        hook: Arc<str>,
        body: Value,
        budget_ms: u64,
    },
    Cell {
        id: u64,
        code: Arc<str>,
        limits: CellLimits,
    },
    Vars {
        id: u64,
    },
    Cancel {
        id: u64,
    },
    Ping {
        n: u64,
    },
    HostResult {
        id: u64,
        n: u64,
        #[serde(flatten)]
        result: HostReply,
    },
}

/// The first message: what the process is and has.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    pub(crate) role: &'static str,
    /// The epoch of a worker, the generation of a workbench.
    pub(crate) epoch: u64,
    /// Folders that are imported from.
    pub(crate) paths: Vec<String>,
    pub(crate) hooks: Vec<HelloHook>,
    /// What hooks may read, or cells may do.
    pub(crate) reads: Arc<[Offer]>,
}

/// A hook that the worker has to load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HelloHook {
    pub(crate) run: Arc<str>,
    pub(crate) kind: &'static str,
    pub(crate) name: Arc<str>,
}

/// One function that the host offers to Python: a read for hooks, an action for cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name; `family_verb` also appears as `family.verb`.
    pub name: Arc<str>,
    /// What `help()` shows.
    pub doc: Arc<str>,
    /// The JSON schema of its arguments, an object's.
    pub parameters: Value,
}

/// Bounds on what a cell answers with, enforced where it is made.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct CellLimits {
    pub(crate) repr_bytes: usize,
    pub(crate) repr_ms: u64,
    pub(crate) parts: usize,
    pub(crate) part_bytes: usize,
}

/// The host's answer to a host call.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostReply {
    Ok(Value),
    Error { code: &'static str, message: String },
}

/// From a Python process.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub(crate) enum FromPython {
    Hello {
        protocol: u32,
        python: String,
    },
    Ready {
        #[serde(default)]
        hooks: Vec<LoadedHook>,
        #[serde(default)]
        failed: Vec<FailedHook>,
    },
    Result {
        id: u64,
        #[serde(default)]
        ok: Value,
        error: Option<HookError>,
    },
    CellResult {
        id: u64,
        #[serde(flatten)]
        result: CellReply,
    },
    VarsResult {
        id: u64,
        vars: Vec<Variable>,
    },
    HostCall {
        id: u64,
        n: u64,
        name: String,
        #[serde(default)]
        arguments: Value,
    },
    Log(Logging),
    Pong {
        n: u64,
    },
}

/// One record of Python's `logging`, on its way.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Logging {
    /// The call under which it was made.
    pub(crate) id: Option<u64>,
    pub(crate) level: Level,
    pub(crate) logger: Arc<str>,
    pub(crate) message: Arc<str>,
    pub(crate) file: Option<Arc<str>>,
    pub(crate) line: Option<u32>,
    #[serde(default)]
    pub(crate) left_out: u64,
}

/// One record of Python's `logging`, from user code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// How grave it is.
    pub level: Level,
    /// The logger's name.
    pub logger: Arc<str>,
    /// What it says, at most 4 KiB; an exception's traceback included.
    pub message: Arc<str>,
    /// Where it was made.
    pub file: Option<Arc<str>>,
    /// On which line.
    pub line: Option<u32>,
    /// `module:function` of the hook under whose call it was made, if it was.
    pub run: Option<Arc<str>>,
    /// How many records before it were left out, because there were too many at once.
    pub left_out: u64,
}

/// How grave a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// As expected.
    Info,
    /// Not as expected.
    Warning,
    /// Something failed.
    Error,
    /// Nothing works.
    Critical,
}

/// A hook as its worker found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedHook {
    /// `module:function`.
    pub run: Arc<str>,
    /// Where it is written.
    pub file: Option<Arc<str>>,
    /// On which line.
    pub line: Option<u32>,
    /// The deadline that its decorator names, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// The first line of its documentation.
    #[serde(default)]
    pub doc: Arc<str>,
}

/// A hook that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedHook {
    /// `module:function`.
    pub run: Arc<str>,
    /// Why.
    #[serde(flatten)]
    pub error: HookError,
}

/// What went wrong in Python.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookError {
    /// Whether the answer was wrong, or the code raised.
    #[serde(default)]
    pub kind: HookErrorKind,
    /// The exception's type.
    #[serde(rename = "type")]
    pub exception: Arc<str>,
    /// Its text.
    pub message: Arc<str>,
    /// The innermost file that is not the harness's own.
    pub file: Option<Arc<str>>,
    /// The line there.
    pub line: Option<u32>,
    /// The end of the traceback.
    #[serde(default)]
    pub traceback: Arc<str>,
}

/// How a hook failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookErrorKind {
    /// It raised.
    #[default]
    Raised,
    /// It answered with something that cannot be its answer.
    WrongAnswer,
    /// It was cancelled and said so.
    Cancelled,
}

impl std::fmt::Display for HookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.exception, self.message)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({file}:{line})"),
            (Some(file), None) => write!(f, " ({file})"),
            (None, _) => Ok(()),
        }
    }
}

/// How a cell ended, as the workbench says it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CellReply {
    pub(crate) outcome: CellOutcome,
    #[serde(default)]
    pub(crate) parts: Vec<Part>,
    #[serde(default)]
    pub(crate) wait: Option<WaitAsked>,
    /// The variables that exist now.
    #[serde(default)]
    pub(crate) names: Vec<Arc<str>>,
    /// Whether a process was started.
    #[serde(default)]
    pub(crate) spawned: bool,
}

/// The wait that a cell ended with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitAsked {
    /// How long, in milliseconds, as the cell asked; the core bounds it (`B-WAIT-1`).
    pub timeout_ms: u64,
    /// Why.
    pub reason: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellOutcome {
    Ok,
    Raised,
    Cancelled,
    Yielded,
}

/// One part of what a cell answers with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// The value of the last expression.
    Value {
        /// Its type's name.
        #[serde(rename = "type")]
        type_name: Arc<str>,
        /// Its repr, cut to the bound.
        repr: Arc<str>,
    },
    /// Text that was shown on purpose.
    Text {
        /// The text, cut to the bound.
        text: Arc<str>,
    },
    /// Plain data that was shown on purpose.
    Json {
        /// The data.
        data: Value,
    },
    /// An image.
    Image {
        /// Its media type, such as `image/png`.
        media_type: Arc<str>,
        /// Its bytes in base64, if they are within the bound.
        base64: Option<Arc<str>>,
        /// Its file, if it has one.
        path: Option<Arc<str>>,
    },
    /// The exception that ended the cell.
    Exception(HookError),
}

/// A variable of the workbench.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    /// Its name.
    pub name: Arc<str>,
    /// Its type's name.
    #[serde(rename = "type")]
    pub type_name: Arc<str>,
    /// Its own size in bytes, without what it refers to.
    pub bytes: u64,
    /// The first characters of its repr.
    pub start: Arc<str>,
}
