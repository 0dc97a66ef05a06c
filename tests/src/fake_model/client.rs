//! The other side of the control API.
//!
//! Owns the asking and the waiting, with a watchdog on each wait. Refuses to judge what it gets.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control::{After, Release};
use super::log::{Captured, Event};
use super::{Options, Ready};
use crate::process::{ProcessError, Program, Running};

/// Why the control could not be spoken to, or a wait ended.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The fake's process could not be had.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The control did not answer.
    #[error("the fake model's control does not answer: {0}")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The control refused.
    #[error("the fake model's control says {status}: {message}")]
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

/// A client of one fake's control API.
#[derive(Clone, Debug)]
pub struct Client {
    control: String,
    http: reqwest::Client,
}

impl Client {
    /// Makes a client for a control API at this root.
    pub fn new(control: impl Into<String>) -> Client {
        Client { control: control.into(), http: crate::http::client() }
    }

    /// Loads a script; a [`Script`](super::Script), or JSON of its form.
    pub async fn load(&self, script: &impl Serialize) -> Result<(), ClientError> {
        self.send(self.http.put(self.url("script")).json(script)).await.map(drop)
    }

    /// All captured requests, oldest first.
    pub async fn requests(&self) -> Result<Vec<Captured>, ClientError> {
        self.get("requests", After::default()).await
    }

    /// The captured chat requests, oldest first.
    pub async fn chats(&self) -> Result<Vec<Captured>, ClientError> {
        Ok(self.requests().await?.into_iter().filter(Captured::is_chat).collect())
    }

    /// All events, oldest first.
    pub async fn events(&self) -> Result<Vec<Event>, ClientError> {
        self.get("events", After::default()).await
    }

    /// Lets one answer through a gate, come or to come.
    pub async fn release(&self, gate: &str) -> Result<(), ClientError> {
        self.release_many(gate, 1).await
    }

    /// Lets several answers through a gate.
    pub async fn release_many(&self, gate: &str, times: usize) -> Result<(), ClientError> {
        let release = Release { gate: gate.to_owned(), times };
        self.send(self.http.post(self.url("release")).json(&release)).await.map(drop)
    }

    /// Forgets what was logged; numbers go on.
    pub async fn clear(&self) -> Result<(), ClientError> {
        self.send(self.http.delete(self.url("log"))).await.map(drop)
    }

    /// Waits for an event after sequence number `after` for which `wanted` says yes; one that is there counts.
    ///
    /// Cancellation loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Watchdog`] names `what` and the last events.
    pub async fn wait_event(
        &self,
        what: &str,
        after: u64,
        watchdog: Duration,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event, ClientError> {
        self.wait("events", what, after, watchdog, |event: &Event| event.seq, wanted).await
    }

    /// Waits for a captured request after number `after` for which `wanted` says yes; one that is there counts.
    ///
    /// Cancellation loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Watchdog`] names `what` and the last requests.
    pub async fn wait_request(
        &self,
        what: &str,
        after: u64,
        watchdog: Duration,
        wanted: impl Fn(&Captured) -> bool,
    ) -> Result<Captured, ClientError> {
        self.wait("requests", what, after, watchdog, |request: &Captured| request.number, wanted).await
    }

    async fn wait<T: DeserializeOwned + std::fmt::Debug>(
        &self,
        path: &str,
        what: &str,
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
                after = number(&entry);
                seen.push(entry);
            }
            if left.is_zero() {
                let seen = format!("{:?}", &seen[seen.len().saturating_sub(5)..]);
                return Err(ClientError::Watchdog { what: what.to_owned(), watchdog, seen });
            }
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, after: After) -> Result<Vec<T>, ClientError> {
        Ok(self.send(self.http.get(self.url(path)).query(&after)).await?.json().await?)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, ClientError> {
        let response = request.send().await?;
        let status = response.status().as_u16();
        if status < 400 {
            return Ok(response);
        }
        Err(ClientError::Refused { status, message: response.text().await? })
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.control)
    }
}

/// A fake model as a child process; dropping it kills it.
#[derive(Debug)]
pub struct FakeModel {
    ready: Ready,
    client: Client,
    running: Running,
}

impl FakeModel {
    /// Starts one on free ports.
    pub async fn start() -> Result<FakeModel, ClientError> {
        FakeModel::start_with(&Options::default()).await
    }

    /// Starts one on these ports, with this script.
    pub async fn start_with(options: &Options) -> Result<FakeModel, ClientError> {
        let program = Program::of_workspace("klbr-tests", "fake-model")?;
        let mut running = program.args(options.to_arguments()).spawn()?;
        let ready: Ready = running.ready(Duration::from_secs(20)).await?;
        let client = Client::new(&ready.control);
        Ok(FakeModel { ready, client, running })
    }

    /// Starts one with a script; a [`Script`](super::Script), or JSON of its form.
    pub async fn scripted(script: &impl Serialize) -> Result<FakeModel, ClientError> {
        let fake = FakeModel::start().await?;
        fake.client.load(script).await?;
        Ok(fake)
    }

    /// Where it is found.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Its control.
    pub fn control(&self) -> &Client {
        &self.client
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Running {
        &mut self.running
    }
}
