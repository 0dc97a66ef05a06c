//! A channel of one's own: lines of standard input are heard, deliveries go to standard output.
//!
//! A line `name: text` is chatter; a line `name: @ada text` is addressed to the agent. Nothing in the core
//! knows of this channel.

use std::time::Duration;

use klbr_core::action::{ActionSpec, Class, Delivery, FailureKind, Outcome, Resource, Role};
use klbr_core::config::Config;
use klbr_core::event::{Author, Body, NewEvent, Priority, Source, SourceKind};
use klbr_core::model::ToolDefinition;
use klbr_core::runtime::channel::{Channel, ChannelSettings};
use klbr_core::runtime::tool::arguments;
use klbr_core::runtime::{AgentBuilder, AgentHandle};
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::update::Happening;
use tokio::io::{AsyncBufReadExt, BufReader};

struct Lines;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Line {
    /// What to say.
    content: String,
}

#[async_trait::async_trait]
impl Channel for Lines {
    fn instance(&self) -> &str {
        "lines"
    }

    fn settings(&self) -> ChannelSettings {
        ChannelSettings { alias_prefix: "l".into(), ..ChannelSettings::default() }
    }

    fn delivery_action(&self) -> ActionSpec {
        ActionSpec {
            tool: ToolDefinition {
                name: "lines_send".to_owned(),
                description: "Says a line where the lines come from.".to_owned(),
                parameters: schemars::schema_for!(Line).to_value(),
            },
            role: Role::Delivery { channel: "lines".into() },
            class: Class::Irreversible,
            cancellable: false,
            resource: Resource::Named("lines".into()),
            deadline: Duration::from_secs(5),
        }
    }

    async fn deliver(&self, delivery: Delivery) -> Outcome {
        match arguments::<Line>(delivery.attempt()) {
            Ok(line) if line.content.contains('\n') => {
                Outcome::failed(FailureKind::Invalid, "Not said: a line is one line.")
            }
            Ok(line) => {
                println!("ada: {}", line.content);
                Outcome::confirmed("Said.")
            }
            Err(refusal) => refusal,
        }
    }
}

/// Hears the lines of standard input until it ends.
async fn hear(agent: AgentHandle) -> Result<u64, Box<dyn std::error::Error>> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut number = 0;
    while let Some(line) = lines.next_line().await? {
        number += 1;
        let (name, text) = line.split_once(": ").unwrap_or(("somebody", &line));
        let priority = if text.starts_with("@ada") { Priority::Directed } else { Priority::Ambient };
        let author = Some(Author { id: name.into(), name: name.into() });
        let body = Body { author, ..Body::text(text) };
        let source = Source::new(SourceKind::Channel, "lines");
        let event = NewEvent::external(source, format!("line:{number}"), priority, body);
        agent.admit(event.in_conversation("stdin")).await?;
    }
    Ok(number)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([Scripted::calls(&[
        ("lines_send", r#"{"content":"I am here."}"#),
        ("wait_and_continue", r#"{"duration":"10m"}"#),
    ])]);
    let config = Config::new("ada".parse()?, "scripted");
    let agent = AgentBuilder::new(config, MemoryStore::new(), model).channel(Lines).start().await?;
    let mut updates = agent.handle().updates(None).await?;
    hear(agent.handle().clone()).await?;
    while let Some(update) = updates.next().await? {
        match update.happening {
            Happening::Shown { text, .. } => println!("--- the model reads\n{text}\n---"),
            Happening::Waiting { .. } => break,
            _ => {}
        }
    }
    agent.shutdown().await;
    Ok(())
}
