//! `memory`: what the agent keeps in mind beyond the conversation (`C-MEM`).

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::history::store_failed;
use crate::action::{Class, FailureKind, Outcome, Resource};
use crate::block::escape;
use crate::context::{Answer, Remembered};
use crate::runtime::store::{Memory, MemoryChange, SCOPES, is_scope};
use crate::runtime::tool::{CallContext, Tool};

/// Adds, finds, changes and forgets memories.
#[derive(Clone, Copy, Debug)]
pub struct MemoryTool;

/// Arguments of [`MemoryTool`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MemoryCall {
    /// What to do.
    operation: Operation,
    /// add, update: what to remember. search: what to look for; everything when absent.
    text: Option<String>,
    /// update, forget, pin: the memory's number.
    id: Option<u64>,
    /// add, update: where it belongs, such as "conversation:d1". search: only what has all of these.
    tags: Option<Vec<String>>,
    /// add, pin: whether it stands in front of every conversation from the next fresh start on.
    pinned: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Add,
    Search,
    Update,
    Forget,
    Pin,
}

#[async_trait]
impl Tool for MemoryTool {
    type Arguments = MemoryCall;
    const NAME: &'static str = "memory";
    const DESCRIPTION: &'static str = "Remembers things beyond this conversation. operation is add, search, update, forget \
                                       or pin. Tag a memory with where it belongs: source:, conversation:, guild:, \
                                       channel:, thread: or author:.";
    // The store answers a repeat of the same action with what the first one did.
    const CLASS: Class = Class::Idempotent;

    fn resource(&self) -> Resource {
        Resource::Named("memory".into())
    }

    async fn call(&self, context: CallContext, call: MemoryCall) -> Outcome {
        let refused =
            |why: &str| Outcome::failed(FailureKind::Invalid, format!("Nothing was changed: {why}."));
        let tags: Option<Vec<Arc<str>>> =
            call.tags.map(|tags| tags.iter().map(|tag| tag.trim().into()).collect());
        if let Some(tag) = tags.iter().flatten().find(|tag| !is_scope(tag)) {
            return refused(&format!("{tag:?} is no scope; a tag begins with one of {}", SCOPES.join(" ")));
        }
        let text: Option<Arc<str>> =
            call.text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(Into::into);
        let change = match (call.operation, text, call.id) {
            (Operation::Search, text, _) => {
                let tags = tags.unwrap_or_default();
                let found =
                    context.store.memories(&context.agent, text.as_deref().unwrap_or(""), &tags, 50).await;
                return match found {
                    Ok(found) if found.is_empty() => Outcome::confirmed("Nothing is remembered that fits."),
                    Ok(found) => Outcome::confirmed(list(&found)),
                    Err(error) => store_failed(&error),
                };
            }
            (Operation::Add, Some(text), _) => MemoryChange::Add {
                text,
                tags: tags.unwrap_or_default(),
                pinned: call.pinned.unwrap_or(false),
            },
            (Operation::Add, None, _) => return refused("there is no text to remember"),
            (Operation::Update, text, Some(id)) => {
                MemoryChange::Update { id, text, tags, pinned: call.pinned }
            }
            (Operation::Pin, _, Some(id)) => {
                MemoryChange::Update { id, text: None, tags: None, pinned: Some(call.pinned.unwrap_or(true)) }
            }
            (Operation::Forget, _, Some(id)) => MemoryChange::Forget { id },
            (Operation::Update | Operation::Pin | Operation::Forget, _, None) => {
                return refused("the memory's id is missing; search shows it");
            }
        };
        let key = context.action.to_string();
        match context.store.remember(&context.agent, &key, context.at, change).await {
            Ok(Some(memory)) => {
                let done = match call.operation {
                    Operation::Forget => "Forgotten",
                    Operation::Add | Operation::Search | Operation::Update | Operation::Pin => "Remembered",
                };
                let is_pinned = memory.pinned && !matches!(call.operation, Operation::Forget);
                Outcome::answered(Answer::Remembered(Remembered {
                    id: memory.id,
                    pinned: is_pinned.then(|| memory.text.to_string()),
                    text: format!("{done}: {}", list(std::slice::from_ref(&memory))),
                }))
            }
            Ok(None) => refused("there is no memory of that id"),
            Err(error) => store_failed(&error),
        }
    }
}

fn list(memories: &[Memory]) -> String {
    let mut text = String::new();
    for memory in memories {
        let pinned = if memory.pinned { " (pinned)" } else { "" };
        let tags = memory.tags.iter().fold(String::new(), |all, tag| format!("{all} [{tag}]"));
        // Writing to a String never fails.
        let _ = writeln!(text, "{}.{pinned}{tags} {}", memory.id, escape(&memory.text));
    }
    text.trim_end().to_owned()
}
