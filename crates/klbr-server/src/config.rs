//! What a daemon is configured with, and how that is put together.
//!
//! Owns the precedence flag > environment > `klbr.toml` > default (`C-HOME`), and refusals that name where a
//! setting came from. Refuses to read the process: flags and environment are lookups that are handed in.

mod discord;
mod file;
mod layers;
mod model;
mod python;
mod workspace;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use klbr_core::ids::AgentName;
use klbr_core::model::ToolChoice;
use klbr_llm::discovery::Candidate;
pub use klbr_workspace::code::Isolation;

use crate::pause::Pause;
pub use file::SETTINGS;
pub use klbr_core::config::Toolset;
use layers::Layers;
pub use python::{PythonConfig, SelfActivation};

/// Looks a setting up by its environment name; `None` when it is not set there.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything a daemon is told. Debug output shows no secret.
#[derive(Clone, Debug)]
pub struct Config {
    /// The home directory; made when it is not there.
    pub home: PathBuf,
    /// Where the API listens.
    pub listen: SocketAddr,
    /// Whether it may listen beyond loopback.
    pub allow_remote: bool,
    /// Host names that requests may name, besides this machine's own loopback names.
    pub hosts: Vec<String>,
    /// The agent.
    pub agent: AgentConfig,
    /// The model server.
    pub server: ServerChoice,
    /// Discord; off when there is none.
    pub discord: Option<klbr_discord::Settings>,
    /// Whether the agent may run command lines.
    pub process_tool: bool,
    /// Where the agent works, if anywhere: what its prompt tells of a place, and where its processes begin.
    pub workspace: Option<WorkspaceConfig>,
    /// The code that the agent may work on, if any.
    pub code: Option<CodeConfig>,
    /// Policy and cells in Python.
    pub python: Python,
    /// How a process is started in which hard files are parsed; without it they are parsed in the daemon's own.
    pub parser: Option<Isolation>,
    /// Names of environment variables that hold secrets; processes that the agent starts do not get them.
    pub secret_variables: Vec<String>,
    /// What policy in Python may ask of the host's environment, by name.
    pub variables: Variables,
    /// Where to stand still, for proofs.
    pub pause: Option<Pause>,
}

/// Whether Python is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Python {
    /// It is.
    On(PythonConfig),
    /// Nobody asked for it. What an earlier host put in force goes on; nothing new that needs it is taken.
    Unasked(PythonConfig),
    /// It is switched off: slots that a policy owns have nobody who answers.
    Off,
}

type OwnedLookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// A lookup in the host's environment. Debug output shows no value.
#[derive(Clone)]
pub struct Variables(Arc<OwnedLookup>);

impl Variables {
    /// Looks variables up with this.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Variables(Arc::new(lookup))
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Variables")
    }
}

/// What is told of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its name.
    pub name: AgentName,
    /// The soul that it begins with, once; later it is what the operator says.
    pub soul: Option<String>,
    /// The model's name; the server's first when it is none.
    pub model: Option<String>,
    /// The effort level.
    pub effort: Option<String>,
    /// The model's context in tokens; what the server tells when it is none.
    pub context_tokens: Option<u64>,
    /// The most tokens one reply may have.
    pub max_output_tokens: Option<u32>,
    /// Whether each reply has to call something.
    pub tool_choice: ToolChoice,
}

/// The folder that an agent works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    /// The folder; relative to the home where it is relative. Instruction files (`AGENTS.md`, else `CLAUDE.md`) are
    /// read from here down to where work starts.
    pub root: PathBuf,
    /// Where work starts: the root, or a folder below it.
    pub start: PathBuf,
}

/// The code that an agent works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeConfig {
    /// The folder; relative to the home where it is relative.
    pub root: PathBuf,
    /// Whether the agent may change it.
    pub write: bool,
}

