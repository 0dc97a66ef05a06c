//! An agent in about twenty lines: a store, a model, and a conversation.
//!
//! `KLBR_BASE_URL=http://127.0.0.1:8080 cargo run -p klbr-examples --bin quickstart [MODEL]`

use klbr_core::config::Config;
use klbr_core::runtime::AgentBuilder;
use klbr_core::update::Happening;
use klbr_llm::{Provider, config};
use klbr_store::{Options, SqliteStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = config::Config::from_lookup(|name| std::env::var(name).ok())?.ok_or("set KLBR_BASE_URL")?;
    let store = SqliteStore::open("quickstart.db".as_ref(), Options::default())?;
    let model = std::env::args().nth(1).unwrap_or_else(|| "default".to_owned());

    let config = Config::new("ada".parse()?, model);
    let agent = AgentBuilder::new(config, store, Provider::new(server)?).start().await?;

    let mut updates = agent.handle().updates(None).await?;
    agent.handle().say("greeting", "Hello! Who are you?").await?;
    while let Some(update) = updates.next().await? {
        match update.happening {
            Happening::ThinkDelta { text } | Happening::ScratchDelta { text } => print!("{text}"),
            Happening::Delivered { text, .. } => println!("\nsaid: {text}"),
            Happening::Waiting { .. } | Happening::TurnEnded { .. } => break,
            _ => {}
        }
    }
    agent.shutdown().await;
    Ok(())
}
