//! The proof of a candidate before it is in force: its files, its hooks in a throwaway worker, its answers to what was
//! asked before. Changes nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::policy::{Answer, HookFailure, Question};
use klbr_core::runtime::policy::Policy as _;
use tokio::time::Instant;

use crate::host::HostCalls;
use crate::invocation::{Invocation, Recorder};
use crate::manifest::{Affected, Manifest, ManifestError};
use crate::process::Program;
use crate::protocol::{FailedHook, LoadedHook};
use crate::publish::Trees;
use crate::slots::HookPolicy;
use crate::worker::{CallError, Change, Patience, Spec, State, Watch, Worker};

/// What a candidate is tried with.
#[derive(Clone)]
pub struct Trial {
    /// How Python is started.
    pub program: Program,
    /// How patient the host is.
    pub patience: Patience,
    /// The home's published trees.
    pub trees: Trees,
    /// What hooks may read.
    pub host: Arc<dyn HostCalls>,
}

/// A question that was asked before, and what was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The question.
    pub question: Question,
    /// The answer then.
    pub answer: Answer,
}

/// What an activation would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What it restarts or remakes.
    pub affected: BTreeSet<Affected>,
    /// The hooks as they were found.
    pub hooks: Vec<LoadedHook>,
    /// How many recorded questions were asked.
    pub asked: usize,
    /// Those that are answered differently.
    pub differences: Vec<Difference>,
}

/// A question that the candidate answers differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The question.
    pub question: Question,
    /// What was decided then.
    pub before: Answer,
    /// What the candidate says.
    pub after: Result<Answer, HookFailure>,
}

/// Why a candidate is refused. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The manifest or a tree is wrong.
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    /// Hooks could not be loaded.
    #[error("{}", .0.iter().map(|hook| format!("{}: {}", hook.run, hook.error)).collect::<Vec<_>>().join("\n"))]
    Hooks(Vec<FailedHook>),
    /// Its worker did not become ready.
    #[error("the hook worker did not start: {reason}{}", if .stderr.is_empty() { String::new() } else { format!("\n{stderr}") })]
    Worker {
        /// Why.
        reason: String,
        /// The end of what it wrote to standard error.
        stderr: Arc<str>,
    },
    /// A required hook gives no usable answer.
    #[error("{run} is required, and failed when it was tried: {failure}")]
    Required {
        /// `module:function`.
        run: Arc<str>,
        /// How.
        failure: HookFailure,
    },
}

impl Trial {
    /// Tries a candidate against what is in force. `recorded` is asked of the slots that it binds; each required hook is
    /// asked at least once, with a sample if nothing was recorded.
    ///
    /// # Errors
    ///
    /// Fails with everything that was found wrong at the first step that found something.
    pub async fn run(
        &self,
        file: &str,
        candidate: &Manifest,
        before: &Manifest,
        recorded: &[Recorded],
    ) -> Result<Report, Refused> {
        candidate.check(file, &self.trees)?;
        let affected = candidate.effect_after(before);
        let mut report = Report { affected, hooks: Vec::new(), asked: 0, differences: Vec::new() };
        if candidate.hooks.is_empty() {
            return Ok(report);
        }
        let last_words: Arc<std::sync::Mutex<Arc<str>>> = Arc::new(std::sync::Mutex::new("".into()));
        let heard = Arc::clone(&last_words);
        let watch: Arc<dyn Watch> = Arc::new(move |_, change| {
            if let (Change::Died { stderr, .. }, Ok(mut heard)) = (change, heard.lock()) {
                *heard = stderr;
            }
        });
        let worker = Arc::new(Worker::start(self.spec(candidate, 0), Arc::clone(&self.host), watch));
        let until = Instant::now() + self.patience.start;
        let loaded = worker.ready(until).await.map_err(|error| {
            let reason = match (error, worker.state()) {
                (CallError::Deadline, State::Starting) => {
                    format!("an import took longer than {:?}", self.patience.start)
                }
                (_, State::BackingOff { reason, .. }) => reason.to_string(),
                (error, _) => error.to_string(),
            };
            Refused::Worker {
                reason,
                stderr: last_words.lock().map(|words| words.clone()).unwrap_or_default(),
            }
        })?;
        if !loaded.failed.is_empty() {
            return Err(Refused::Hooks(loaded.failed.clone()));
        }
        report.hooks = loaded.hooks.clone();
        // A dry run leaves no record: nothing was decided.
        let quiet: Arc<dyn Recorder> = Arc::new(|_: Invocation| {});
        let policy = HookPolicy::new(worker, candidate.slots(), quiet);
        self.ask(&policy, recorded, &mut report).await?;
        Ok(report)
    }

