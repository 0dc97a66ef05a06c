//! What every verb works with: the home, the agent, and the ways to them.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use klbr_core::ids::AgentName;
use klbr_core::model::{Failure, Request};
use klbr_core::runtime::model::{Model, Reply};
use klbr_server::{Daemon, Running};
use serde::Serialize;

use crate::client::Client;
use crate::error::{CommandError, Outcome};
use crate::home::{self, Holder};
use crate::offline::Offline;
use crate::wiring;

/// What every verb works with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) home: PathBuf,
    pub(crate) agent: Option<AgentName>,
    pub(crate) json: bool,
}

/// How an agent is reached.
pub(crate) enum Reach {
    /// Through the daemon that holds the home.
    Daemon(Client),
    /// In what is kept: nobody holds the home. Boxed, since it is far larger.
    Kept(Box<Offline>),
}

impl Context {
    /// The configuration of the home.
    pub(crate) fn config(&self) -> Outcome<klbr_server::config::Config> {
        wiring::config(&self.home, self.agent.as_ref())
    }

    /// The agent that is meant: the one named, else the one that the home is configured for.
    pub(crate) fn agent(&self) -> Outcome<AgentName> {
        match &self.agent {
            Some(agent) => Ok(agent.clone()),
            None => Ok(self.config()?.agent.name),
        }
    }

    /// A client of the daemon, if one holds the home.
    pub(crate) fn daemon(&self) -> Outcome<Option<Client>> {
        home::require(&self.home)?;
        match home::holder(&self.home)? {
            Holder::Daemon(_) => Ok(Some(Client::new(&self.home, self.agent()?))),
            Holder::Nobody => Ok(None),
        }
    }

    /// A client of the daemon.
    ///
    /// # Errors
    ///
    /// Fails when none holds the home.
    pub(crate) fn require_daemon(&self) -> Outcome<Client> {
        self.daemon()?.ok_or_else(|| {
            CommandError::remote(
                format!("no daemon runs on {}", self.home.display()),
                "klbr run starts one, klbr chat hosts one while you talk",
            )
        })
    }

    /// The agent, by whichever way there is.
    pub(crate) async fn reach(&self) -> Outcome<Reach> {
        match self.daemon()? {
            Some(client) => Ok(Reach::Daemon(client)),
            None => Ok(Reach::Kept(Box::new(Offline::open(self).await?))),
        }
    }

    /// Does something through the API: of the daemon that holds the home, else of one that holds it only for
    /// this and asks no model anything.
    pub(crate) async fn through_api<T>(&self, work: impl AsyncFnOnce(&Client) -> Outcome<T>) -> Outcome<T> {
        if let Some(client) = self.daemon()? {
            return work(&client).await;
        }
        let config = self.config()?;
        let model = config.agent.model.clone().unwrap_or_else(|| "auto".to_owned());
        let client = Client::new(&self.home, config.agent.name.clone());
        let running = start(Daemon::new(config).model(model, Silent).without_channels()).await?;
        let outcome = work(&client).await;
        running.shutdown().await;
        outcome
    }

    /// Prints an answer: for programs, or for people.
    pub(crate) fn print(&self, json: &impl Serialize, text: impl FnOnce() -> String) -> Outcome {
        let mut stdout = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut stdout, json).map_err(io::Error::from)?;
            writeln!(stdout)?;
        } else {
            let text = text();
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            write!(stdout, "{text}{end}")?;
        }
        Ok(stdout.flush()?)
    }
}

/// Starts a daemon in this process, and returns when its agent lives.
pub(crate) async fn start(daemon: Daemon) -> Outcome<Running> {
    let running = daemon.start().await?;
    match running.ready().await {
        Ok(_) => Ok(running),
        Err(error) => {
            running.shutdown().await;
            Err(error.into())
        }
    }
}

/// A model that is never heard: whoever holds a home for one command asks nothing of the agent's model.
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn sample(&self, _request: Request) -> Result<Reply, Failure> {
        std::future::pending().await
    }
}

impl From<Arc<klbr_server::StartError>> for CommandError {
    fn from(error: Arc<klbr_server::StartError>) -> Self {
        crate::error::start(&error)
    }
}
