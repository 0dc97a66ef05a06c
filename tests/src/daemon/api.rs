//! The plain questions of the daemon's API.

use std::time::{Duration, Instant};

use klbr_core::ledger::Ledger;
use klbr_core::record::Stamped;
use klbr_server::api::policy::{Activated, Candidate, Policy};
use klbr_server::api::{
    Accepted, AgentStatus, ErrorBody, Hits, IDEMPOTENCY_KEY, Message, Records, State, path,
};
use serde::de::DeserializeOwned;

use crate::http;

/// The agent's name, as the daemon has it when nothing else is configured.
const AGENT: &str = "klbr";

/// How many records one question asks for.
const PAGE: usize = 1_000;

/// Why an answer is missing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// None came.
    #[error("klbrd does not answer: {0}")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It said no.
    #[error("klbrd says {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// A state did not come.
    #[error("klbrd was not {what} within {} ms: {seen}", .watchdog.as_millis())]
    Watchdog {
        /// Which state.
        what: String,
        /// How long.
        watchdog: Duration,
        /// What it said last.
        seen: String,
    },
}

impl From<reqwest::Error> for ApiError {
    fn from(error: reqwest::Error) -> ApiError {
        ApiError::Unreachable(Box::new(error))
    }
}

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Api {
    root: String,
    token: String,
    http: reqwest::Client,
}

impl Api {
    /// A client of the daemon that listens at this address.
    pub fn new(addr: &str, token: &str) -> Api {
        Api { root: format!("http://{addr}"), token: token.to_owned(), http: http::client() }
    }

    /// Says something as the operator, under a key that names the message.
    ///
    /// # Errors
    /// Fails when there is no acknowledgement; the message may be admitted all the same.
    pub async fn say(&self, key: &str, text: &str) -> Result<Accepted, ApiError> {
        let request = self.request(reqwest::Method::POST, path::MESSAGES).header(IDEMPOTENCY_KEY, key);
        answer(request.json(&Message { text: text.to_owned() })).await
    }

    /// Admits an event from outside, from the channel of this instance name.
    ///
    /// # Errors
    /// Fails when there is no acknowledgement; the event may be admitted all the same.
    pub async fn tell(
        &self,
        instance: &str,
        external_id: &str,
        priority: &str,
        text: &str,
    ) -> Result<Accepted, ApiError> {
        let event = serde_json::json!({
            "source": {"kind": "channel", "instance": instance},
            "external_id": external_id,
            "priority": priority,
            "conversation": "#builds",
            "text": text,
        });
        answer(self.request(reqwest::Method::POST, path::EVENTS).json(&event)).await
    }

    /// Looks for a text in the history.
    ///
    /// # Errors
    /// Fails when there is no answer.
    pub async fn find(&self, text: &str) -> Result<Hits, ApiError> {
        answer(self.request(reqwest::Method::GET, path::HISTORY).query(&[("text", text)])).await
    }

    /// Gives a command without a body, such as [`path::INTERRUPT`].
    ///
    /// # Errors
    /// Fails when there is no acknowledgement.
    pub async fn command(&self, path: &str) -> Result<Accepted, ApiError> {
        answer(self.request(reqwest::Method::POST, path)).await
    }

    /// Puts a manifest in force.
    ///
    /// # Errors
    /// Fails when it is refused, or when there is no answer.
    pub async fn activate(&self, manifest: &str) -> Result<Activated, ApiError> {
        let (file, text) = ("manifest.toml".to_owned(), manifest.to_owned());
        let candidate = Candidate { file, text, expected: None, now: false };
        answer(self.request(reqwest::Method::POST, path::POLICY_ACTIVATE).json(&candidate)).await
    }

    /// The policy in force.
    ///
    /// # Errors
    /// Fails when there is no answer.
    pub async fn policy(&self) -> Result<Policy, ApiError> {
        answer(self.request(reqwest::Method::GET, path::POLICY)).await
    }

    /// How the agent is doing.
    ///
    /// # Errors
    /// Fails when there is no answer.
    pub async fn status(&self) -> Result<AgentStatus, ApiError> {
        answer(self.request(reqwest::Method::GET, path::STATUS)).await
    }

    /// The ledger.
    ///
    /// # Errors
    /// Fails when there is no answer.
    pub async fn ledger(&self) -> Result<Ledger, ApiError> {
        answer(self.request(reqwest::Method::GET, path::LEDGER)).await
    }

    /// Every record.
    ///
    /// # Errors
    /// Fails when there is no answer, or a record cannot be read.
    pub async fn records(&self) -> Result<Vec<Stamped>, ApiError> {
        let mut all: Vec<Stamped> = Vec::new();
        loop {
            let after = all.last().map_or(0, |last| last.seq.0);
            let query = [("after", after.to_string()), ("limit", PAGE.to_string())];
            let page: Records =
                answer(self.request(reqwest::Method::GET, path::RECORDS).query(&query)).await?;
            let is_last = page.next.is_none();
            for record in page.records {
                all.push(
                    serde_json::from_value(record).map_err(|error| ApiError::Unreachable(error.into()))?,
                );
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The stream of updates after record `after`, as it arrives.
    ///
    /// # Errors
    /// Fails when there is no stream.
    pub async fn updates(&self, after: u64) -> Result<reqwest::Response, ApiError> {
        let request =
            self.request(reqwest::Method::GET, path::EVENTS).header("last-event-id", after.to_string());
        checked(request.send().await?).await
    }

    /// Asks for the status until it is so.
    ///
    /// # Errors
    /// Fails when the watchdog rings first.
    pub async fn until(
        &self,
        what: &str,
        watchdog: Duration,
        is_so: impl Fn(&AgentStatus) -> bool,
    ) -> Result<AgentStatus, ApiError> {
        let begun = Instant::now();
        loop {
            let status = self.status().await;
            if let Ok(status) = &status
                && is_so(status)
            {
                return Ok(status.clone());
            }
            if begun.elapsed() > watchdog {
                let seen = match status {
                    Ok(status) => serde_json::to_string(&status).unwrap_or_default(),
                    Err(error) => error.to_string(),
                };
                return Err(ApiError::Watchdog { what: what.to_owned(), watchdog, seen });
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until the agent lives.
    ///
    /// # Errors
    /// Fails when the watchdog rings first.
    pub async fn ready(&self, watchdog: Duration) -> Result<AgentStatus, ApiError> {
        self.until("ready", watchdog, |status| status.state == State::Ready).await
    }

    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.root, path::of(path, AGENT));
        self.http.request(method, url).bearer_auth(&self.token)
    }
}

async fn answer<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, ApiError> {
    let request = request.timeout(Duration::from_secs(10));
    Ok(checked(request.send().await?).await?.json().await?)
}

async fn checked(response: reqwest::Response) -> Result<reqwest::Response, ApiError> {
    let status = response.status().as_u16();
    if status < 400 {
        return Ok(response);
    }
    let text = response.text().await?;
    let message = serde_json::from_str::<ErrorBody>(&text).map_or(text, |body| body.error.message);
    Err(ApiError::Refused { status, message })
}
