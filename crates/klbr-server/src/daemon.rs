//! The daemon: a home that is owned, an agent that lives in it, and the API in front of it.
//!
//! Owns the order of starting and stopping. The API answers from the first moment; the agent follows.

mod error;
mod hosting;
mod running;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use klbr_core::runtime::model::Model;
use klbr_core::runtime::probe::Probe;
use klbr_store::HomeLock;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::Address;
use crate::config::Config;
use crate::home::{Home, Token};
use crate::host::{Given, Hosted};
use crate::http;
use crate::model::LateModel;
use crate::pause::StandStill;
use crate::process;
pub use error::{StartError, whole_story};
pub use running::Running;

/// What the daemon calls itself, to whoever finds its home in use.
const PROGRAM: &str = concat!("klbrd ", env!("CARGO_PKG_VERSION"));

/// A daemon that is to be started.
pub struct Daemon {
    config: Config,
    model: Option<(Arc<str>, Arc<dyn Model>)>,
    probe: Option<Arc<dyn Probe>>,
}

impl Daemon {
    /// Begins with a configuration.
    pub fn new(config: Config) -> Self {
        let probe = config.pause.map(|pause| Arc::new(StandStill::new(pause)) as Arc<dyn Probe>);
        Daemon { config, model: None, probe }
    }

    /// Gives the agent a model of the host's own, by this name, instead of a server's.
    #[must_use]
    pub fn model(mut self, name: impl Into<Arc<str>>, model: impl Model) -> Self {
        self.model = Some((name.into(), Arc::new(model)));
        self
    }

    /// Keeps the agent off its channels: nothing is heard, and nothing is said there. For whoever holds a home
    /// only for a moment.
    #[must_use]
    pub fn without_channels(mut self) -> Self {
        self.config.discord = None;
        self
    }

    /// Has the named points watched, instead of by what the configuration says.
    #[must_use]
    pub fn probe(mut self, probe: impl Probe) -> Self {
        self.probe = Some(Arc::new(probe));
        self
    }

    /// Takes the home and opens the API; the agent is then started in the background, see
    /// [`Running::ready`].
    ///
    /// # Errors
    ///
    /// Fails when the home is in use or unusable, when it may not or cannot listen, or when the model server
    /// needs what this machine does not have.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing running.
    pub async fn start(self) -> Result<Running, StartError> {
        let Daemon { config, model, probe } = self;
        let started = Instant::now();
        let home = Home::new(&config.home);
        let unusable = |source| StartError::Home { path: config.home.clone(), source };
        home.create().map_err(unusable)?;
        let lock = HomeLock::acquire(home.dir(), PROGRAM)?;
        let leftovers = process::kill_leftovers(&home.fingerprint());
        if leftovers > 0 {
            tracing::warn!(
                leftovers,
                "killed processes that an earlier daemon of this home had left running"
            );
        }
        let token = Token::read_or_make(&home.token())?;
        let listener = listen(&config).await?;
        let addr =
            listener.local_addr().map_err(|source| StartError::Listen { addr: config.listen, source })?;

        let (given, model): (Given, Arc<dyn Model>) = match model {
            Some((name, model)) => (Given::BuiltIn(name), model),
            None => {
                let agent = &config.agent;
                let late =
                    LateModel::new(&config.server, agent.model.clone(), agent.context_tokens.is_none())
                        .map_err(StartError::Model)?;
                (Given::Late(late.clone()), Arc::new(late))
            }
        };
        let hosted = Arc::new(Hosted::new(config.agent.name.clone(), given));
        let stop = CancellationToken::new();
        let shared = Arc::new(http::Shared {
            hosted: hosted.clone(),
            token: token.clone(),
            hosts: http::hosts(&config.hosts, addr),
            home: home.clone(),
            started,
            stop: stop.clone(),
        });
        home.write_address(&Address { addr, pid: std::process::id() }).map_err(unusable)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(http::serve(listener, shared));
        tasks.spawn(hosting::host(config, model, probe, hosted.clone(), stop.clone()));
        tracing::info!(%addr, home = %home.dir().display(), "listening");
        Ok(Running { home, addr, token, hosted, stop, tasks, _lock: lock })
    }
}

async fn listen(config: &Config) -> Result<TcpListener, StartError> {
    let addr: SocketAddr = config.listen;
    if !addr.ip().is_loopback() && !config.allow_remote {
        return Err(StartError::NotLoopback { addr });
    }
    TcpListener::bind(addr).await.map_err(|source| StartError::Listen { addr, source })
}
