//! What the controls of all fakes have in common, on both sides.
//!
//! Owns the asking and the waiting of a client, with a watchdog on each wait, and the holding of a server's answer and
//! of a gate. Refuses to know any fake.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, watch};

use crate::process::ProcessError;

/// The longest that a question for news is held open.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The most that one call lets through a gate.
const MOST_RELEASED: usize = 1 << 20;

/// Why a control could not be spoken to, or a wait ended.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The fake's process could not be had.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The control did not answer.
    #[error("the fake's control does not answer: {0}")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The control refused.
    #[error("the fake's control says {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The watchdog rang first.
    #[error("{what} did not come within {} ms; seen instead: {seen}", .watchdog.as_millis())]
    Watchdog {
        /// What was waited for.
        what: String,
        /// How long.
        watchdog: Duration,
        /// The last entries that were there.
        seen: String,
    },
}

impl From<reqwest::Error> for ClientError {
    fn from(error: reqwest::Error) -> ClientError {
        ClientError::Unreachable(Box::new(error))
    }
}

/// Which entries are asked for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct After {
    /// Those after this number.
    pub(crate) after: u64,
    /// How long to wait for one if there is none, in milliseconds.
    pub(crate) wait_ms: u64,
}

/// A client's way to one control.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    root: String,
    pub(crate) http: reqwest::Client,
}

impl Line {
    pub(crate) fn new(root: String) -> Line {
        Line { root, http: crate::http::client() }
    }

    /// The address of a path; of the root itself where it is empty.
    pub(crate) fn url(&self, path: &str) -> String {
        if path.is_empty() { self.root.clone() } else { format!("{}/{path}", self.root) }
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: impl Serialize,
    ) -> Result<T, ClientError> {
        Ok(self.send(self.http.get(self.url(path)).query(&query)).await?.json().await?)
    }

    pub(crate) async fn send(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, ClientError> {
        let response = request.send().await?;
        let status = response.status().as_u16();
        if status < 400 {
            return Ok(response);
        }
        Err(ClientError::Refused { status, message: response.text().await? })
    }

    /// Waits for an entry after number `after` for which `wanted` says yes; one that is there counts.
    pub(crate) async fn wait<T: DeserializeOwned + std::fmt::Debug>(
        &self,
        (path, what): (&str, &str),
        mut after: u64,
        watchdog: Duration,
        number: impl Fn(&T) -> u64,
        wanted: impl Fn(&T) -> bool,
    ) -> Result<T, ClientError> {
        let until = Instant::now() + watchdog;
        let mut seen = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let wait_ms = left.as_millis().try_into().unwrap_or(u64::MAX);
            let news: Vec<T> = self.get(path, After { after, wait_ms }).await?;
            for entry in news {
                if wanted(&entry) {
                    return Ok(entry);
                }
                after = after.max(number(&entry));
                seen.push(entry);
            }
            if left.is_zero() {
                let seen = format!("{:?}", &seen[seen.len().saturating_sub(5)..]);
                return Err(ClientError::Watchdog { what: what.to_owned(), watchdog, seen });
            }
        }
    }
}

/// Holds a question open until `read` finds something, or for as long as it was asked to.
pub(crate) async fn news<T>(
    mut changes: watch::Receiver<u64>,
    wait_ms: u64,
    read: impl Fn() -> Vec<T>,
) -> Vec<T> {
    let waiting = async {
        loop {
            changes.borrow_and_update();
            let found = read();
            // What is read outlives every question, so that a change can always come.
            if !found.is_empty() || changes.changed().await.is_err() {
                return found;
            }
        }
    };
    let limit = Duration::from_millis(wait_ms).min(LONGEST_WAIT);
    tokio::time::timeout(limit, waiting).await.unwrap_or_default()
}

/// Gates that let as many through as they were released for, before or after they came.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Gates {
    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }

    /// Waits to be let through.
    pub(crate) async fn pass(&self, name: &str) {
        // Gates are never closed, so that waiting can only end with a permit.
        if let Ok(permit) = self.gate(name).acquire().await {
            permit.forget();
        }
    }

    /// Lets so many through.
    pub(crate) fn release(&self, name: &str, times: usize) {
        self.gate(name).add_permits(times.min(MOST_RELEASED));
    }
}
