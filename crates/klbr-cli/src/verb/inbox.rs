//! `klbr inbox`: what waits to be shown, and what waits for a decision.

use klbr_core::attention::Mark;
use klbr_core::runtime::store::Store as _;
use klbr_core::status::{Attended, Waiting};
use klbr_server::api::{self, ItemBody, path};
use serde_json::json;

use crate::args::{Inbox, InboxMark, InboxVerb};
use crate::client::fresh_key;
use crate::context::{Context, Reach};
use crate::error::{CommandError, Outcome};
use crate::text::{clean, clean_line};

/// Lists, shows, marks.
pub(super) async fn run(context: &Context, inbox: &Inbox) -> Outcome {
    match &inbox.verb {
        None => list(context, inbox.list.limit).await,
        Some(InboxVerb::List(list_args)) => list(context, list_args.limit).await,
        Some(InboxVerb::Show { item }) => show(context, item).await,
        Some(InboxVerb::Mark(mark_args)) => mark(context, mark_args).await,
    }
}

async fn list(context: &Context, limit: u32) -> Outcome {
    let limit = limit as usize;
    let inbox = match context.reach().await? {
        Reach::Daemon(client) => client.get(path::INBOX, &api::InboxQuery { limit: Some(limit) }).await?,
        Reach::Kept(offline) => {
            api::Inbox { waiting: offline.agent.waiting(limit), items: offline.agent.attention(limit) }
        }
    };
    context.print(&inbox, || {
        if inbox.waiting.is_empty() && inbox.items.is_empty() {
            return "nothing waits".to_owned();
        }
        inbox.waiting.iter().map(line).chain(inbox.items.iter().map(item_line)).collect()
    })
}

async fn show(context: &Context, name: &str) -> Outcome {
    let shown: ItemBody = match context.reach().await? {
        Reach::Daemon(client) => client.get(&path::ITEM.replace("{item}", name), &()).await?,
        Reach::Kept(offline) => {
            let mut items = offline.agent.attention(usize::MAX).into_iter();
            let item = items.find(|item| item.is_named(name)).ok_or_else(|| {
                CommandError::user(format!("there is no attention item {name:?}"), "klbr inbox lists them")
            })?;
            let bodies = offline.store.bodies(&offline.name, &[item.newest]).await?;
            let body = bodies.into_iter().next().unwrap_or_default();
            ItemBody { item, author: body.author, text: body.text }
        }
    };
    context.print(&shown, || {
        let author = shown.author.as_ref().map_or("-".to_owned(), |author| clean_line(&author.name));
        format!("{}by {author}\n\n{}\n", item_line(&shown.item), clean(&shown.text))
    })
}

async fn mark(context: &Context, args: &InboxMark) -> Outcome {
    let mark = Mark {
        item: args.item.as_str().into(),
        status: args.status,
        action: args.action,
        note: args.note.as_deref().map(Into::into),
    };
    let accepted: api::Accepted = context
        .through_api(async |client| Ok(client.post(path::MARK, &fresh_key("cli"), &mark).await?))
        .await?;
    let (status, action) = (mark.status.as_str(), mark.response().as_str());
    context.print(&json!({ "event": accepted.event, "mark": mark }), || {
        format!("{} is marked {status}, {action} ({})", args.item, accepted.event)
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

/// An item in one line: what it is, what became of it, by whom and why.
fn item_line(item: &Attended) -> String {
    let conversation = item.conversation.as_deref().unwrap_or("-");
    let source = clean_line(&format!("{} {}", item.instance, item.item));
    let decided = item.decided.as_ref().map(|decision| format!(" by {}", decision.by)).unwrap_or_default();
    let note = item.note.as_ref().map(|note| format!(": {}", clean_line(note))).unwrap_or_default();
    let shown = item.shown.map_or("never shown".to_owned(), |shown| format!("shown in {}", shown.frame));
    format!(
        "{:<8} {:<9} {source:<18} {conversation:<6} {} {} {}{decided}{note} ({shown})\n",
        item.event,
        item.bucket.as_str(),
        item.at,
        item.status.as_str(),
        item.action.as_str(),
    )
}
