//! `klbr effects`: what waits for the operator's decision.

use klbr_core::ids::ActionId;
use klbr_core::status::OpenEffect;
use klbr_server::api::{AgentStatus, path};
use serde_json::json;

use crate::args::Effects;
use crate::client::fresh_key;
use crate::context::{Context, Reach};
use crate::error::Outcome;
use crate::text::clean_line;

/// Lists, allows, denies.
pub(super) async fn run(context: &Context, effects: &Effects) -> Outcome {
    match effects {
        Effects::List => {
            let open = open(context).await?;
            context.print(&json!({ "open_effects": open }), || list(&open))
        }
        Effects::Allow { action } => decide(context, *action, true).await,
        Effects::Deny { action } => decide(context, *action, false).await,
    }
}

async fn open(context: &Context) -> Outcome<Vec<OpenEffect>> {
    match context.reach().await? {
        Reach::Daemon(client) => {
            let status: AgentStatus = client.get(path::STATUS, &()).await?;
            Ok(status.agent.map(|agent| agent.open_effects).unwrap_or_default())
        }
        Reach::Kept(offline) => Ok(offline.agent.status().open_effects),
    }
}

fn list(open: &[OpenEffect]) -> String {
    if open.is_empty() {
        return "no effect waits, and none is under way".to_owned();
    }
    let line = |effect: &OpenEffect| {
        let how = if effect.held { "held" } else { "under way" };
        format!("{:<10} {how:<9} {} {}\n", effect.action, effect.name, clean_line(&effect.arguments))
    };
    open.iter().map(line).collect()
}

/// An effect happens in the agent's process: without a daemon none can be decided about.
async fn decide(context: &Context, action: ActionId, allow: bool) -> Outcome {
    let client = context.require_daemon()?;
    let event = client.resolve(&fresh_key("cli"), action, allow).await?;
    let word = if allow { "allowed" } else { "denied" };
    context.print(&json!({ "event": event, "allow": allow }), || format!("{action} is {word} ({event})"))
}
