//! Policy in Python: what is in force, what a candidate would change, and the ways forth and back.
//!
//! What only asks never waits for Python; neither does the way back.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use klbr_core::runtime::AgentHandle;
use klbr_pyhost::{
    ActivateError, Bound, FailedHook, HookError, Invocation, Known, Loaded, Manifest, ManifestError,
    OnFailure, Order, Problem, Refused, State,
};

use super::error::ApiError;
use super::extract::{Body, Caller, Living, Named};
use crate::api::Place;
use crate::api::policy::{
    Activated, Candidate, DryRun, Failure, Hook, Policy, PolicyLog, Process, PythonStatus, RollBack, Trial,
};
use crate::daemon::whole_story;
use crate::host::Hosted;
use crate::python::Python;

pub(super) async fn policy(Named(hosted): Named, Living(agent): Living) -> Result<Json<Policy>, ApiError> {
    let in_force = agent.epochs().await?.pop().ok_or_else(ApiError::stopping)?;
    let Some(python) = hosted.python.get() else {
        let (hooks, at_work, failures) = (Vec::new(), Vec::new(), Vec::new());
        let (python, worker, unreadable) = (PythonStatus::Off, None, None);
        return Ok(Json(Policy { in_force, hooks, unreadable, python, worker, at_work, failures }));
    };
    let live = &python.live;
    let worker = live.worker();
    let state = worker.as_ref().map(|worker| worker.state());
    let (hooks, unreadable) = match live.manifest(&in_force).await {
        Ok(manifest) => (hooks(&manifest.unwrap_or_default(), &agent, state.as_ref()).await?, None),
        Err(error) => (Vec::new(), Some(whole_story(&error))),
    };
    Ok(Json(Policy {
        in_force,
        hooks,
        unreadable,
        python: python.status.clone(),
        worker: state.as_ref().map(process),
        at_work: live.at_work(),
        failures: live.failures().iter().map(failure).collect(),
    }))
}

/// The hooks of a manifest, with what their process found.
async fn hooks(
    manifest: &Manifest,
    agent: &AgentHandle,
    state: Option<&State>,
) -> Result<Vec<Hook>, ApiError> {
    let cursors = agent.observers().await?;
    let transforms = manifest.transforms();
    let loaded: Option<&Loaded> = match state {
        Some(State::Ready(loaded)) => Some(loaded),
        Some(State::Starting | State::BackingOff { .. } | State::Stopped) | None => None,
    };
    let hook = |hook: &klbr_pyhost::Hook| {
        let (order, on_failure, cursor) = match &hook.bound {
            Bound::Slot { slot } if slot.is_required() => (None, "held", None),
            Bound::Slot { .. } => (None, "default", None),
            Bound::Transform { family, name, on_failure, .. } => {
                let mut steps = transforms.get(family).into_iter().flatten();
                let place = steps.position(|step| step.name == *name).map(|place| place + 1);
                let word = match on_failure {
                    OnFailure::Skip => "skipped",
                    OnFailure::Hold => "held",
                };
                (place, word, None)
            }
            Bound::Observer { name, .. } => (None, "retried", cursors.get(name).map(|seq| seq.0)),
        };
        let found = loaded.and_then(|loaded| loaded.hooks.iter().find(|found| found.run == hook.run));
        let failed = loaded.and_then(|loaded| loaded.failed.iter().find(|failed| failed.run == hook.run));
        Hook {
            kind: hook.bound.kind().as_str().to_owned(),
            name: hook.bound.name(),
            run: hook.run.clone(),
            order,
            deadline_ms: hook.deadline.as_millis() as u64,
            on_failure: on_failure.to_owned(),
            cursor,
            found: found.cloned(),
            problem: failed.map(|failed| failed.error.to_string()),
        }
    };
    Ok(manifest.hooks.iter().map(hook).collect())
}

/// How a process is doing.
pub(super) fn process(state: &State) -> Process {
    match state {
        State::Starting => Process::Starting,
        State::Ready(loaded) => Process::Ready {
            pid: loaded.pid,
            version: loaded.python.clone(),
            took_ms: loaded.took.as_millis() as u64,
        },
        State::BackingOff { reason, until } => Process::BackingOff {
            reason: reason.clone(),
            in_ms: until.saturating_duration_since(tokio::time::Instant::now()).as_millis() as u64,
        },
        State::Stopped => Process::Stopped,
    }
}

fn failure(invocation: &Invocation) -> Failure {
    Failure {
        run: invocation.run.clone(),
        name: invocation.name.clone(),
        epoch: klbr_core::ids::Epoch(invocation.epoch),
        how: invocation.outcome.to_string(),
        elapsed_ms: invocation.elapsed.as_millis() as u64,
        deadline_ms: invocation.deadline.as_millis() as u64,
    }
}

