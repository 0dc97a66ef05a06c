//! One activation at work: its manifest, its worker, its hooks. Made without waiting for anything; begun when it is
//! first needed.

use std::sync::Arc;

use klbr_core::ids::Epoch;
use klbr_core::policy::{Answer, HookFailure, Question};
use tokio::sync::OnceCell;

use crate::activation::Trial;
use crate::hooks::Hooks;
use crate::invocation::Recorder;
use crate::manifest::Manifest;
use crate::worker::{Watch, Worker};

/// One activation.
pub(crate) struct AtWork {
    epoch: Epoch,
    /// What names its manifest; with none, it owns nothing.
    name: Option<Arc<str>>,
    built: OnceCell<Built>,
}

/// A manifest with its hooks.
pub(crate) struct Built {
    pub(crate) manifest: Arc<Manifest>,
    /// `None` when it binds none.
    pub(crate) hooks: Option<Hooks>,
}

impl Built {
    /// Starts the worker of a manifest that binds hooks.
    pub(crate) fn new(
        trial: &Trial,
        epoch: Epoch,
        manifest: Arc<Manifest>,
        watch: Arc<dyn Watch>,
        recorder: Arc<dyn Recorder>,
    ) -> Self {
        let has_hooks = !manifest.hooks.is_empty();
        let hooks =
            has_hooks.then(|| Hooks::new(trial.worker(&manifest, epoch.0, watch), &manifest, recorder));
        Built { manifest, hooks }
    }
}

impl AtWork {
    pub(crate) fn new(epoch: Epoch, name: Option<Arc<str>>) -> Self {
        AtWork { epoch, name, built: OnceCell::new() }
    }

    /// The epoch of its activation.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// Takes hooks that were made for it; answers with their worker.
    pub(crate) fn begin(&self, built: Built) -> Option<&Arc<Worker>> {
        // A second one would be dropped: it is only ever made for a fresh one.
        let _ = self.built.set(built);
        self.worker()
    }

    /// Makes its hooks, if they are not there yet and it has any.
    ///
    /// # Errors
    ///
    /// Fails as the making failed; the next question tries again.
    pub(crate) async fn begin_with(
        &self,
        build: impl AsyncFnOnce(Arc<str>) -> Result<Built, Arc<str>>,
    ) -> Result<(), Arc<str>> {
        let Some(name) = &self.name else { return Ok(()) };
        let name = name.clone();
        self.built.get_or_try_init(async || build(name).await).await.map(drop)
    }

    /// What it is made of, once it has begun and if it could.
    pub(crate) fn built(&self) -> Option<&Built> {
        self.built.get()
    }

    /// Its worker, once it has begun.
    pub(crate) fn worker(&self) -> Option<&Arc<Worker>> {
        self.built()?.hooks.as_ref().map(Hooks::worker)
    }

    /// Answers a question, once it has begun.
    pub(crate) async fn decide(&self, question: Question) -> Result<Answer, HookFailure> {
        match self.built().and_then(|built| built.hooks.as_ref()) {
            Some(hooks) => hooks.decide(question).await,
            None => Err(HookFailure::Unavailable { reason: "nobody owns the slot".into() }),
        }
    }
}
