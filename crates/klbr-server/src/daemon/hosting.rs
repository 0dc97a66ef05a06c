//! An agent's life within the daemon: its store, its start, and its orderly end.

use std::path::Path;
use std::sync::Arc;

use klbr_core::config::Config as CoreConfig;
use klbr_core::runtime::channel::Channel as _;
use klbr_core::runtime::model::Model;
use klbr_core::runtime::probe::Probe;
use klbr_core::runtime::store::Store;
use klbr_core::runtime::{AgentBuilder, AgentHandle, RunningAgent};
use klbr_discord::Discord;
use klbr_store::{Options, SqliteStore};
use klbr_workspace::code::Code;
use klbr_workspace::view::Level;
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use super::error::{StartError, whole_story};
use crate::api::ChannelStatus;
use crate::config::Config;
use crate::home::Home;
use crate::host::{Given, Hosted, Slot};
use crate::model::LATE;
use crate::process::{self, ProcessTool};
use crate::python::Python;
use crate::workspace::Workspace;

/// Context of a model whose server does not tell, in tokens.
const CONTEXT: u64 = 32_768;

/// Starts the agent, and stops it in order when `stop` says so.
pub(super) async fn host(
    config: Config,
    model: Arc<dyn Model>,
    probe: Option<Arc<dyn Probe>>,
    hosted: Arc<Hosted>,
    stop: CancellationToken,
) {
    let failed = |error: StartError| {
        tracing::error!(agent = %hosted.name, hint = error.hint(), "{}", whole_story(&error));
        hosted.set(Slot::Failed(Arc::new(error)));
    };
    let (store, mut agent) = match start(config, model, probe, &hosted).await {
        Ok(started) => started,
        Err(error) => return failed(error),
    };
    let policy = hosted.python.get().map(|python| python.live.attach(agent.handle().clone()));
    hosted.set(Slot::Ready(agent.handle().clone()));
    tracing::info!(agent = %hosted.name, "ready");
    let handle = agent.handle().clone();
    let counting = async {
        if let Ok(updates) = handle.updates(None).await {
            hosted.metrics.observe(updates).await;
        }
        std::future::pending().await
    };
    let looking = async {
        if let Given::Late(late) = &hosted.model {
            let in_use = late.settled().await;
            // Known already, it changes nothing. An agent that has stopped needs no model.
            let _ = handle.model_found(in_use.model, in_use.context_tokens).await;
        }
        std::future::pending().await
    };
    let by_itself = tokio::select! {
        () = stop.cancelled() => false,
        () = agent.stopped() => true,
        () = counting => false,
        () = looking => false,
        () = listen_to_discord(&hosted, &handle) => false,
    };
    if by_itself {
        failed(StartError::Ended);
        stop.cancelled().await;
    } else {
        hosted.set(Slot::Stopping);
        if let Some(python) = hosted.python.get() {
            python.live.keep_asked().await;
        }
        agent.shutdown().await;
    }
    if let Some(policy) = policy {
        policy.stop().await;
    }
    if let Some(discord) = hosted.discord.get() {
        discord.keep().await;
    }
    if let Err(error) = store.close().await {
        tracing::warn!(%error, "the store was not closed in order; nothing is lost");
    }
    tracing::info!(agent = %hosted.name, "stopped");
}

/// Listens to Discord, if the agent is there. An end before the agent's is logged and told in the status; the
/// agent lives on.
async fn listen_to_discord(hosted: &Hosted, handle: &AgentHandle) {
    if let Some(discord) = hosted.discord.get() {
        let status = |failed| ChannelStatus { instance: discord.instance().to_owned(), failed };
        hosted.set_channel(status(None));
        if let Err(error) = Box::pin(discord.run(handle.clone())).await {
            tracing::error!(%error, "Discord is not listened to any more");
            hosted.set_channel(status(Some(whole_story(&error))));
        }
    }
    std::future::pending().await
}