/// Which model server is used.
#[derive(Clone, Debug)]
pub enum ServerChoice {
    /// This one. Boxed, since it is far larger.
    At(Box<klbr_llm::Config>),
    /// The first of these that answers and offers a model.
    Discover(Vec<Candidate>),
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}:{line}: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The file has a key that means nothing here.
    #[error("{}:{line}: there is no setting {key:?}{}", path.display(), Nearest(nearest.as_deref()))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key, with its table.
        key: String,
        /// The known key that is most like it.
        nearest: Option<String>,
    },
    /// A value is none of those that its setting takes.
    #[error("{origin}: {problem}")]
    Value {
        /// Where the value came from.
        origin: String,
        /// What is wrong with it; never shows a secret.
        problem: String,
    },
    /// No secure connection is possible here.
    #[error(transparent)]
    Model(klbr_llm::ConfigError),
}

struct Nearest<'a>(Option<&'a str>);

impl std::fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(key) => write!(f, "; did you mean {key:?}?"),
            None => Ok(()),
        }
    }
}

impl Config {
    /// The defaults: loopback on a free port, an agent named `klbr`, servers on this machine.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Config {
            home: home.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            allow_remote: false,
            hosts: Vec::new(),
            agent: AgentConfig {
                name: "klbr".parse().expect("the default name is one"),
                soul: None,
                model: None,
                effort: None,
                context_tokens: None,
                max_output_tokens: None,
                tool_choice: ToolChoice::Auto,
            },
            server: ServerChoice::Discover(klbr_llm::discovery::usual_candidates()),
            discord: None,
            process_tool: false,
            workspace: None,
            code: None,
            python: Python::Unasked(PythonConfig::default()),
            parser: None,
            secret_variables: Vec::new(),
            variables: Variables::new(|_| None),
            pause: None,
        }
    }

    /// Puts a configuration together. Flags are looked up by the environment's names too.
    ///
    /// # Errors
    ///
    /// Fails when the file is not what it should be, or a value cannot be used; says where it came from.
    pub fn load(home: &Path, flags: Lookup<'_>, environment: Lookup<'_>) -> Result<Self, ConfigError> {
        let layers = Layers::read(home, flags, environment)?;
        let mut config = Config::new(home);
        layers.set(LISTEN, &mut config.listen, "an address like 127.0.0.1:4711")?;
        layers.set(ALLOW_REMOTE, &mut config.allow_remote, "true or false")?;
        layers.set(PROCESS_TOOL, &mut config.process_tool, "true or false")?;
        config.code = workspace::code(home, &layers)?;
        config.workspace = workspace::workspace(home, &layers, config.code.as_ref())?;
        if let Some(hosts) = layers.get(HOSTS) {
            config.hosts = hosts.text.split(',').map(|host| host.trim().to_owned()).collect();
            config.hosts.retain(|host| !host.is_empty());
        }
        let agent = &mut config.agent;
        layers.set(AGENT, &mut agent.name, "a name of a-z, 0-9, - and _, beginning with a letter")?;
        agent.soul = layers.get(SOUL).map(|soul| soul.text);
        agent.model = layers.get(MODEL).map(|model| model.text);
        agent.effort = layers.get(EFFORT).map(|effort| effort.text);
        agent.context_tokens = layers.parse(CONTEXT_TOKENS, "a number of tokens")?;
        agent.max_output_tokens = layers.parse(MAX_OUTPUT_TOKENS, "a number of tokens")?;
        layers.set(TOOL_CHOICE, &mut agent.tool_choice, "auto or required")?;
        config.python = match (python::python(home, &layers)?, layers.get(PYTHON_ENABLED)) {
            (Some(python), _) => Python::On(python),
            (None, Some(_)) => Python::Off,
            (None, None) => Python::Unasked(python::unconfigured(home, &layers)),
        };
        config.pause = layers.parse(PAUSE_AT, &Pause::expected())?;
        config.secret_variables = model::secret_variables(&layers);
        config.secret_variables.extend(discord::secret_variables(&layers));
        config.discord = discord::settings(home, &layers)?;
        if let Some(server) = model::server(home, &layers)? {
            config.server = ServerChoice::At(Box::new(server));
        }
        Ok(config)
    }
}

/// The home directory: `KLBR_HOME`, else `.klbr` in the directory that `HOME` names.
pub fn home(environment: Lookup<'_>) -> Option<PathBuf> {
    let set = |name: &str| environment(name).filter(|value| !value.trim().is_empty()).map(PathBuf::from);
    set(HOME).or_else(|| set("HOME").map(|user| user.join(".klbr")))
}

