//! `klbr debug`: what those who work on an agent need (`B-EVENT-4`).

use klbr_core::event::{Priority, SourceKind};
use klbr_server::api::{self, path};

use crate::args::Debug;
use crate::client::fresh_key;
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Admits the request; it is shown in a turn of its own.
pub(super) async fn run(context: &Context, debug: &Debug) -> Outcome {
    let Debug::Reflect { text } = debug;
    if text.trim().is_empty() {
        return Err(CommandError::user(
            "the text is empty",
            "say what the agent is to look at, or leave it out",
        ));
    }
    let key = fresh_key("reflect");
    let event = api::ExternalEvent {
        source: api::EventSource { kind: SourceKind::System, instance: "klbr".to_owned() },
        external_id: Some(key.clone()),
        priority: Priority::Directed,
        conversation: None,
        author: None,
        text: text.clone(),
        attributes: Vec::new(),
        attention: None,
        amends: None,
    };
    let accepted: api::Accepted =
        context.through_api(async |client| Ok(client.post(path::EVENTS, &key, &event).await?)).await?;
    context.print(&accepted, || format!("the agent is asked to reflect ({})", accepted.event))
}
