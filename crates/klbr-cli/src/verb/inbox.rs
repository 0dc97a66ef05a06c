//! `klbr inbox`: what waits to be shown.

use klbr_core::status::Waiting;
use klbr_server::api::{self, path};

use crate::args::Inbox;
use crate::context::{Context, Reach};
use crate::error::Outcome;
use crate::text::clean_line;

/// Lists it, most urgent first.
pub(super) async fn run(context: &Context, inbox: &Inbox) -> Outcome {
    let limit = inbox.limit as usize;
    let inbox = match context.reach().await? {
        Reach::Daemon(client) => client.get(path::INBOX, &api::InboxQuery { limit: Some(limit) }).await?,
        Reach::Kept(offline) => api::Inbox { waiting: offline.agent.waiting(limit) },
    };
    context.print(&inbox, || {
        if inbox.waiting.is_empty() {
            "nothing waits".to_owned()
        } else {
            inbox.waiting.iter().map(line).collect()
        }
    })
}

fn line(waiting: &Waiting) -> String {
    let conversation = waiting.conversation.as_deref().unwrap_or("-");
    let source = clean_line(&format!("{}/{}", waiting.source.as_str(), waiting.instance));
    let priority = format!("{:?}", waiting.priority).to_lowercase();
    format!(
        "{:<8} {priority:<9} {source:<18} {conversation:<6} {} {} bytes\n",
        waiting.event, waiting.at, waiting.bytes
    )
}