    async fn ask(
        &self,
        policy: &HookPolicy,
        recorded: &[Recorded],
        report: &mut Report,
    ) -> Result<(), Refused> {
        let bound: Vec<_> = policy.bindings().map(|(slot, binding)| (slot, binding.run.clone())).collect();
        for (slot, run) in bound {
            let of_slot: Vec<&Recorded> = recorded.iter().filter(|one| one.question.slot() == slot).collect();
            let sample = sample(slot);
            if of_slot.is_empty() && slot.is_required() {
                policy
                    .decide(TRIAL, sample)
                    .await
                    .map_err(|failure| Refused::Required { run: run.clone(), failure })?;
            }
            for one in of_slot {
                let after = policy.decide(TRIAL, one.question.clone()).await;
                report.asked += 1;
                if let (Err(failure), true) = (&after, slot.is_required()) {
                    return Err(Refused::Required { run, failure: failure.clone() });
                }
                if after.as_ref() != Ok(&one.answer) {
                    let (question, before) = (one.question.clone(), one.answer.clone());
                    report.differences.push(Difference { question, before, after });
                }
            }
        }
        Ok(())
    }

    /// The worker of a manifest.
    pub(crate) fn spec(&self, manifest: &Manifest, epoch: u64) -> Spec {
        let paths: Vec<PathBuf> = manifest.paths(&self.trees);
        let (program, patience) = (self.program.clone(), self.patience);
        Spec { program, epoch, paths, hooks: manifest.entries(), patience }
    }

    /// How long a new worker may take to be ready.
    pub(crate) fn start(&self) -> Duration {
        self.patience.start
    }
}

/// The epoch of a candidate's worker, which is none yet.
const TRIAL: klbr_core::ids::Epoch = klbr_core::ids::Epoch(0);

/// A question of a slot, for a first call.
pub(crate) fn sample(slot: klbr_core::policy::Slot) -> Question {
    use klbr_core::event::{Bucket, Priority, SourceKind};
    use klbr_core::ids::{EventId, TurnId};
    use klbr_core::policy::{Candidate, NudgeKind, Review, Slot};
    let review = || Review {
        action: "1.1.1".parse().expect("an action's id has three numbers"),
        name: "sample".into(),
        arguments: "{}".into(),
        hash: klbr_core::hash::Hash::of(b"sample{}").to_string().into(),
    };
    match slot {
        Slot::EventPriority => Question::EventPriority {
            event: EventId(1),
            kind: SourceKind::Channel,
            instance: "sample".into(),
            priority: Priority::Ambient,
        },
        Slot::EventAccept => Question::EventAccept {
            event: EventId(1),
            kind: SourceKind::Channel,
            instance: "sample".into(),
            external_id: "msg:1".into(),
            conversation: None,
            priority: Priority::Ambient,
            bytes: 6,
        },
        Slot::FrameRender => Question::FrameRender { text: "<nudge>\nsample\n</nudge>".into() },
        Slot::ContextBlocks => Question::ContextBlocks { text: "sample".into() },
        Slot::Limits => Question::Limits { turn: TurnId(1), steps: 50, limit: 50 },
        Slot::ResultShape => {
            Question::ResultShape { action: review().action, name: "sample".into(), text: "sample".into() }
        }
        Slot::Wake => Question::Wake { waiting: 1, configured: true },
        Slot::BatchDelay => Question::BatchDelay { waiting: 1, configured_ms: 8000 },
        Slot::Age => Question::Age {
            item: "msg:1".into(),
            instance: "sample".into(),
            bucket: Bucket::Dm,
            shown_ms: 600_000,
        },
        Slot::Idle => Question::Idle { yields: 1 },
        Slot::Nudge => Question::Nudge { kind: NudgeKind::Idle, text: "sample".into() },
        Slot::Plan => Question::Plan { turn: TurnId(1), model: "sample".into(), effort: None },
        Slot::ActionReview => Question::ActionReview(review()),
        Slot::DeliveryReview => Question::DeliveryReview(review()),
        Slot::DeliveryFormat => Question::DeliveryFormat(review()),
        Slot::CompactWhen => Question::CompactWhen { used: 1, threshold: 2 },
        Slot::CompactPrompt => Question::CompactPrompt { text: "sample".into() },
        Slot::CompactKeep => Question::CompactKeep { messages: 9, turns: 1 },
        Slot::ContextSelect => Question::ContextSelect {
            events: vec![Candidate {
                event: EventId(1),
                kind: SourceKind::Channel,
                instance: "sample".into(),
                conversation: Some("d1".into()),
                priority: Priority::Ambient,
                waited_ms: 1,
                bytes: 6,
            }],
        },
        Slot::DeliveryTarget => {
            Question::DeliveryTarget { conversations: vec!["d1".into()], target: Some("d1".into()) }
        }
    }
}
