//! An agent as it was kept, read while nobody holds its home. Nothing is written.

use std::path::Path;
use std::sync::Arc;

use klbr_core::agent::Agent;
use klbr_core::config::Config;
use klbr_core::ids::{AgentName, Seq};
use klbr_core::runtime::store::Store as _;
use klbr_server::home::Home;
use klbr_store::{Access, Options, SqliteStore};

use crate::context::Context;
use crate::error::{CommandError, Outcome, unread};

/// An agent as it was kept.
pub(crate) struct Offline {
    /// What keeps it.
    pub(crate) store: SqliteStore,
    /// The agent.
    pub(crate) name: AgentName,
    /// Its state after its last record.
    pub(crate) agent: Agent,
}

impl Offline {
    /// Reads the agent that is meant.
    ///
    /// # Errors
    ///
    /// Fails when the home has no database, or no such agent in it.
    pub(crate) async fn open(context: &Context) -> Outcome<Self> {
        let config = context.config()?;
        let database = Home::new(&context.home).database();
        if !database.exists() {
            return Err(CommandError::config(
                format!("nothing has happened in {} yet", context.home.display()),
                "klbr chat or klbr run lets its agent live",
            ));
        }
        let store = SqliteStore::open(&database, Options { access: Access::Read, ..Options::default() })?;
        let name = config.agent.name.clone();
        let agents = store.agents().await.map_err(|error| unread(&database, error))?;
        if !agents.contains(&name) {
            let known: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
            return Err(CommandError::user(
                format!("no agent named {:?} lives in {}", name.as_str(), context.home.display()),
                format!(
                    "those that do: {}",
                    if known.is_empty() { "none yet".to_owned() } else { known.join(", ") }
                ),
            ));
        }
        let model = config.agent.model.as_deref().unwrap_or("auto");
        let mut core = Config::new(name.clone(), model);
        if let Some(soul) = &config.agent.soul {
            core.soul = soul.as_str().into();
        }
        core.context_tokens = config.agent.context_tokens.unwrap_or(core.context_tokens);
        let agent = restore(&store, &database, &name, core).await?;
        Ok(Offline { store, name, agent })
    }
}

/// Folds what is kept; a checkpoint that cannot be read is passed over for the records themselves.
async fn restore(store: &SqliteStore, database: &Path, name: &AgentName, config: Config) -> Outcome<Agent> {
    let config = Arc::new(config);
    let kept = store.load(name).await.map_err(|error| unread(database, error))?;
    let checkpoint = kept.checkpoint.as_ref().map(|checkpoint| checkpoint.bytes.as_slice());
    if let Ok(agent) = Agent::restore(config.clone(), checkpoint, &kept.records) {
        return Ok(agent);
    }
    refold(store, name, config).await
}

/// Folds every record from the first, without any checkpoint.
pub(crate) async fn refold(store: &SqliteStore, name: &AgentName, config: Arc<Config>) -> Outcome<Agent> {
    let records = store.records(name, Seq(0), usize::MAX).await?;
    Agent::restore(config, None, &records).map_err(|error| {
        CommandError::config(
            "the history does not hold together",
            "klbr store check says more; klbr store restore puts a backup in its place",
        )
        .because(error)
    })
}
