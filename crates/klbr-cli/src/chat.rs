//! `klbr chat`: talking to the agent.
//!
//! One way for all: the conversation goes through the API of the daemon that holds the home; where none does,
//! one is hosted in this process for as long as one talks.

mod editor;
mod line;
mod outbox;
mod screen;
pub(crate) mod session;
mod terminal;

use klbr_core::ids::Seq;
use klbr_server::Daemon;
use klbr_server::api::{AgentStatus, ModelStatus, path};

use crate::args::Chat;
use crate::client::Client;
use crate::context::{Context, start};
use crate::error::Outcome;
use crate::home::{Holder, holder};
use crate::{text, wiring};
use session::Session;

/// How many records of the past a terminal shows to scroll back to.
const PAST: u64 = 2_000;

/// Talks.
pub(crate) async fn run(context: &Context, chat: &Chat) -> Outcome {
    let (client, hosted) = match holder(&context.home)? {
        Holder::Daemon(_) => (Client::new(&context.home, context.agent()?), None),
        Holder::Nobody => {
            let config = context.config()?;
            let client = Client::new(&context.home, config.agent.name.clone());
            (client, Some(start(Daemon::new(config)).await?))
        }
    };
    let outcome = talk(context, chat, &client.named("chat"), hosted.is_some()).await;
    if let Some(running) = hosted {
        running.shutdown().await;
    }
    outcome
}

async fn talk(context: &Context, chat: &Chat, client: &Client, is_hosted: bool) -> Outcome {
    let status: AgentStatus = client.get(path::STATUS, &()).await?;
    let newest = status.agent.as_ref().map_or(Seq(0), |agent| agent.seq);
    let is_terminal = wiring::is_interactive();
    if !is_terminal || chat.plain || chat.quiet || context.json || !chat.message.is_empty() {
        let pace =
            if is_terminal && chat.message.is_empty() { line::Pace::AtOnce } else { line::Pace::InTurn };
        return line::talk(Session::new(client, newest), chat, context.json, pace).await;
    }
    let session = Session::new(client, Seq(newest.0.saturating_sub(PAST)));
    terminal::talk(session, title(&status, is_hosted)).await
}

/// Whom one talks to, and through whom.
fn title(status: &AgentStatus, is_hosted: bool) -> String {
    let model = match &status.model {
        ModelStatus::Known { model, .. } | ModelStatus::BuiltIn { model } => model.clone(),
        ModelStatus::Absent { .. } => "no model server yet".to_owned(),
    };
    let host = match is_hosted {
        true => "lives while you talk",
        false => "goes on when you leave",
    };
    text::clean_line(&format!(" klbr · {} · {model} · {host}", status.name))
}
