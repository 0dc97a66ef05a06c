//! The hooks of one epoch that answer the core: slots with an owner, and slots whose family of rewrites owns them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::policy::{Answer, HookFailure, Question, Slot};
use tokio::time::Instant;

use crate::invocation::{Outcome, Recorder};
use crate::manifest::Manifest;
use crate::slots::{FAR, HookPolicy};
use crate::transforms::{Held, Transforms};
use crate::worker::Worker;

/// The hooks of one epoch, over its worker.
pub(crate) struct Hooks {
    slots: HookPolicy,
    transforms: Transforms,
}

impl Hooks {
    /// The hooks that a manifest binds.
    pub(crate) fn new(worker: Arc<Worker>, manifest: &Manifest, recorder: Arc<dyn Recorder>) -> Self {
        Hooks {
            slots: HookPolicy::new(worker.clone(), manifest.slots(), recorder.clone()),
            transforms: Transforms::new(worker, manifest.transforms(), recorder),
        }
    }

    pub(crate) fn worker(&self) -> &Arc<Worker> {
        self.slots.worker()
    }

    /// The hooks that own a slot, in the order in which they are asked.
    pub(crate) fn owners(&self, slot: Slot) -> Vec<Arc<str>> {
        let owner = self.slots.bindings().find(|(bound, _)| *bound == slot);
        let steps = self.transforms.order(slot).iter().map(|step| step.run.clone());
        owner.map(|(_, binding)| binding.run.clone()).into_iter().chain(steps).collect()
    }

    /// Answers a question of a slot that these hooks own.
    ///
    /// # Errors
    ///
    /// Fails as the hook failed; a rewrite, only when the operation is held for a step.
    pub(crate) async fn decide(&self, question: Question) -> Result<Answer, HookFailure> {
        if self.transforms.order(question.slot()).is_empty() {
            return self.slots.decide_by(question, Instant::now() + FAR).await;
        }
        match self.transforms.apply(&question, Instant::now() + FAR).await {
            Ok(done) => Ok(Answer::Text(Some(done.text))),
            Err(held) => Err(HookFailure::Held { reason: held.to_string().into() }),
        }
    }

    /// As [`Hooks::decide`], but a step that is left out has failed.
    pub(crate) async fn try_on(&self, question: Question) -> Result<Answer, HookFailure> {
        if self.transforms.order(question.slot()).is_empty() {
            return self.slots.decide_by(question, Instant::now() + FAR).await;
        }
        let done = self.transforms.apply(&question, Instant::now() + FAR).await;
        let failed = match done {
            Ok(done) => match done.skipped.into_iter().next() {
                None => return Ok(Answer::Text(Some(done.text))),
                Some((run, outcome)) => Held { run, outcome },
            },
            Err(held) => held,
        };
        Err(match &failed.outcome {
            Outcome::Deadline => HookFailure::Deadline,
            Outcome::Invalid { .. } => HookFailure::Invalid { reason: failed.to_string().into() },
            Outcome::Answered | Outcome::Raised { .. } | Outcome::Unavailable { .. } | Outcome::Abandoned => {
                HookFailure::Unavailable { reason: failed.to_string().into() }
            }
        })
    }
}

/// How long each slot may take that a manifest binds: its owner, or all the steps of its family.
pub(crate) fn budgets(manifest: &Manifest) -> BTreeMap<Slot, Duration> {
    let mut budgets: BTreeMap<Slot, Duration> =
        manifest.slots().into_iter().map(|(slot, binding)| (slot, binding.deadline)).collect();
    for (family, steps) in manifest.transforms() {
        budgets.insert(family, steps.iter().map(|step| step.deadline).sum());
    }
    budgets
}
