//! `klbr discord`: whether Discord lets the agent in, and what it has heard there.

use std::sync::Arc;

use klbr_core::runtime::channel::Channel as _;
use klbr_discord::{Report, Settings, Severity};
use klbr_server::api::{Conversation, Conversations, path};

use crate::args::Discord;
use crate::context::{Context, Reach};
use crate::error::{CommandError, Outcome};
use crate::text::clean_line;

/// Checks, lists.
pub(super) async fn run(context: &Context, discord: &Discord) -> Outcome {
    match discord {
        Discord::Check => check(context).await,
        Discord::Conversations => conversations(context).await,
    }
}

fn settings(context: &Context) -> Outcome<Settings> {
    context.config()?.discord.ok_or_else(|| {
        CommandError::config(
            "Discord is off: there is no token, or it is not enabled",
            "set KLBR_DISCORD_TOKEN, or discord.token_file in klbr.toml",
        )
    })
}

async fn check(context: &Context) -> Outcome {
    let report = klbr_discord::check(&settings(context)?).await;
    context.print(&report, || text(&report))?;
    match report.worst() {
        Severity::Good | Severity::Warning => Ok(()),
        Severity::Error => Err(CommandError::config(
            "the agent cannot take part on Discord as it is",
            "each line above says what to enable where",
        )),
    }
}

fn text(report: &Report) -> String {
    let line = |finding: &klbr_discord::Finding| {
        let word = match finding.severity {
            Severity::Good => "good",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let advice = finding.advice.as_deref().map(|advice| format!("\n         {}", clean_line(advice)));
        format!("{word:<8} {}{}\n", clean_line(&finding.what), advice.unwrap_or_default())
    };
    report.findings.iter().map(line).collect()
}

async fn conversations(context: &Context) -> Outcome {
    let list = match context.reach().await? {
        Reach::Daemon(client) => client.get(path::DISCORD_CONVERSATIONS, &()).await?,
        Reach::Kept(offline) => {
            let settings = settings(context)?;
            let discord = klbr_discord::Discord::new(settings, Arc::new(offline.store), offline.name)
                .map_err(|error| {
                    CommandError::config(error.to_string(), "install the system's certificates")
                })?;
            let aliases = offline.agent.conversations();
            let known = discord.conversations().await?.into_iter();
            let conversations =
                known.map(|one| Conversation::new(one, discord.instance(), aliases)).collect();
            Conversations { conversations }
        }
    };
    context.print(&list, || match list.conversations.is_empty() {
        true => "nothing has been heard on Discord yet".to_owned(),
        false => list.conversations.iter().map(line).collect(),
    })
}

fn line(one: &Conversation) -> String {
    let Conversation { alias, known } = one;
    let place = [&known.guild, &known.parent, &known.name].into_iter().flatten();
    let place: Vec<String> = place.map(|name| clean_line(name)).collect();
    let behind = if known.is_behind { ", catching up" } else { "" };
    format!(
        "{:<5} {:<8} {:<20} {}  {}{behind}\n",
        alias.as_deref().unwrap_or("-"),
        known.kind,
        known.id,
        known.last_activity.as_deref().unwrap_or("-"),
        place.join(" / "),
    )
}
