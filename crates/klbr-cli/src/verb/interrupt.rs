//! `klbr interrupt`: ends the running turn.

use klbr_server::api::path;

use crate::client::fresh_key;
use crate::context::Context;
use crate::error::Outcome;

/// Interrupts.
pub(super) async fn run(context: &Context) -> Outcome {
    let client = context.require_daemon()?;
    let event = client.command(path::INTERRUPT, &fresh_key("cli")).await?;
    context.print(&serde_json::json!({ "event": event }), || format!("interrupted ({event})"))
}
