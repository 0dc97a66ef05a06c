//! `klbr stop`: stops the daemon in order, or the running turn.

use std::time::{Duration, Instant};

use klbr_server::api::path;
use serde_json::json;

use crate::args::Stop;
use crate::client::fresh_key;
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::home::{Holder, holder};

/// How long an orderly end may take (`B-ID-3` allows 5 s), and a little more.
const PATIENCE: Duration = Duration::from_secs(8);

/// Stops, and returns when it has.
pub(super) async fn run(context: &Context, stop: &Stop) -> Outcome {
    let client = context.require_daemon()?;
    if stop.turn {
        let event = client.command(path::STOP, &fresh_key("cli")).await?;
        return context.print(&json!({ "event": event }), || {
            format!("the turn is ended ({event}); the agent stays quiet until something new arrives")
        });
    }
    let _: serde_json::Value = client.post(path::SHUTDOWN, &fresh_key("cli"), &json!({})).await?;
    let until = Instant::now() + PATIENCE;
    while holder(&context.home)? != Holder::Nobody {
        if Instant::now() > until {
            return Err(CommandError::remote(
                format!("the daemon has not ended within {} s", PATIENCE.as_secs()),
                "klbr doctor names its process; nothing is lost when that is killed",
            ));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    context.print(&json!({ "stopped": true }), || "the daemon has stopped; what waits is kept".to_owned())
}
