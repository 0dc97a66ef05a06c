//! The action `python`: a cell of the workbench as one call of the model's, and the agent's actions as its functions.
//!
//! Owns how a cell's answer reads, and what a cell's calls are told. Review, effect and receipt of each call are the
//! core's; so is the account of a cell that did not end well.

mod rendering;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{ActionSpec, Answered, Class, FailureKind, Outcome, Resource, Role};
use klbr_core::context::Answer;
use klbr_core::model::ToolDefinition;
use klbr_core::runtime::actions::Actions;
use klbr_core::runtime::tool::{AnyTool, CallContext, arguments, lost};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::{Caller, HostCallError, HostCalls};
use crate::protocol::Offer;
use crate::workbench::{Bench, Cell, Workbench};
use crate::worker::Watch;

/// The name of the action.
pub const PYTHON: &str = "python";

/// Bytes of an action's text that a cell is given.
const MAX_TOLD: usize = 2 << 20;

/// Bytes of an action's data that a cell is given.
const MAX_DATA: usize = 4 << 20;

/// What the action needs beyond the longest cell: for the queue, the start of a process, and the ladder.
const MARGIN: Duration = Duration::from_secs(30);

/// The action `python` of one agent. Its workbench starts with the first cell, and ends when this is dropped.
pub struct PythonTool {
    bench: Bench,
    watch: Arc<dyn Watch>,
    times: CellTimes,
    started: Mutex<Option<Started>>,
}

/// How long cells may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTimes {
    /// One that names no time.
    pub usual: Duration,
    /// Any.
    pub longest: Duration,
}

impl Default for CellTimes {
    fn default() -> Self {
        CellTimes { usual: Duration::from_secs(120), longest: Duration::from_secs(600) }
    }
}

#[derive(Clone)]
struct Started {
    workbench: Arc<Workbench>,
    cells: Arc<Cells>,
}

#[derive(Deserialize, JsonSchema)]
struct PythonArguments {
    /// The cell's code.
    code: String,
    /// How long it may run, in seconds.
    timeout: Option<f64>,
}

impl PythonTool {
    /// Made of what a workbench is made of. Starts nothing yet.
    pub fn new(bench: Bench, watch: Arc<dyn Watch>) -> Self {
        PythonTool { bench, watch, times: CellTimes::default(), started: Mutex::default() }
    }

    /// Gives cells other times.
    #[must_use]
    pub fn times(mut self, times: CellTimes) -> Self {
        self.times = times;
        self
    }

    /// The workbench, once a cell has been run.
    pub fn workbench(&self) -> Option<Arc<Workbench>> {
        self.started().as_ref().map(|started| Arc::clone(&started.workbench))
    }

    fn started(&self) -> MutexGuard<'_, Option<Started>> {
        // Nothing that holds the lock can panic in the middle of a change.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, actions: &Actions) -> Started {
        let begin = || {
            let offers = actions.specs().map(offer).collect();
            let cells = Arc::new(Cells { offers, running: Mutex::default() });
            let host: Arc<dyn HostCalls> = cells.clone();
            let workbench = Workbench::start(self.bench.clone(), host, Arc::clone(&self.watch));
            Started { workbench: Arc::new(workbench), cells }
        };
        self.started().get_or_insert_with(begin).clone()
    }

    fn limit(&self, timeout: Option<f64>) -> Result<Duration, String> {
        let Some(seconds) = timeout else { return Ok(self.times.usual) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(limit) if !limit.is_zero() => Ok(limit.min(self.times.longest)),
            Ok(_) | Err(_) => Err(format!("Not run: a timeout of {seconds} seconds is no time.")),
        }
    }
}

#[async_trait]
impl AnyTool for PythonTool {
    fn spec(&self) -> ActionSpec {
        let longest = self.times.longest.as_secs();
        ActionSpec {
            tool: ToolDefinition {
                name: PYTHON.to_owned(),
                description: format!(
                    "Runs a cell of Python in your workbench. Variables stay; top-level await works; the value of the \
                     last expression comes back with what was printed. show(…) adds texts, plain data and images. \
                     Your actions are functions there. A cell may run {} seconds, or as long as its timeout says, \
                     at most {longest}.",
                    self.times.usual.as_secs()
                ),
                parameters: schemars::schema_for!(PythonArguments).to_value(),
            },
            role: Role::Cell,
            class: Class::Irreversible,
            cancellable: true,
            resource: Resource::Named("workbench".into()),
            deadline: self.times.longest + MARGIN,
        }
    }