pub(super) async fn log(Living(agent): Living) -> Result<Json<PolicyLog>, ApiError> {
    Ok(Json(PolicyLog { epochs: agent.epochs().await? }))
}

pub(super) async fn activate(
    Named(hosted): Named,
    Living(_): Living,
    caller: Caller,
    Body(candidate): Body<Candidate>,
) -> Result<Json<Activated>, ApiError> {
    let Candidate { file, text, expected, now } = candidate;
    let manifest = read(&file, &text)?;
    let live = &python(&hosted, &manifest)?.live;
    let Caller { key, via } = caller;
    let order = Order { key, via: Some(via), file, manifest, expected, now };
    let (in_force, report) = live.activate(order).await?;
    Ok(Json(Activated { in_force, trial: report.into() }))
}

pub(super) async fn dry_run(
    Named(hosted): Named,
    Living(_): Living,
    Body(DryRun { file, text }): Body<DryRun>,
) -> Result<Json<Trial>, ApiError> {
    let manifest = read(&file, &text)?;
    let report = python(&hosted, &manifest)?.live.dry_run(&file, &manifest).await?;
    Ok(Json(report.into()))
}

/// Open also where Python is switched off.
pub(super) async fn roll_back(
    Living(agent): Living,
    caller: Caller,
    Body(RollBack { to }): Body<RollBack>,
) -> Result<Json<Activated>, ApiError> {
    let in_force = klbr_pyhost::roll_back(&agent, &caller.key, Some(caller.via), to).await?;
    let nothing =
        Trial { affected: Default::default(), hooks: Vec::new(), asked: 0, differences: Vec::new() };
    Ok(Json(Activated { in_force, trial: nothing }))
}

fn read(file: &str, text: &str) -> Result<Manifest, ApiError> {
    Ok(Manifest::parse(file, text, &Known::default())?)
}

/// Python, if it may be used for what a manifest binds.
fn python<'h>(hosted: &'h Hosted, manifest: &Manifest) -> Result<&'h Python, ApiError> {
    let python = hosted.python.get().ok_or_else(off)?;
    match &python.status {
        PythonStatus::Unasked { .. } if !manifest.hooks.is_empty() => Err(off()),
        PythonStatus::On { .. } | PythonStatus::Unasked { .. } | PythonStatus::Off => Ok(python),
    }
}

fn off() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "python_off", "policy in Python is off").hint(
        "set python.enabled = true in klbr.toml, or KLBR_PYTHON_ENABLED=true, and start the daemon again",
    )
}

impl From<ManifestError> for ApiError {
    fn from(error: ManifestError) -> Self {
        let place = |problem: &Problem| Place {
            file: problem.file.to_string(),
            line: problem.line as u32,
            message: problem.message.clone(),
            hint: Some(problem.hint.clone()),
        };
        let message = match error.problems.len() {
            1 => "the manifest is refused; nothing was changed".to_owned(),
            n => format!("the manifest is refused for {n} reasons; nothing was changed"),
        };
        ApiError::bad_request("manifest_refused", message).at(error.problems.iter().map(place).collect())
    }
}

impl From<ActivateError> for ApiError {
    fn from(error: ActivateError) -> Self {
        let message = whole_story(&error);
        match error {
            ActivateError::Refused(Refused::Manifest(error)) => error.into(),
            ActivateError::Refused(Refused::Hooks(failed)) => {
                let message = "hooks could not be loaded; nothing was changed";
                let places = failed.iter().map(|FailedHook { run, error }| place(run, error));
                ApiError::bad_request("hooks_refused", message).at(places.collect())
            }
            ActivateError::Refused(Refused::Worker { .. } | Refused::Failed { .. }) => {
                ApiError::bad_request("policy_refused", message)
                    .hint("nothing was changed; correct the code, publish it again, and activate that")
            }
            ActivateError::Superseded { .. } => ApiError::new(StatusCode::CONFLICT, "superseded", message)
                .hint("somebody else was faster: look at what is in force, then try again"),
            ActivateError::NoWayBack(_) => {
                ApiError::bad_request("no_way_back", message).hint("the log says what was in force before")
            }
            ActivateError::NotAdmitted(error) => error.into(),
            ActivateError::NotKept(_) | ActivateError::NotReady(_) => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_activated", message)
                    .hint("nothing was changed; the daemon's log says more")
            }
            ActivateError::NoAgent => ApiError::stopping(),
        }
    }
}

fn place(run: &Arc<str>, error: &HookError) -> Place {
    Place {
        file: error.file.as_deref().unwrap_or(run).to_owned(),
        line: error.line.unwrap_or(0),
        message: format!("{run}: {}: {}", error.exception, error.message),
        hint: None,
    }
}
