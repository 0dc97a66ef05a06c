//! A daemon that runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::runtime::AgentHandle;
use klbr_store::HomeLock;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::error::StartError;
use crate::home::{Home, Token};
use crate::host::{Hosted, Slot};

/// How long an orderly end may take (`B-ID-3` allows 5 s).
const ORDERLY: Duration = Duration::from_millis(4_500);

/// A daemon that runs. Dropped without [`Running::shutdown`], it ends at once, as if it were killed: nothing
/// that was accepted is lost.
pub struct Running {
    pub(super) home: Home,
    pub(super) addr: SocketAddr,
    pub(super) token: Token,
    pub(super) hosted: Arc<Hosted>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: JoinSet<()>,
    // Last: the home is given up when everything else has been.
    pub(super) _lock: HomeLock,
}

impl Running {
    /// Where the API listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The operator's token.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The file that holds the token.
    pub fn token_path(&self) -> PathBuf {
        self.home.token()
    }

    /// The home that it owns.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns when the agent lives, with a handle to it.
    ///
    /// # Errors
    ///
    /// Fails when it could not be started, or was stopped before.
    pub async fn ready(&self) -> Result<AgentHandle, Arc<StartError>> {
        match self.hosted.settled().await {
            Slot::Ready(handle) => Ok(handle),
            Slot::Failed(error) => Err(error),
            Slot::Starting | Slot::Stopping => Err(Arc::new(StartError::Stopped)),
        }
    }

    /// Returns when a client has asked for the daemon's end; call [`Running::shutdown`] then.
    ///
    /// Cancel safe.
    pub async fn stop_requested(&self) {
        self.stop.cancelled().await;
    }

    /// Returns when the agent could not be started, or has ended by itself. The API still answers then.
    ///
    /// Cancel safe.
    pub async fn failed(&self) -> Arc<StartError> {
        self.hosted.failed().await
    }

    /// Ends in order, within 5 s: clients are let go, samplings dropped, actions cancelled, everything
    /// committed, the home given up (`B-ID-3`).
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(ORDERLY, all).await.is_err() {
            tracing::warn!("not everything ended in time; what was accepted is durable all the same");
        }
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        self.home.remove_address();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
