//! Puts an agent together from what Python gives: the one place of this crate that assembles.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use klbr_core::action::Role;
use klbr_core::config::Config;
use klbr_core::model::ToolChoice;
use klbr_core::runtime::AgentBuilder;
use klbr_core::runtime::model::Model;
use klbr_core::runtime::store::Store;
use klbr_core::testkit::MemoryStore;
use klbr_llm::Provider;
use klbr_store::{Options, SqliteStore};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::agent::Agent;
use crate::bridge::{EventLoop, awaitable};
use crate::channel::{ChannelSpec, PyChannel};
use crate::convert::read;
use crate::error::Fault;
use crate::model::PyModel;
use crate::tool::{PyTool, ToolSpec};

/// What the Python half says of an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    name: String,
    model: String,
    store: Option<PathBuf>,
    soul: Option<String>,
    effort: Option<String>,
    max_output_tokens: Option<u32>,
    tool_choice: Option<ToolChoice>,
    context_tokens: Option<u64>,
    steps: Option<u32>,
}

impl Settings {
    fn config(&self) -> Result<Config, Fault> {
        let mut config = Config::new(self.name.parse()?, self.model.as_str());
        if let Some(soul) = &self.soul {
            config.soul = soul.as_str().into();
        }
        config.effort = self.effort.as_deref().map(Into::into);
        config.max_output_tokens = self.max_output_tokens;
        config.tool_choice = self.tool_choice.unwrap_or_default();
        config.context_tokens = self.context_tokens.unwrap_or(config.context_tokens);
        config.limits.steps = self.steps.unwrap_or(config.limits.steps);
        Ok(config)
    }
}

/// A tool: what it is told as, in JSON, and the coroutine function that runs it.
type GivenTool = (String, Py<PyAny>);

/// A channel: what it is told as, in JSON, and its two coroutine functions.
type GivenChannel = (String, Py<PyAny>, Option<Py<PyAny>>);

/// Starts an agent on the running event loop; the coroutine answers with it.
///
/// `settings` is JSON. `model` is a coroutine function, or None for a server, which `server` tells of by the names of
/// klbr's settings.
#[pyfunction]
#[pyo3(signature = (settings, tools, channels, model, server))]
pub(crate) fn start<'py>(
    py: Python<'py>,
    settings: &str,
    tools: Vec<GivenTool>,
    channels: Vec<GivenChannel>,
    model: Option<Py<PyAny>>,
    server: HashMap<String, String>,
) -> PyResult<Bound<'py, PyAny>> {
    let settings: Settings = read("the agent's settings", settings)?;
    let config = settings.config()?;
    let event_loop = EventLoop::running(py)?;
    let model: Arc<dyn Model> = match model {
        Some(function) => Arc::new(PyModel { event_loop: event_loop.clone(), function: Arc::new(function) }),
        None => Arc::new(provider(&server)?),
    };
    let mut parts = Parts { tools: Vec::new(), channels: Vec::new() };
    for (spec, function) in tools {
        let spec: ToolSpec = read("a tool", &spec)?;
        parts.tools.push(PyTool {
            spec: spec.action(Role::Ordinary),
            event_loop: event_loop.clone(),
            function: Arc::new(function),
        });
    }
    for (spec, deliver, reconcile) in channels {
        let spec: ChannelSpec = read("a channel", &spec)?;
        parts.channels.push(PyChannel::new(spec, event_loop.clone(), deliver, reconcile));
    }
    awaitable(py, async move {
        let store = open(settings.store).await?;
        let since = store.port().last(&config.agent).await?;
        let mut builder = AgentBuilder::from_shared(config, store.port(), model);
        for tool in parts.tools {
            builder = builder.any_tool(Arc::new(tool));
        }
        for channel in parts.channels {
            builder = builder.channel(channel);
        }
        let agent = builder.start().await?;
        Ok(Agent::new(agent, store, since))
    })
}

struct Parts {
    tools: Vec<PyTool>,
    channels: Vec<PyChannel>,
}

/// Where an agent lives.
pub(crate) enum Home {
    /// In memory, for as long as the process.
    Memory(Arc<MemoryStore>),
    /// In a file.
    File(Arc<SqliteStore>),
}

impl Home {
    fn port(&self) -> Arc<dyn Store> {
        match self {
            Home::Memory(store) => store.clone(),
            Home::File(store) => store.clone(),
        }
    }
}

async fn open(path: Option<PathBuf>) -> Result<Home, Fault> {
    let Some(path) = path else { return Ok(Home::Memory(Arc::new(MemoryStore::new()))) };
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&path, Options::default()));
    let opened = opening.await.map_err(|error| Fault::Store(error.to_string()))?;
    Ok(Home::File(Arc::new(opened?)))
}

fn provider(server: &HashMap<String, String>) -> Result<Provider, Fault> {
    let config = klbr_llm::Config::from_lookup(|name| server.get(name).cloned())?;
    let config = config.ok_or_else(|| {
        Fault::Config("no model server: give base_url, or set KLBR_BASE_URL or OPENAI_BASE_URL".to_owned())
    })?;
    Ok(Provider::new(config)?)
}
