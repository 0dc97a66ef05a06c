//! Transforms: rewrites in a declared order, each seeing what the one before it made, behind the slot of their family.
//! Owns order, merging and checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::policy::{Answer, Question, Slot};
use serde_json::Value;
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

impl Step {
    /// Which of two runs first.
    pub(crate) fn running_order(one: &Step, other: &Step) -> std::cmp::Ordering {
        let place = |step: &Step| (step.stage, step.order);
        place(one).cmp(&place(other)).then_with(|| one.name.cmp(&other.name))
    }
}

/// What becomes of an operation whose transform fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The step is left out, which is recorded.
    #[default]
    Skip,
    /// The operation is held. Only a delivery can be: a frame, a prefix or a result that waits would hold the agent.
    Hold,
}

/// The transforms of one epoch.
pub struct Transforms {
    worker: Arc<Worker>,
    families: BTreeMap<Slot, Vec<Step>>,
    recorder: Arc<dyn Recorder>,
}

/// A text that went through its transforms.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformed {
    /// What it is now.
    pub text: Arc<str>,
    /// The steps that changed it, in order.
    pub changed: Vec<Arc<str>>,
    /// The steps that were left out, each with why.
    pub skipped: Vec<(Arc<str>, Outcome)>,
}

/// An operation that is held, since a step that it cannot do without failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transform {run} failed: {outcome}")]
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
        mut families: BTreeMap<Slot, Vec<Step>>,
        recorder: Arc<dyn Recorder>,
    ) -> Self {
        for steps in families.values_mut() {
            steps.sort_by(Step::running_order);
        }
        Transforms { worker, families, recorder }
    }

    /// The steps of a family, in the order in which they run.
    pub fn order(&self, family: Slot) -> &[Step] {
        self.families.get(&family).map(Vec::as_slice).unwrap_or_default()
    }

    /// Sends a question's text through the steps of its family.
    ///
    /// Each step is asked the question about what the one before it made, and answers with the field that changes. A
    /// step whose text is no answer to the question as it was first asked has failed.
    ///
    /// # Errors
    ///
    /// Fails when a step fails that the operation is held for.
    pub async fn apply(&self, question: &Question, operation: Instant) -> Result<Transformed, Held> {
        let family = question.slot();
        let name: Arc<str> = family.as_str().into();
        let text = question.text().cloned().unwrap_or_default();
        let mut done = Transformed { text, changed: Vec::new(), skipped: Vec::new() };
        for step in self.order(family) {
            let body = serde_json::to_value(question.about(done.text.clone()))
                .expect("a question has only string keys");
            let started = Instant::now();
            let deadline = operation.min(started + step.deadline);
            let open = Open::new(
                &self.recorder,
                (&step.run, Kind::Transform, &name),
                self.worker.epoch(),
                &body,
                deadline - started,
            );
            let call = Call { run: step.run.clone(), body, deadline, on_death: OnDeath::AskAgain };
            let outcome = match self.worker.call(call).await {
                Ok(patch) => match patched(question, &patch) {
                    Ok(text) => {
                        open.close(Outcome::Answered, Some(patch));
                        if let Some(text) = text.filter(|text| *text != done.text) {
                            done.text = text;
                            done.changed.push(step.run.clone());
                        }
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

/// The field of a question that a rewrite words anew.
fn field(family: Slot) -> &'static str {
    if family == Slot::DeliveryFormat { "arguments" } else { "text" }
}

/// The text that a patch makes of a question's; `None` when it leaves it alone.
fn patched(question: &Question, patch: &Value) -> Result<Option<Arc<str>>, String> {
    let field = field(question.slot());
    let Value::Object(fields) = patch else { return Err("a patch is an object".to_owned()) };
    if let Some(other) = fields.keys().find(|name| *name != field) {
        return Err(format!("{other} is not the step's to change; {field} is"));
    }
    let Some(new) = fields.get(field) else { return Ok(None) };
    let Value::String(new) = new else { return Err(format!("{field} is a text")) };
    let text: Arc<str> = new.as_str().into();
    question.check(&Answer::Text(Some(text.clone())))?;
    Ok(Some(text))
}
