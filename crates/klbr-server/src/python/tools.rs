//! Policy in the agent's own hands: it lists, publishes and tries hooks, and asks for their activation.
//!
//! Owns that what the agent wrote itself is put in force by the operator, unless the configuration lets it
//! (`python.self_activation`).

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use klbr_core::action::{Class, FailureKind, Outcome, Resource};
use klbr_core::runtime::tool::{CallContext, Tool};
use klbr_pyhost::{ActivateError, Known, Live, Manifest, Order, Report, Trees};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::SelfActivation;
use crate::daemon::whole_story;

/// What problems call a manifest that the agent sends.
const FILE: &str = "manifest";

/// What the tools share.
#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) live: Live,
    pub(crate) trees: Trees,
    /// The agent's folder, from which the folders that it publishes are named.
    pub(crate) folder: PathBuf,
    pub(crate) self_activation: SelfActivation,
}

/// Lists what is in force.
pub(crate) struct HooksList(pub(crate) Hands);

/// Publishes a folder.
pub(crate) struct HooksPublish(pub(crate) Hands);

/// Tries a manifest.
pub(crate) struct HooksTry(pub(crate) Hands);

/// Puts a manifest in force, or asks the operator to.
pub(crate) struct HooksActivate(pub(crate) Hands);

/// Arguments of [`HooksList`].
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

/// Arguments of [`HooksPublish`].
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Folder {
    /// The folder that modules are imported from, relative to where your cells begin.
    folder: String,
}

/// Arguments of [`HooksTry`] and [`HooksActivate`].
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Text {
    /// The whole activation manifest, TOML.
    manifest: String,
}

#[async_trait]
impl Tool for HooksList {
    type Arguments = Nothing;
    const NAME: &'static str = "hooks_list";
    const DESCRIPTION: &'static str =
        "Lists the hooks in force: what each is bound to, and which of them failed lately.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, _: CallContext, _: Nothing) -> Outcome {
        let live = &self.0.live;
        let in_force = match live.history().await {
            Ok(mut epochs) => epochs.pop(),
            Err(error) => return refused(&error),
        };
        let Some(in_force) = in_force else { return Outcome::confirmed("Nothing was ever put in force.") };
        let mut text = format!("{} is in force.\n", in_force.epoch);
        match live.manifest(&in_force).await {
            Ok(manifest) => {
                for hook in manifest.unwrap_or_default().hooks {
                    text.push_str(&format!(
                        "{} {} {}\n",
                        hook.bound.kind().as_str(),
                        hook.bound.name(),
                        hook.run
                    ));
                }
            }
            Err(error) => text.push_str(&format!("Its manifest cannot be read: {}\n", whole_story(&error))),
        }
        for failure in live.failures() {
            text.push_str(&format!("failed: {} {}: {}\n", failure.name, failure.run, failure.outcome));
        }
        Outcome::confirmed(text)
    }
}

#[async_trait]
impl Tool for HooksPublish {
    type Arguments = Folder;
    const NAME: &'static str = "hooks_publish";
    const DESCRIPTION: &'static str = "Copies a folder of Python under its content's hash, so that a manifest can name it as \
                                       policy.tree. Changes nothing that is in force.";
    const CLASS: Class = Class::Idempotent;

    async fn call(&self, _: CallContext, Folder { folder }: Folder) -> Outcome {
        let (trees, path) = (self.0.trees.clone(), self.0.folder.join(folder));
        let publishing = tokio::task::spawn_blocking(move || trees.publish(&path)).await;
        match publishing {
            Ok(Ok(hash)) => Outcome::confirmed(format!("Published: tree = \"{hash}\"")),
            Ok(Err(error)) => invalid(format!("Not published: {}.", whole_story(&error))),
            Err(_) => invalid("Not published: the host is stopping.".to_owned()),
        }
    }
}

#[async_trait]
impl Tool for HooksTry {
    type Arguments = Text;
    const NAME: &'static str = "hooks_try";
    const DESCRIPTION: &'static str = "Tries an activation manifest: loads its hooks in a process of their own, asks them what \
                                       was asked before, and tells what they would answer differently. Changes nothing.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, _: CallContext, Text { manifest }: Text) -> Outcome {
        let candidate = match Manifest::parse(FILE, &manifest, &Known::default()) {
            Ok(candidate) => candidate,
            Err(error) => return invalid(format!("Refused:\n{error}")),
        };
        match self.0.live.dry_run(FILE, &candidate).await {
            Ok(report) => Outcome::confirmed(told(&report)),
            Err(error) => refused(&error),
        }
    }
}

#[async_trait]
impl Tool for HooksActivate {
    type Arguments = Text;
    const NAME: &'static str = "hooks_activate";
    const DESCRIPTION: &'static str = "Tries an activation manifest, and has it put in force for turns that begin later: by your \
                                       operator, unless you may do that yourself.";
    const CLASS: Class = Class::Reversible;

    fn resource(&self) -> Resource {
        Resource::Named("policy".into())
    }

    async fn call(&self, context: CallContext, Text { manifest: text }: Text) -> Outcome {
        let manifest = match Manifest::parse(FILE, &text, &Known::default()) {
            Ok(manifest) => manifest,
            Err(error) => return invalid(format!("Refused:\n{error}")),
        };
        if self.0.self_activation == SelfActivation::Ask {
            return match self.0.live.dry_run(FILE, &manifest).await {
                Ok(report) => self.0.hold(&manifest, text, &report).await,
                Err(error) => refused(&error),
            };
        }
        let key = format!("action-{}", context.action);
        let order = Order { key, via: None, file: FILE.to_owned(), manifest, expected: None, now: false };
        match self.0.live.activate(order).await {
            Ok((in_force, report)) => Outcome::confirmed(format!(
                "{} is in force for turns that begin later.\n{}",
                in_force.epoch,
                told(&report)
            )),
            Err(error) => refused(&error),
        }
    }
}

impl Hands {
    /// Keeps a candidate where the operator finds it.
    async fn hold(&self, manifest: &Manifest, text: String, report: &Report) -> Outcome {
        let path = self.folder.join("candidates").join(format!("{}.toml", manifest.hash()));
        let file = path.clone();
        let keeping = tokio::task::spawn_blocking(move || keep(&file, &text)).await;
        match keeping {
            Ok(Ok(())) => Outcome::confirmed(format!(
                "It works, and is held for your operator, who puts it in force with: klbr activate {}\n{}",
                path.display(),
                told(report)
            )),
            Ok(Err(error)) => invalid(format!("Not kept for your operator: {error}.")),
            Err(_) => invalid("Not kept for your operator: the host is stopping.".to_owned()),
        }
    }
}

fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    std::fs::write(path, text)
}

/// What came of a trial, for the model.
fn told(report: &Report) -> String {
    let mut text = format!(
        "{} hooks were loaded; of {} questions that were asked before, {} would be answered differently.\n",
        report.hooks.len(),
        report.asked,
        report.differences.len()
    );
    for difference in &report.differences {
        let slot = difference.question.slot().as_str();
        text.push_str(&format!("{slot}: {:?} → {:?}\n", difference.before, difference.after));
    }
    text
}

fn refused(error: &ActivateError) -> Outcome {
    invalid(format!("Refused: {}", whole_story(error)))
}

fn invalid(text: String) -> Outcome {
    Outcome::failed(FailureKind::Refused, text)
}
