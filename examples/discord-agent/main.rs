//! An agent that takes part on Discord: it hears everything, speaks on purpose, and loses nothing when it is killed.
//!
//! `KLBR_DISCORD_TOKEN=… KLBR_BASE_URL=http://127.0.0.1:8080 cargo run -p klbr-examples --bin discord-agent [MODEL]`

use std::sync::Arc;

use klbr_core::action::End;
use klbr_core::config::Config;
use klbr_core::runtime::AgentBuilder;
use klbr_core::runtime::store::Store;
use klbr_core::update::Happening;
use klbr_discord::{Discord, Settings};
use klbr_llm::{Provider, config};
use klbr_store::{Options, SqliteStore};

/// Shows what happens, each line under what it is.
fn show(happening: &Happening) {
    let lines = |what: &str, text: &str| text.lines().for_each(|line| println!("{what:6}| {line}"));
    match happening {
        Happening::Shown { text, .. } => lines("reads", text),
        Happening::Delivered { text, .. } => lines("says", text),
        Happening::Marked { status, note, decider, .. } => {
            let note = note.as_deref().unwrap_or_default();
            lines("marks", &format!("{} by {decider}: {note}", status.as_str()));
        }
        Happening::ActionEnded { end: Some(End::Unknown | End::Failed { .. }), result, .. } => {
            lines("fails", result);
        }
        Happening::Recovered => lines("note", "the process began anew"),
        Happening::Waiting { .. } => lines("waits", "until somebody speaks"),
        _ => {}
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lookup = |name: &str| std::env::var(name).ok();
    let settings = Settings::from_lookup(lookup)?.ok_or("set KLBR_DISCORD_TOKEN")?;
    let server = config::Config::from_lookup(lookup)?.ok_or("set KLBR_BASE_URL")?;
    let model = std::env::args().nth(1).unwrap_or_else(|| "default".to_owned());

    let config = Config::new("ada".parse()?, model);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open("discord-agent.db".as_ref(), Options::default())?);
    let before = store.last(&config.agent).await?;
    let discord = Discord::new(settings, store.clone(), config.agent.clone())?;
    let builder = AgentBuilder::from_shared(config, store, Arc::new(Provider::new(server)?));
    let agent = discord.register(builder).start().await?;

    let mut updates = agent.handle().updates(Some(before)).await?;
    let showing = async {
        while let Some(update) = updates.next().await? {
            show(&update.happening);
        }
        Ok::<(), klbr_core::runtime::store::StoreError>(())
    };
    tokio::select! {
        ended = discord.run(agent.handle().clone()) => ended?,
        shown = showing => shown?,
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    agent.shutdown().await;
    discord.keep().await;
    Ok(())
}
