//! The other side of the control API.
//!
//! Owns the asking and the waiting, with a watchdog on each wait. Refuses to judge what it gets.

use std::time::Duration;

use serde::Serialize;

use super::control::Release;
use super::log::{Captured, Event};
use super::{Options, Ready};
use crate::control::{After, ClientError, Line};
use crate::process::{Program, Running};

/// A client of one fake's control API.
#[derive(Clone, Debug)]
pub struct Client {
    line: Line,
}

impl Client {
    /// Makes a client for a control API at this root.
    pub fn new(control: impl Into<String>) -> Client {
        Client { line: Line::new(control.into()) }
    }

    /// Loads a script; a [`Script`](super::Script), or JSON of its form.
    pub async fn load(&self, script: &impl Serialize) -> Result<(), ClientError> {
        self.line.send(self.line.http.put(self.line.url("script")).json(script)).await.map(drop)
    }

    /// All captured requests, oldest first.
    pub async fn requests(&self) -> Result<Vec<Captured>, ClientError> {
        self.line.get("requests", After::default()).await
    }

    /// The captured chat requests, oldest first.
    pub async fn chats(&self) -> Result<Vec<Captured>, ClientError> {
        Ok(self.requests().await?.into_iter().filter(Captured::is_chat).collect())
    }

    /// All events, oldest first.
    pub async fn events(&self) -> Result<Vec<Event>, ClientError> {
        self.line.get("events", After::default()).await
    }

    /// Lets one answer through a gate, come or to come.
    pub async fn release(&self, gate: &str) -> Result<(), ClientError> {
        self.release_many(gate, 1).await
    }

    /// Lets several answers through a gate.
    pub async fn release_many(&self, gate: &str, times: usize) -> Result<(), ClientError> {
        let release = Release { gate: gate.to_owned(), times };
        self.line.send(self.line.http.post(self.line.url("release")).json(&release)).await.map(drop)
    }

    /// Forgets what was logged; numbers go on.
    pub async fn clear(&self) -> Result<(), ClientError> {
        self.line.send(self.line.http.delete(self.line.url("log"))).await.map(drop)
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
        self.line.wait(("events", what), after, watchdog, |event: &Event| event.seq, wanted).await
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
        self.line.wait(("requests", what), after, watchdog, |request: &Captured| request.number, wanted).await
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