async fn start(
    config: Config,
    model: Arc<dyn Model>,
    probe: Option<Arc<dyn Probe>>,
    hosted: &Hosted,
) -> Result<(Arc<SqliteStore>, RunningAgent), StartError> {
    let home = Home::new(&config.home);
    let database = home.database();
    // Opening blocks; what the model server tells is asked for meanwhile.
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&database, Options::default()));
    let (told, root) = (config.clone(), home.clone());
    let python = tokio::task::spawn_blocking(move || Python::new(&told, &root));
    let mut core = core_config(&config, hosted).await;
    let unusable = |source| StartError::Home { path: home.run(), source };
    let python = python.await.map_err(|_| StartError::Stopped)?.map_err(unusable)?;
    if let Some(python) = &python {
        (core.questions_kept, core.toolset) = (python.questions, python.toolset);
    }
    let store = Arc::new(opening.await.map_err(|_| StartError::Stopped)??);
    let mut builder = AgentBuilder::from_shared(core, store.clone() as Arc<dyn Store>, model);
    if let Some(python) = python {
        builder = hosted.python.get_or_init(|| python).register(builder);
    }
    let workspace = Workspace::of(&config);
    if let Some(workspace) = workspace.map_err(|(path, source)| StartError::Workspace { path, source })? {
        builder = builder.surroundings(workspace);
    }
    if let Some(settings) = config.discord {
        let store = store.clone() as Arc<dyn Store>;
        let discord = Discord::new(settings, store, config.agent.name.clone())?;
        builder = hosted.discord.get_or_init(|| discord).register(builder);
    }
    if config.process_tool {
        if let Some(shortfall) = process::SHORTFALL {
            tracing::warn!("the agent may run command lines; {shortfall}");
        }
        let dir = home.agent(&config.agent.name);
        let made = std::fs::create_dir_all(&dir);
        made.map_err(|source| StartError::Home { path: dir.clone(), source })?;
        let dir = config.workspace.map_or(dir, |workspace| workspace.root);
        builder = builder.tool(ProcessTool::new(home.fingerprint(), dir, config.secret_variables));
    }
    if let Some(code) = &config.code {
        let level = if code.write { Level::Stage } else { Level::Ro };
        let missing = |source| StartError::Code { path: code.root.clone(), source };
        let mut hands = Code::new(&code.root, level).map_err(missing)?;
        // The home holds the token and the agent's own life, wherever it lies.
        if let Some(home) = home.dir().canonicalize().ok().as_deref().and_then(Path::to_str) {
            hands = hands.with(home, Level::None);
        }
        if let Some(parser) = config.parser {
            hands = hands.isolated(parser);
        }
        builder = hands.give_to(builder);
    }
    if let Some(probe) = probe {
        builder = builder.probe(probe);
    }
    // Folding a long history keeps a thread busy, and the API's threads are few.
    let runtime = runtime::Handle::current();
    let starting = tokio::task::spawn_blocking(move || runtime.block_on(builder.start()));
    let agent = starting.await.map_err(|_| StartError::Stopped)??;
    Ok((store, agent))
}

async fn core_config(config: &Config, hosted: &Hosted) -> CoreConfig {
    let agent = &config.agent;
    let (model, told): (Arc<str>, _) = match &hosted.model {
        Given::BuiltIn(name) => (name.clone(), None),
        Given::Late(late) => match late.find().await {
            Ok(in_use) => (in_use.model, in_use.context_tokens),
            // As it was asked for, or whatever will be found.
            Err(_) => (agent.model.as_deref().unwrap_or(LATE).into(), None),
        },
    };
    let mut core = CoreConfig::new(agent.name.clone(), model);
    if let Some(soul) = &agent.soul {
        core.soul = soul.as_str().into();
    }
    core.effort = agent.effort.as_deref().map(Into::into);
    core.max_output_tokens = agent.max_output_tokens;
    core.tool_choice = agent.tool_choice;
    core.context_tokens = agent.context_tokens.or(told).unwrap_or(CONTEXT);
    core
}
