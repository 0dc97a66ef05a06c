//! `klbr reset`: forgets the conversation.

use klbr_server::api::path;

use crate::client::fresh_key;
use crate::context::Context;
use crate::error::Outcome;

/// Resets, also while no daemon runs.
pub(super) async fn run(context: &Context) -> Outcome {
    let event =
        context.through_api(async |client| Ok(client.command(path::RESET, &fresh_key("cli")).await?)).await?;
    context.print(&serde_json::json!({ "event": event }), || {
        format!("the conversation is forgotten ({event}); klbr history still finds it")
    })
}
