//! The real daemon `klbrd` as a child of a proof, and a client that knows only its wire.
//!
//! Owns the daemon's life, the plain questions of its API ([`Api`]) and the following of its updates across restarts
//! ([`Follower`]). Refuses to judge what it is told.

mod api;
mod follower;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::discord_double;
use crate::process::{ProcessError, Program, Running, beside};
pub use api::{Api, ApiError};
pub use follower::Follower;

/// How long a daemon may take until it listens.
const STARTS: Duration = Duration::from_secs(20);

/// How a daemon is started: nothing of the proof's own environment reaches it but `PATH`.
#[derive(Clone, Debug)]
pub struct Klbrd {
    program: Program,
    home: PathBuf,
}

/// The line that it prints once it listens.
#[derive(Debug, Deserialize)]
struct Listening {
    addr: String,
    token_path: PathBuf,
}

impl Klbrd {
    /// A daemon on this home, from `folder`, or from where cargo puts this workspace's binaries.
    ///
    /// # Errors
    /// [`ProcessError::NotBuilt`] says which cargo command builds it.
    pub fn on(home: &Path, folder: Option<&Path>) -> Result<Klbrd, ProcessError> {
        let program = Program::at(beside("klbrd", folder)?);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = program.bare_env().env("PATH", path).env("KLBR_HOME", home).env("KLBR_LOG", "warn");
        Ok(Klbrd { program, home: home.to_owned() })
    }

    /// Uses the model server at this base URL.
    #[must_use]
    pub fn model(self, base: &str) -> Klbrd {
        self.env("KLBR_BASE_URL", base).env("KLBR_MODEL", "m")
    }

    /// Takes part at this double of Discord, and gathers chatter for a fifth of a second only.
    #[must_use]
    pub fn discord(self, double: &discord_double::Ready) -> Klbrd {
        self.env("KLBR_DISCORD_TOKEN", &double.token)
            .env("KLBR_DISCORD_API_URL", &double.api)
            .env("KLBR_DISCORD_GATEWAY_URL", &double.gateway)
            .env("KLBR_DISCORD_BATCH_SECS", "0.2")
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Klbrd {
        Klbrd { program: self.program.env(name, value), ..self }
    }

    /// Lets the agent run command lines; the home's `klbr.toml` is replaced.
    ///
    /// # Errors
    /// Fails when the home cannot be written.
    pub fn with_processes(self) -> std::io::Result<Klbrd> {
        std::fs::create_dir_all(&self.home)?;
        std::fs::write(self.home.join("klbr.toml"), "[tools]\nprocess = true\n")?;
        Ok(self)
    }

    /// Starts it; the kernel kills it with the proof.
    ///
    /// # Errors
    /// Fails when it cannot be started.
    pub fn spawn(self) -> Result<Running, ProcessError> {
        self.program.bound_to_parent()?.spawn()
    }

    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// Fails when it ends before, or takes too long.
    pub async fn start(self) -> Result<Daemon, ProcessError> {
        let mut running = self.spawn()?;
        let api = listening(&mut running).await?;
        Ok(Daemon { running, api })
    }
}

/// Waits until a started daemon listens, and makes a client for it. Cancellation loses nothing.
///
/// # Errors
/// Fails when it ends before, takes too long, or has no readable token.
pub async fn listening(running: &mut Running) -> Result<Api, ProcessError> {
    let listening: Listening = running.ready(STARTS).await?;
    let token = std::fs::read_to_string(&listening.token_path).map_err(|source| ProcessError::System {
        program: "klbrd".into(),
        doing: "reading its token",
        source,
    })?;
    Ok(Api::new(&listening.addr, token.trim()))
}

/// A daemon that listens. Dropping it kills it.
#[derive(Debug)]
pub struct Daemon {
    /// Its process.
    pub running: Running,
    /// Its client.
    pub api: Api,
}
