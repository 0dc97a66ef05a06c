//! How an agent is put together and started.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

use super::channel::Channel;
use super::clock::{Clock, SystemClock};
use super::driver::{Driver, Ports, RunError};
use super::handle::AgentHandle;
use super::local::LocalChannel;
use super::model::Model;
use super::policy::Policy;
use super::probe::Probe;
use super::store::Store;
use super::surroundings::Surroundings;
use super::tool::{AnyTool, Tool};
use super::tools::{HistoryExpand, HistorySearch, MemoryTool, Recall};
use crate::agent::wait_tool;
use crate::config::Config;

/// Puts an agent together: a configuration, a store, a model, and what it can do.
///
/// It can always speak to its operator, wait, search its history, recall results and remember.
///
/// ```no_run
/// # async fn example(model: impl klbr_core::runtime::model::Model, store: impl klbr_core::runtime::store::Store)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use klbr_core::config::Config;
/// use klbr_core::runtime::AgentBuilder;
///
/// let config = Config::new("ada".parse()?, "qwen3");
/// let agent = AgentBuilder::new(config, store, model).start().await?;
/// agent.handle().say("greeting", "Hello!").await?;
/// agent.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct AgentBuilder {
    config: Config,
    store: Arc<dyn Store>,
    model: Arc<dyn Model>,
    tools: Vec<Arc<dyn AnyTool>>,
    channels: Vec<Arc<dyn Channel>>,
    policy: Option<Arc<dyn Policy>>,
    surroundings: Option<Arc<dyn Surroundings>>,
    clock: Arc<dyn Clock>,
    probe: Option<Arc<dyn Probe>>,
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Two actions have one name; a call could not say which it means.
    #[error("two actions are named {0:?}; give one of them another name")]
    DuplicateAction(String),
    /// Two channels have one instance name.
    #[error("two channels are named {0:?}; give one of them another instance name")]
    DuplicateChannel(String),
    /// Its history could not be read.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl AgentBuilder {
    /// Begins with the parts that every agent needs.
    pub fn new(config: Config, store: impl Store, model: impl Model) -> Self {
        Self::from_shared(config, Arc::new(store), Arc::new(model))
    }

    /// Begins with parts that other agents use too.
    pub fn from_shared(config: Config, store: Arc<dyn Store>, model: Arc<dyn Model>) -> Self {
        let builder = AgentBuilder {
            config,
            store,
            model,
            tools: Vec::new(),
            channels: Vec::new(),
            policy: None,
            surroundings: None,
            clock: Arc::new(SystemClock),
            probe: None,
        };
        builder.channel(LocalChannel).tool(HistorySearch).tool(HistoryExpand).tool(Recall).tool(MemoryTool)
    }

    /// Gives it a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Gives it a tool whose name and schema are known only at run time.
    #[must_use]
    pub fn any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Gives it a channel to speak through.
    #[must_use]
    pub fn channel(mut self, channel: impl Channel) -> Self {
        self.channels.push(Arc::new(channel));
        self
    }

    /// Gives some of its decisions an owner.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.config.bound = policy.slots();
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Has it told what its host knows and may change: modes, instruction files, a plan.
    #[must_use]
    pub fn surroundings(mut self, surroundings: impl Surroundings) -> Self {
        self.surroundings = Some(Arc::new(surroundings));
        self
    }

    /// Replaces its clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Has the named points watched.
    #[must_use]
    pub fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Restores the agent from its store and lets it live, on the tokio runtime at hand.
    ///
    /// # Errors
    ///
    /// Fails when two parts have one name, or when the history cannot be read.
    pub async fn start(self) -> Result<RunningAgent, StartError> {
        let (config, tools, channels) = self.registry()?;
        let config = Arc::new(config);
        let (requests, incoming) = mpsc::channel(4096);
        let (updates, _) = broadcast::channel(4096);
        let handle =
            AgentHandle::new(config.agent.clone(), requests, updates.downgrade(), self.store.clone());
        let ports = Ports {
            config,
            store: self.store,
            model: self.model,
            tools,
            channels,
            policy: self.policy,
            surroundings: self.surroundings,
            clock: self.clock,
            probe: self.probe,
        };
        let driver = Driver::restore(ports, incoming, updates).await?;
        Ok(RunningAgent { handle, driver: tokio::spawn(driver.run()) })
    }

    /// The one registry: deliveries, the wait, then tools in the order in which they were given.
    #[expect(clippy::type_complexity, reason = "the two maps are named where they are used")]
    fn registry(
        &self,
    ) -> Result<(Config, HashMap<Arc<str>, Arc<dyn AnyTool>>, HashMap<Arc<str>, Arc<dyn Channel>>), StartError>
    {
        let mut config = self.config.clone();
        let mut channels: HashMap<Arc<str>, Arc<dyn Channel>> = HashMap::new();
        let mut tools: HashMap<Arc<str>, Arc<dyn AnyTool>> = HashMap::new();
        for channel in &self.channels {
            let instance: Arc<str> = channel.instance().into();
            config.channels.insert(instance.clone(), channel.settings());
            config.actions.push(channel.delivery_action());
            config.actions.extend(channel.mark_action());
            if channels.insert(instance.clone(), channel.clone()).is_some() {
                return Err(StartError::DuplicateChannel(instance.to_string()));
            }
        }
        config.actions.push(wait_tool());
        for tool in &self.tools {
            let spec = tool.spec();
            tools.insert(spec.name().into(), tool.clone());
            config.actions.push(spec);
        }
        let mut names: Vec<&str> = config.actions.iter().map(|spec| spec.name()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(StartError::DuplicateAction(pair[0].to_owned()));
        }
        Ok((config, tools, channels))
    }
}

/// An agent that lives. Dropped without [`RunningAgent::shutdown`], it stops once its last handle is gone.
pub struct RunningAgent {
    handle: AgentHandle,
    driver: JoinHandle<()>,
}

impl RunningAgent {
    /// A handle to it.
    pub fn handle(&self) -> &AgentHandle {
        &self.handle
    }

    /// Stops it in order, and returns when it has stopped (`B-ID-3`).
    pub async fn shutdown(self) {
        self.handle.shutdown().await;
        // A driver that panicked has stopped too; what it had committed stays.
        let _ = self.driver.await;
    }

    /// Returns when it has stopped, whoever stopped it.
    pub async fn stopped(&mut self) {
        // As above.
        let _ = (&mut self.driver).await;
    }
}
