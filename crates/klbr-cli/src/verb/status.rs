//! `klbr status`: how the agent is doing.

use std::time::Duration;

use klbr_core::runtime::clock::{Clock as _, SystemClock};
use klbr_core::status::{Activity, Status};
use klbr_core::time::{Human, Timestamp};
use klbr_server::api::{AgentStatus, State, path};
use serde_json::json;

use super::models;
use crate::context::{Context, Reach};
use crate::error::Outcome;
use crate::text::clean_line;

/// Tells it: of the daemon's agent, or as it was kept.
pub(super) async fn run(context: &Context) -> Outcome {
    let now = SystemClock.now();
    match context.reach().await? {
        Reach::Daemon(client) => {
            let status: AgentStatus = client.get(path::STATUS, &()).await?;
            context.print(&status, || hosted(&status, now))
        }
        Reach::Kept(offline) => {
            let status = offline.agent.status();
            context.print(&json!({ "name": status.agent, "state": "kept", "agent": status }), || {
                format!("{} is kept; no daemon runs\n{}", status.agent, told(&status, now))
            })
        }
    }
}

fn hosted(status: &AgentStatus, now: Timestamp) -> String {
    let state = match &status.state {
        State::Starting => "is starting".to_owned(),
        State::Ready => "lives".to_owned(),
        State::Stopping => "is stopping".to_owned(),
        State::Failed { why } => format!("could not be started: {}", clean_line(why)),
    };
    let daemon = &status.daemon;
    let uptime = Human(Duration::from_millis(daemon.uptime_ms));
    let agent = status.agent.as_ref().map(|agent| told(agent, now)).unwrap_or_default();
    format!(
        "{} {state}; daemon {} (process {}, up {uptime}) on {}\nmodel    {}\n{agent}",
        status.name,
        daemon.version,
        daemon.pid,
        daemon.home,
        models::in_use(&status.model)
    )
}

fn told(status: &Status, now: Timestamp) -> String {
    let doing = clean_line(&match &status.activity {
        Activity::Resting { since } => format!("rests, since {}", Human(now.since(*since))),
        Activity::Waiting { until, reason } => {
            let reason = reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
            format!("waits, {} left{reason}", Human(until.since(now)))
        }
        Activity::Sampling { step, failures: 0, .. } => format!("asks its model (step {step})"),
        Activity::Sampling { step, failures, retry_at } => {
            let again = retry_at.map(|at| format!(", again in {}", Human(at.since(now)))).unwrap_or_default();
            format!("asks its model (step {step}), which failed {failures} times{again}")
        }
        Activity::Acting { running, .. } => {
            let running: Vec<String> =
                running.iter().map(|(action, name)| format!("{name} ({action})")).collect();
            format!("acts: {}", running.join(", "))
        }
        Activity::Turning { turn } => format!("is in turn {turn}"),
    });
    let held = status.open_effects.iter().filter(|effect| effect.held).count();
    let held = if held > 0 {
        format!("held     {held} effects wait for you: klbr effects list\n")
    } else {
        String::new()
    };
    let compacting = if status.compacting { " (being summarised)" } else { "" };
    format!(
        "does     {doing}\n{held}context  {} of {} tokens in {} messages{compacting}\nledger   {}\nrecord   {}\n",
        status.tokens, status.context_tokens, status.messages, status.ledger, status.seq
    )
}