    async fn call(&self, context: CallContext) -> Outcome {
        let PythonArguments { code, timeout } = match arguments(&context.attempt) {
            Ok(arguments) => arguments,
            Err(refusal) => return refusal,
        };
        let limit = match self.limit(timeout) {
            Ok(limit) => limit,
            Err(why) => return Outcome::failed(FailureKind::Invalid, why),
        };
        let Started { workbench, cells } = self.start(&context.actions);
        let owner: Arc<str> = context.action.to_string().into();
        let _running = cells.enter(&owner, context.actions);
        let cell = Cell { code: code.into(), owner, limit };
        rendering::outcome(&workbench.run(cell).await)
    }

    /// What an earlier process began is gone with it; the core tells what it did by calling actions.
    async fn reconcile(&self, _: CallContext) -> Outcome {
        lost()
    }
}

/// The cells that run, and the agent's actions as each may call them.
struct Cells {
    offers: Vec<Offer>,
    running: Mutex<HashMap<Arc<str>, Actions>>,
}

/// A cell that runs. Dropped, it calls nothing any more.
struct Entered<'a> {
    cells: &'a Cells,
    owner: Arc<str>,
}

impl Cells {
    fn running(&self) -> MutexGuard<'_, HashMap<Arc<str>, Actions>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, owner: &Arc<str>, actions: Actions) -> Entered<'_> {
        self.running().insert(Arc::clone(owner), actions);
        Entered { cells: self, owner: Arc::clone(owner) }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.cells.running().remove(&self.owner);
    }
}

#[async_trait]
impl HostCalls for Cells {
    fn offers(&self) -> Vec<Offer> {
        self.offers.clone()
    }

    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError> {
        let over = || HostCallError { code: "over", message: "the cell is over".to_owned() };
        let actions = self.running().get(&caller.owner).cloned().ok_or_else(over)?;
        let Value::Object(arguments) = arguments else {
            let message = format!("the arguments of {name} are no object");
            return Err(HostCallError { code: "invalid", message });
        };
        let answered = actions.call(name, arguments).await;
        let answered = answered
            .map_err(|error| HostCallError { code: "over", message: error.to_string() })
            .map(|answered| Told::from(&answered))?;
        serde_json::to_value(answered)
            .map_err(|error| HostCallError { code: "unreadable", message: error.to_string() })
    }
}

/// What a cell is told of a call of its own. The Python side raises what is not confirmed.
#[derive(Serialize)]
struct Told {
    told: String,
    action: Option<String>,
    code: &'static str,
    data: Option<Value>,
}

impl From<&Answered> for Told {
    fn from(answered: &Answered) -> Self {
        Told {
            told: bounded(&answered.told),
            action: answered.action.map(|action| action.to_string()),
            code: answered.code(),
            data: data(answered).filter(|data| data.to_string().len() <= MAX_DATA),
        }
    }
}

/// What of an answer code can make more of than of its text.
fn data(answered: &Answered) -> Option<Value> {
    if let Some(sent) = &answered.sent {
        return serde_json::to_value(sent).ok();
    }
    match answered.answer.as_deref() {
        Some(Answer::Read(read)) => {
            let sha256 = read.content.hash().to_string();
            Some(json!({ "path": read.path, "text": read.content.text(), "sha256": sha256 }))
        }
        Some(Answer::Remembered(memory)) => Some(json!({ "id": memory.id, "pinned": memory.pinned })),
        Some(Answer::Change(_) | Answer::Patch(_) | Answer::Recall(_) | Answer::Output(_)) | None => None,
    }
}

/// Both ends of a text that is longer than a frame should carry.
fn bounded(text: &str) -> String {
    if text.len() <= MAX_TOLD {
        return text.to_owned();
    }
    let (head, tail) =
        (text.floor_char_boundary(MAX_TOLD / 2), text.ceil_char_boundary(text.len() - MAX_TOLD / 2));
    format!("{}\n… {} bytes left out …\n{}", &text[..head], tail - head, &text[tail..])
}

/// An action as a function of cells. What its arguments mean goes into its documentation.
fn offer(spec: &ActionSpec) -> Offer {
    let ToolDefinition { name, description, parameters } = &spec.tool;
    let mut doc = description.clone();
    for (name, schema) in parameters["properties"].as_object().into_iter().flatten() {
        if let Some(text) = schema["description"].as_str() {
            doc.push_str(&format!("\n\n{name}: {text}"));
        }
    }
    Offer { name: name.as_str().into(), doc: doc.into(), parameters: parameters.clone() }
}
