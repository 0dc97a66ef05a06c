//! Why a daemon did not start, and what to do about it.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use klbr_store::{LockError, OpenError};

use crate::home::TokenError;

/// A daemon, or its agent, that could not be started. Nothing was lost.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The home cannot be used.
    #[error("the home {} cannot be used", path.display())]
    Home {
        /// The home.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The home is in use, or cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The token cannot be had.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// It may not listen there.
    #[error("listening on {addr} would let other machines in")]
    NotLoopback {
        /// The address.
        addr: SocketAddr,
    },
    /// It cannot listen there.
    #[error("the API cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The folder that the agent is to work in is not there.
    #[error("the folder {} cannot be worked in", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The code that the agent is to work on is not there.
    #[error("the folder of code {} cannot be used", path.display())]
    Code {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The model server cannot be spoken to from here.
    #[error(transparent)]
    Model(klbr_llm::ConfigError),
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The agent cannot be started.
    #[error(transparent)]
    Agent(#[from] klbr_core::runtime::StartError),
    /// Discord cannot be spoken to from here.
    #[error(transparent)]
    Discord(#[from] klbr_discord::TlsError),
    /// Its loop ended by itself; what it had committed stays.
    #[error("the agent's loop ended by itself")]
    Ended,
    /// It was stopped before it was ready.
    #[error("the daemon was stopped before its agent was ready")]
    Stopped,
}

impl StartError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StartError::Home { .. } => {
                Some("name another directory with KLBR_HOME, or make this one writable")
            }
            StartError::Lock(LockError::Held { .. }) => Some(
                "use the daemon that runs, stop it with `klbr stop`, or name another home with KLBR_HOME",
            ),
            StartError::Lock(_) => Some("make the home writable"),
            StartError::Workspace { .. } => Some("name a folder with workspace.root in klbr.toml"),
            StartError::Code { .. } => Some("name a folder with code.root in klbr.toml"),
            StartError::Token(TokenError::Randomness(_)) | StartError::Model(_) => None,
            StartError::Token(_) => Some("make the file readable, or delete it: a new token is made then"),
            StartError::NotLoopback { .. } => {
                Some("listen on 127.0.0.1, or set KLBR_ALLOW_REMOTE=true if you mean it")
            }
            StartError::Listen { .. } => Some("free the port, or listen on port 0 to be given a free one"),
            StartError::Store(OpenError::Damaged { .. }) => {
                Some("restore a backup as klbr.db, or move the damaged file away to begin anew")
            }
            StartError::Discord(_) => {
                Some("install the system's certificates, or set KLBR_DISCORD_ENABLED=false")
            }
            StartError::Store(_) | StartError::Agent(_) => None,
            StartError::Ended => Some("start the daemon again, and report what the log says"),
            StartError::Stopped => None,
        }
    }

    /// Whether the operator's own settings are the cause, rather than this machine or klbr.
    pub fn is_setting(&self) -> bool {
        matches!(self, StartError::NotLoopback { .. } | StartError::Listen { .. } | StartError::Model(_))
    }
}

/// An error with all its causes, in one line.
pub fn whole_story(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
