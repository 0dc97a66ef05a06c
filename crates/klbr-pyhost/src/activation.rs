//! The proof of a candidate before it is in force: its files, its hooks in a throwaway worker, its answers to what was
//! asked before. Changes nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use klbr_core::policy::{Answer, Asked, HookFailure, Question, Slot};
use tokio::time::Instant;

use crate::hooks::{Hooks, budgets};
use crate::host::HostCalls;
use crate::invocation::{Invocation, Recorder};
use crate::manifest::{Affected, Manifest, ManifestError, Problem};
use crate::process::Program;
use crate::protocol::{FailedHook, LoadedHook};
use crate::publish::Trees;
use crate::settings::WithSettings;
use crate::worker::{Call, CallError, Change, OnDeath, Patience, Spec, State, Watch, Worker};

/// Looks up a variable that a manifest names.
///
/// # Errors
///
/// Fails with why its hooks cannot have it.
pub type Variables = Arc<dyn Fn(&str) -> Result<OsString, &'static str> + Send + Sync>;

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
    /// The variables that hooks may ask for.
    pub variables: Variables,
}

/// What an activation would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What it restarts or remakes.
    pub affected: BTreeSet<Affected>,
    /// The hooks as they were found.
    pub hooks: Vec<LoadedHook>,
    /// How many questions were asked that had been asked before.
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
    pub after: Answer,
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
    /// A hook gives no usable answer.
    #[error("{run} failed when it was tried on {slot}: {failure}", slot = .question.slot().as_str())]
    Failed {
        /// `module:function`.
        run: Arc<str>,
        /// What it was asked.
        question: Box<Question>,
        /// How it failed.
        failure: HookFailure,
    },
}

impl Trial {
    /// Tries a candidate against what is in force. `recorded` is asked of the slots that it binds; each of them is
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
        recorded: &[Asked],
    ) -> Result<Report, Refused> {
        candidate.check(file, &self.trees)?;
        self.check_variables(file, candidate)?;
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
        let worker = self.worker(candidate, 0, watch);
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
        let hooks = Hooks::new(worker, candidate, quiet);
        for slot in budgets(candidate).into_keys() {
            ask(&hooks, slot, recorded, &mut report).await?;
        }
        Ok(report)
    }

    fn check_variables(&self, file: &str, candidate: &Manifest) -> Result<(), ManifestError> {
        let problem = |name: &Arc<str>| {
            let why = (self.variables)(name).err()?;
            let (message, hint) = (
                format!("the variable {name} {why}"),
                "set it where the agent's host is started, or leave it out",
            );
            Some(Problem { file: file.into(), line: 0, message, hint: hint.into() })
        };
        ManifestError::unless_empty(candidate.environment.iter().filter_map(problem).collect())
    }

    /// Starts the worker of a manifest; nobody waits for it.
    pub(crate) fn worker(&self, manifest: &Manifest, epoch: u64, watch: Arc<dyn Watch>) -> Arc<Worker> {
        let mut program = self.program.clone();
        let own = manifest.environment.iter().filter_map(|name| {
            // Without one that is gone by now, its hooks say so themselves.
            Some((name.to_string().into(), (self.variables)(name).ok()?))
        });
        program.environment.extend(own);
        let paths: Vec<PathBuf> = manifest.paths(&self.trees);
        let spec = Spec { program, epoch, paths, hooks: manifest.entries(), patience: self.patience };
        let host = WithSettings::new(Arc::clone(&self.host), manifest.settings.clone());
        Arc::new(Worker::start(spec, Arc::new(host), watch))
    }

    /// Waits until a worker is ready, and calls each hook that owns a required slot once.
    ///
    /// # Errors
    ///
    /// Fails when it is not ready in time, or one of its hooks does not answer.
    pub(crate) async fn warm(&self, worker: &Worker, manifest: &Manifest) -> Result<(), String> {
        let until = Instant::now() + self.patience.start;
        let loaded = worker.ready(until).await.map_err(|error| error.to_string())?;
        if let Some(failed) = loaded.failed.first() {
            return Err(format!("{}: {}", failed.run, failed.error));
        }
        for (slot, binding) in manifest.slots().into_iter().filter(|(slot, _)| slot.is_required()) {
            let body = serde_json::to_value(sample(slot)).expect("a question has only string keys");
            let run = binding.run;
            let call = Call { run: run.clone(), body, deadline: until, on_death: OnDeath::Fail };
            worker.call(call).await.map_err(|error| format!("{run}: {error}"))?;
        }
        Ok(())
    }
}

/// Asks one slot what was asked before, or a sample.
async fn ask(hooks: &Hooks, slot: Slot, recorded: &[Asked], report: &mut Report) -> Result<(), Refused> {
    let failed = |question: &Question, failure| Refused::Failed {
        run: hooks.owners(slot).join(", ").into(),
        question: Box::new(question.clone()),
        failure,
    };
    let of_slot: Vec<&Asked> = recorded.iter().filter(|one| one.question.slot() == slot).collect();
    if of_slot.is_empty() {
        let sample = sample(slot);
        hooks.try_on(sample.clone()).await.map_err(|failure| failed(&sample, failure))?;
    }
    for one in of_slot {
        let after =
            hooks.try_on(one.question.clone()).await.map_err(|failure| failed(&one.question, failure))?;
        report.asked += 1;
        if after != one.answer {
            let (question, before) = (one.question.clone(), one.answer.clone());
            report.differences.push(Difference { question, before, after });
        }
    }
    Ok(())
}

/// A question of a slot, for a first call.
fn sample(slot: Slot) -> Question {
    use klbr_core::event::{Bucket, Priority, SourceKind};
    use klbr_core::ids::{EventId, TurnId};
    use klbr_core::policy::{Candidate, NudgeKind, Review};
    let action = "1.1.1".parse().expect("an action's id has three numbers");
    let review = || Review::new(action, "local_send".into(), r#"{"content":"sample"}"#.into());
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
        Slot::ResultShape => Question::ResultShape { action, name: "sample".into(), text: "sample".into() },
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
