//! The areas of plain functions over texts and metadata: `levels`, `paths`, `reasoning`.

use klbr_core::context::levels::{self, Metadata};
use klbr_core::context::{paths, reasoning};
use klbr_core::model::{AssistantMessage, Message};
use serde::Deserialize;
use serde_json::{Value, json};

use super::read;

pub(super) fn levels(case: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    #[serde(tag = "op", rename_all = "snake_case")]
    enum Case {
        Levels { model: Metadata },
        Request { model: Metadata, level: String },
    }
    let got = match read(case)? {
        Case::Levels { model } => serde_json::to_value(levels::levels(&model)),
        Case::Request { model, level } => serde_json::to_value(levels::request(&model, &level)),
    };
    got.map_err(|error| error.to_string())
}

pub(super) fn paths(case: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    #[serde(tag = "op", rename_all = "snake_case")]
    enum Case {
        Env { root: String, started: String },
        Resolve { root: String, path: String },
    }
    Ok(match read(case)? {
        Case::Env { root, started } => paths::env_lines(&root, &started).into(),
        Case::Resolve { root, path } => paths::resolve(&root, &path).into(),
    })
}

pub(super) fn reasoning(case: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Case {
        messages: Vec<Stored>,
    }
    #[derive(Deserialize)]
    #[serde(tag = "role", rename_all = "snake_case")]
    enum Stored {
        User { content: String, turn: Option<bool> },
        Assistant { content: String, reasoning: Option<String> },
        Tool { content: String },
    }
    let case: Case = read(case)?;
    let messages: Vec<Message> = case
        .messages
        .into_iter()
        .map(|message| match message {
            Stored::User { content, turn } => {
                Message::User { text: content.into(), starts_turn: turn.unwrap_or(true) }
            }
            Stored::Assistant { content, reasoning } => Message::Assistant(AssistantMessage {
                text: content.into(),
                reasoning: reasoning.map(Into::into),
                calls: Vec::new(),
            }),
            Stored::Tool { content } => Message::Tool { call_id: "".into(), text: content.into() },
        })
        .collect();
    Ok(reasoning::carried(&messages).iter().map(sent).collect())
}

/// A message as the OpenAI chat dialect sends it, calls and ids left out.
fn sent(message: &Message) -> Value {
    match message {
        Message::User { text, .. } => json!({"role": "user", "content": **text}),
        Message::Tool { text, .. } => json!({"role": "tool", "content": **text}),
        Message::Assistant(said) => match &said.reasoning {
            Some(reasoning) => {
                json!({"role": "assistant", "content": *said.text, "reasoning_content": **reasoning})
            }
            None => json!({"role": "assistant", "content": *said.text}),
        },
    }
}