/// The home directory.
pub const HOME: &str = "KLBR_HOME";
/// Where the API listens; `127.0.0.1:0` by default.
pub const LISTEN: &str = "KLBR_LISTEN";
/// Whether it may listen beyond loopback.
pub const ALLOW_REMOTE: &str = "KLBR_ALLOW_REMOTE";
/// Further host names of requests, with commas between.
pub const HOSTS: &str = "KLBR_HOSTS";
/// The agent's name.
pub const AGENT: &str = "KLBR_AGENT";
/// The soul that a new agent begins with.
pub const SOUL: &str = "KLBR_SOUL";
/// The model's name.
pub const MODEL: &str = "KLBR_MODEL";
/// The effort level.
pub const EFFORT: &str = "KLBR_EFFORT";
/// The model's context in tokens.
pub const CONTEXT_TOKENS: &str = "KLBR_CONTEXT_TOKENS";
/// The most tokens of one reply.
pub const MAX_OUTPUT_TOKENS: &str = "KLBR_MAX_OUTPUT_TOKENS";
/// Whether each reply has to call something: `auto` or `required`.
pub const TOOL_CHOICE: &str = "KLBR_TOOL_CHOICE";
/// A file that holds the key for the model server.
pub const API_KEY_FILE: &str = "KLBR_API_KEY_FILE";
/// The name of a variable that holds the key; only in `klbr.toml`.
pub(crate) const API_KEY_ENV: &str = "KLBR_API_KEY_ENV";
/// The name of a variable that holds the Discord token.
pub(crate) const DISCORD_TOKEN_ENV: &str = "KLBR_DISCORD_TOKEN_ENV";
/// A file that holds the Discord token.
pub(crate) const DISCORD_TOKEN_FILE: &str = "KLBR_DISCORD_TOKEN_FILE";
/// Whether the agent may run command lines; only in `klbr.toml`.
pub(crate) const PROCESS_TOOL: &str = "KLBR_PROCESS_TOOL";
/// The folder that the agent works in.
pub const WORKSPACE_ROOT: &str = "KLBR_WORKSPACE_ROOT";
/// Where in it work starts; relative to it.
pub const WORKSPACE_START: &str = "KLBR_WORKSPACE_START";
/// The folder of code that the agent may work on.
pub const CODE_ROOT: &str = "KLBR_CODE_ROOT";
/// Whether it has the actions for that; only in `klbr.toml`.
pub(crate) const CODE_ENABLED: &str = "KLBR_CODE_ENABLED";
/// Whether it may change that code; only in `klbr.toml`.
pub(crate) const CODE_WRITE: &str = "KLBR_CODE_WRITE";
/// Whether Python is used; true when anything else is said of it.
pub const PYTHON_ENABLED: &str = "KLBR_PYTHON_ENABLED";
/// The interpreter: a path, or a name on `PATH`.
pub const PYTHON: &str = "KLBR_PYTHON";
/// The most memory of one process, in MiB.
pub const PYTHON_MEMORY: &str = "KLBR_PYTHON_MEMORY_MB";
/// The most processor time of one process over its whole life, in seconds.
pub const PYTHON_CPU: &str = "KLBR_PYTHON_CPU_SECS";
/// The most open files of one process.
pub const PYTHON_FILES: &str = "KLBR_PYTHON_OPEN_FILES";
/// How the model acts: `tools`, `python` or `both`.
pub const PYTHON_ACTIONS: &str = "KLBR_PYTHON_ACTIONS";
/// Whether the agent may put policy in force: `ask` or `allow`; only in `klbr.toml`.
pub(crate) const PYTHON_SELF_ACTIVATION: &str = "KLBR_PYTHON_SELF_ACTIVATION";
/// What is logged; see [`crate::logging`].
pub const LOG: &str = "KLBR_LOG";
/// Where to stand still; see [`crate::pause`].
pub(crate) const PAUSE_AT: &str = "KLBR_PAUSE_AT";
