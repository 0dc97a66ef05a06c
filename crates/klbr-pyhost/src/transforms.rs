//! Transforms: rewrites in a declared order, each seeing what the one before it made. Owns order, merging and checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::invocation::{Open, Outcome, Recorder};
use crate::worker::{Call, Kind, OnDeath, Worker};

/// One rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `module:function`.
    pub run: Arc<str>,
    /// Its name, by which others stand before or after it.
    pub name: Arc<str>,
    /// Earlier stages run first.
    pub stage: i64,
    /// Within a stage, lower ones run first; then names decide.
    pub order: i64,
    /// How long it may take.
    pub deadline: Duration,
    /// What becomes of the operation when it fails.
    pub on_failure: OnFailure,
}

/// What becomes of an operation whose transform fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The step is left out, which is recorded.
    #[default]
    Skip,
    /// The operation is held.
    Hold,
}

/// The transforms of one epoch.
pub struct Transforms {
    worker: Arc<Worker>,
    families: BTreeMap<Arc<str>, Vec<Step>>,
    recorder: Arc<dyn Recorder>,
}

/// A value that went through its transforms.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformed<V> {
    /// What it is now.
    pub value: V,
    /// The steps that changed it, in order.
    pub changed: Vec<Arc<str>>,
    /// The steps that were left out, each with why.
    pub skipped: Vec<(Arc<str>, Outcome)>,
}

/// An operation that is held, since a step that it cannot do without failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("held: the transform {run} failed: {outcome:?}")]
pub struct Held {
    /// `module:function`.
    pub run: Arc<str>,
    /// How it failed.
    pub outcome: Outcome,
}

impl Transforms {
    /// Orders the steps of each family.
    pub fn new(
        worker: Arc<Worker>,
        families: BTreeMap<Arc<str>, Vec<Step>>,
        recorder: Arc<dyn Recorder>,
    ) -> Self {
        let mut families = families;
        for steps in families.values_mut() {
            steps.sort_by(|a, b| (a.stage, a.order, &a.name).cmp(&(b.stage, b.order, &b.name)));
        }
        Transforms { worker, families, recorder }
    }

    /// The steps of a family, in the order in which they run.
    pub fn order(&self, family: &str) -> &[Step] {
        self.families.get(family).map(Vec::as_slice).unwrap_or_default()
    }

    /// Sends a value through the steps of a family.
    ///
    /// Each step answers with the fields that change. What comes of it must still be a `V` that passes `check`; a step
    /// after which it is not has failed.
    ///
    /// # Errors
    ///
    /// Fails when a step fails that the operation is held for.
    pub async fn apply<V: Serialize + DeserializeOwned + Send>(
        &self,
        family: &str,
        value: V,
        operation: Instant,
        check: impl Fn(&V) -> Result<(), String> + Send + Sync,
    ) -> Result<Transformed<V>, Held> {
        let mut done = Transformed { value, changed: Vec::new(), skipped: Vec::new() };
        let name: Arc<str> = family.into();
        for step in self.order(family) {
            let body = serde_json::to_value(&done.value).expect("a value of a transform is plain data");
            let started = Instant::now();
            let deadline = operation.min(started + step.deadline);
            let open = Open::new(
                &self.recorder,
                (&step.run, Kind::Transform, &name),
                self.worker.epoch(),
                &body,
                deadline - started,
            );
            let call =
                Call { run: step.run.clone(), body: body.clone(), deadline, on_death: OnDeath::AskAgain };
            let outcome = match self.worker.call(call).await {
                Ok(patch) => match patched(body, &patch, &check) {
                    Ok(None) => {
                        open.close(Outcome::Answered, Some(patch));
                        continue;
                    }
                    Ok(Some(value)) => {
                        open.close(Outcome::Answered, Some(patch));
                        done.value = value;
                        done.changed.push(step.run.clone());
                        continue;
                    }
                    Err(reason) => {
                        let outcome = Outcome::Invalid { reason: format!("{}: {reason}", step.run).into() };
                        open.close(outcome.clone(), Some(patch));
                        outcome
                    }
                },
                Err(error) => {
                    let outcome = Outcome::from(&error);
                    open.close(outcome.clone(), None);
                    outcome
                }
            };
            match step.on_failure {
                OnFailure::Skip => done.skipped.push((step.run.clone(), outcome)),
                OnFailure::Hold => return Err(Held { run: step.run.clone(), outcome }),
            }
        }
        Ok(done)
    }
}

/// The value with the fields of `patch`; `None` when it is the same.
fn patched<V: Serialize + DeserializeOwned>(
    body: Value,
    patch: &Value,
    check: &impl Fn(&V) -> Result<(), String>,
) -> Result<Option<V>, String> {
    let Value::Object(fields) = patch else { return Err("a patch is an object".to_owned()) };
    let Value::Object(mut object) = body.clone() else { return Err("the value has no fields".to_owned()) };
    merge(&mut object, fields)?;
    let merged = Value::Object(object);
    if merged == body {
        return Ok(None);
    }
    let value: V = serde_json::from_value(merged.clone()).map_err(|error| error.to_string())?;
    // A field that its type ignores or rewrites would be lost without a word.
    if serde_json::to_value(&value).ok().as_ref() != Some(&merged) {
        return Err("a field does not keep the value that it was given".to_owned());
    }
    check(&value)?;
    Ok(Some(value))
}

fn merge(object: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), String> {
    for (name, new) in patch {
        match object.get_mut(name) {
            None => {
                let known: Vec<&str> = object.keys().map(String::as_str).collect();
                return Err(format!("there is no field {name}; there are {}", known.join(", ")));
            }
            Some(old) => *old = new.clone(),
        }
    }
    Ok(())
}
