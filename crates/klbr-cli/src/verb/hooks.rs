//! `klbr hooks`, `klbr activate`, `klbr rollback`: policy in Python, from the first draft to the way back.

mod publish;
mod test;
mod text;

use std::path::Path;

use klbr_core::ids::Epoch;
use klbr_pyhost::Manifests;
use klbr_server::api::path;
use klbr_server::api::policy::{Activated, Candidate, DryRun, Policy, PolicyLog, RollBack, Trial};
use serde_json::json;

use crate::args::{Activate, Hooks, Rollback};
use crate::client::fresh_key;
use crate::context::{Context, Reach};
use crate::error::{CommandError, Outcome};

pub(super) use text::process;

/// Lists, tries, publishes, activates, goes back.
pub(super) async fn run(context: &Context, hooks: &Hooks) -> Outcome {
    match hooks {
        Hooks::List => list(context).await,
        Hooks::Test { run, tree, bound } => test::run(context, run, tree, bound.as_deref()).await,
        Hooks::Publish { folder } => publish::run(context, folder),
        Hooks::DryRun { file } => dry_run(context, file).await,
        Hooks::Activate(order) => activate(context, order).await,
        Hooks::Rollback(order) => roll_back(context, order).await,
        Hooks::Log => log(context).await,
    }
}

async fn list(context: &Context) -> Outcome {
    match context.reach().await? {
        Reach::Daemon(client) => {
            let policy: Policy = client.get(path::POLICY, &()).await?;
            context.print(&policy, || text::policy(&policy))
        }
        Reach::Kept(offline) => {
            let Some(in_force) = offline.agent.epochs().pop() else { return Ok(()) };
            let kept = in_force.manifest.as_deref().map(|name| Manifests::new(&context.home).read(name));
            let manifest = kept.transpose().map_err(|error| {
                CommandError::config(
                    "the manifest in force cannot be read",
                    "klbr rollback goes back to another one",
                )
                .because(error)
            })?;
            let manifest = manifest.unwrap_or_default();
            context.print(&json!({ "in_force": in_force, "manifest": manifest }), || {
                format!("{}{}", text::in_force(&in_force), text::bound(&manifest))
            })
        }
    }
}

async fn log(context: &Context) -> Outcome {
    let log = match context.reach().await? {
        Reach::Daemon(client) => client.get(path::POLICY_LOG, &()).await?,
        Reach::Kept(offline) => PolicyLog { epochs: offline.agent.epochs() },
    };
    context.print(&log, || text::log(&log))
}

async fn dry_run(context: &Context, file: &Path) -> Outcome {
    let DryRun { file, text } = read(file)?;
    let candidate = DryRun { file, text };
    let trial: Trial = context
        .through_api(async |client| {
            Ok(client.post(path::POLICY_DRY_RUN, &fresh_key("cli"), &candidate).await?)
        })
        .await?;
    context.print(&trial, || format!("{}\nnothing was changed\n", text::trial(&trial)))
}

/// Tries it, says what it restarts, and puts it in force if nothing else came meanwhile.
pub(super) async fn activate(context: &Context, order: &Activate) -> Outcome {
    let DryRun { file, text } = read(&order.file)?;
    let activated: Activated = context
        .through_api(async |client| {
            let expected = match order.expect {
                Some(epoch) => Epoch(epoch),
                None => client.get::<Policy>(path::POLICY, &()).await?.in_force.epoch,
            };
            if !context.json {
                let tried = DryRun { file: file.clone(), text: text.clone() };
                let trial: Trial = client.post(path::POLICY_DRY_RUN, &fresh_key("cli"), &tried).await?;
                context.print(&trial, || text::trial(&trial))?;
            }
            let candidate = Candidate { file, text, expected: Some(expected), now: order.now };
            Ok(client.post(path::POLICY_ACTIVATE, &fresh_key("cli"), &candidate).await?)
        })
        .await?;
    context.print(&activated, || {
        let when = if order.now { "at once" } else { "for turns that begin from here on" };
        format!("{}in force {when}", text::in_force(&activated.in_force))
    })
}

/// Goes back. Needs no Python.
pub(super) async fn roll_back(context: &Context, order: &Rollback) -> Outcome {
    let to = RollBack { to: order.epoch.map(Epoch) };
    let activated: Activated = context
        .through_api(async |client| Ok(client.post(path::POLICY_ROLLBACK, &fresh_key("cli"), &to).await?))
        .await?;
    context.print(&activated, || text::in_force(&activated.in_force))
}

fn read(file: &Path) -> Outcome<DryRun> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let message = format!("{} cannot be read", file.display());
        CommandError::user(message, "name an activation manifest; klbr hooks publish prints one")
            .because(error)
    })?;
    Ok(DryRun { file: file.display().to_string(), text })
}
