//! `klbr compact`: has the conversation summarised.

use klbr_server::api::path;

use crate::client::fresh_key;
use crate::context::Context;
use crate::error::Outcome;

/// Asks for the summary; it is made at the next boundary, by the model.
pub(super) async fn run(context: &Context) -> Outcome {
    let client = context.require_daemon()?;
    let event = client.command(path::COMPACT, &fresh_key("cli")).await?;
    context.print(&serde_json::json!({ "event": event }), || {
        format!("the conversation is summarised at the next boundary ({event}); klbr events shows it")
    })
}
