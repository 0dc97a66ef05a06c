//! `klbr memory`: what the agent keeps in mind beyond the conversation.

use klbr_core::runtime::store::Memory as Kept;
use klbr_server::api::{Memories, MemoryEdit, MemoryQuery, Remembered, path};
use serde_json::json;

use crate::args::Memory;
use crate::client::fresh_key;
use crate::context::Context;
use crate::error::Outcome;
use crate::text::clean_line;

/// How many memories are listed at most.
const LIMIT: usize = 1_000;

/// Lists, adds, changes, forgets.
pub(super) async fn run(context: &Context, memory: &Memory) -> Outcome {
    match memory {
        Memory::List { text } => list(context, text.join(" ")).await,
        Memory::Add { text, tag, pin } => {
            let edit = MemoryEdit::Add { text: text.join(" "), tags: tag.clone(), pinned: *pin };
            change(context, "remembered", &edit).await
        }
        Memory::Edit { id, text, tag } => {
            let text = (!text.is_empty()).then(|| text.join(" "));
            let tags = (!tag.is_empty()).then(|| tag.clone());
            change(context, "changed", &MemoryEdit::Update { id: *id, text, tags, pinned: None }).await
        }
        Memory::Pin { id } => pin(context, *id, true).await,
        Memory::Unpin { id } => pin(context, *id, false).await,
        Memory::Forget { id } => change(context, "forgotten", &MemoryEdit::Forget { id: *id }).await,
    }
}

async fn list(context: &Context, text: String) -> Outcome {
    let query = MemoryQuery { text: Some(text), limit: Some(LIMIT) };
    // An agent may be told what to remember before it lives: what is kept of it is not enough to find it by.
    let Memories { memories } =
        context.through_api(async |client| Ok(client.get(path::MEMORY, &query).await?)).await?;
    context.print(&json!({ "memories": memories }), || match memories[..] {
        [] => "nothing is remembered that fits".to_owned(),
        _ => memories.iter().map(|memory| row(memory) + "\n").collect(),
    })
}

async fn pin(context: &Context, id: u64, pinned: bool) -> Outcome {
    let edit = MemoryEdit::Update { id, text: None, tags: None, pinned: Some(pinned) };
    change(context, if pinned { "pinned" } else { "no longer pinned" }, &edit).await
}

async fn change(context: &Context, done: &str, edit: &MemoryEdit) -> Outcome {
    let remembered: Remembered = context
        .through_api(async |client| Ok(client.post(path::MEMORY, &fresh_key("memory"), edit).await?))
        .await?;
    context.print(&remembered, || format!("{done}: {}", row(&remembered.memory)))
}

fn row(memory: &Kept) -> String {
    let pinned = if memory.pinned { " (pinned)" } else { "" };
    let tags: String = memory.tags.iter().map(|tag| format!(" [{}]", clean_line(tag))).collect();
    format!("{:>4}{pinned}{tags} {}", memory.id, clean_line(&memory.text))
}
