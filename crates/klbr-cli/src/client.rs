//! The daemon's API from the outside: one request, one answer; and the stream of updates.
//!
//! Owns how a failed request is told apart: nobody answers, or somebody says no. Refuses to retry; see
//! `follow` and the chat's outbox for who does.

pub(crate) mod follow;

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use klbr_core::ids::{ActionId, AgentName, EventId};
use klbr_server::api::{self, path};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CommandError;
use crate::home;

/// How long an answer may take; a search of a long history is the slowest.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of the daemon that holds a home. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    home: PathBuf,
    agent: AgentName,
    name: &'static str,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// Nobody answers, or not to the end.
    #[error("the daemon does not answer")]
    Unreachable(#[source] Box<dyn StdError + Send + Sync>),
    /// The daemon says no.
    #[error("{}", problem.message)]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words.
        problem: api::Problem,
    },
}

impl CallError {
    /// Whether the same request may be answered later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            CallError::Unreachable(_) => true,
            CallError::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
        }
    }
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unreachable(source) => {
                CommandError::remote("the daemon does not answer", "see whether it runs: klbr doctor")
                    .because(source)
            }
            CallError::Refused { status, problem } => {
                let hint = problem.hint.unwrap_or_else(|| match status {
                    401 | 403 => {
                        "the token in the home is not the one the daemon began with: restart it".to_owned()
                    }
                    404 => "klbr status lists what is there; --agent names an agent".to_owned(),
                    500.. => "the daemon's log says more".to_owned(),
                    _ if !problem.places.is_empty() => {
                        "correct each line above; nothing was changed".to_owned()
                    }
                    _ => "klbr help says what the command takes".to_owned(),
                });
                let error = match status {
                    401 | 403 => CommandError::config(problem.message, hint),
                    500.. => CommandError::remote(problem.message, hint),
                    _ => CommandError::user(problem.message, hint),
                };
                error.at(problem.places)
            }
        }
    }
}

impl Client {
    /// A client of whoever holds this home. Nothing is connected yet.
    pub(crate) fn new(home: &Path, agent: AgentName) -> Self {
        Client { http: http(), home: home.to_owned(), agent, name: "cli" }
    }

    /// The same client under another name than `cli`, for the record.
    #[must_use]
    pub(crate) fn named(self, name: &'static str) -> Self {
        Client { name, ..self }
    }

    /// Says something. The same key is the same message.
    pub(crate) async fn say(&self, key: &str, text: &str) -> Result<EventId, CallError> {
        let message = api::Message { text: text.to_owned() };
        let accepted: api::Accepted = self.post(path::MESSAGES, key, &message).await?;
        Ok(accepted.event)
    }

    /// Gives a command that takes nothing, such as [`path::INTERRUPT`].
    pub(crate) async fn command(&self, path: &str, key: &str) -> Result<EventId, CallError> {
        let accepted: api::Accepted = self.read(self.request(Method::POST, path)?, Some(key)).await?;
        Ok(accepted.event)
    }

    /// Decides about a held effect.
    pub(crate) async fn resolve(
        &self,
        key: &str,
        action: ActionId,
        allow: bool,
    ) -> Result<EventId, CallError> {
        let path = path::RESOLVE.replace("{action}", &action.to_string());
        let accepted: api::Accepted = self.post(&path, key, &api::Resolution { allow }).await?;
        Ok(accepted.event)
    }

    /// Asks for something.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, CallError> {
        self.read(self.request(Method::GET, path)?.query(query), None).await
    }

    /// Sends something.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T, CallError> {
        self.read(self.request(Method::POST, path)?.json(body), Some(key)).await
    }

    /// Replaces something.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T, CallError> {
        self.read(self.request(Method::PUT, path)?.json(body), Some(key)).await
    }

    /// A request to whoever holds the home at this moment: a daemon that began anew may listen elsewhere.
    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, CallError> {
        let (address, token) =
            home::contact(&self.home).map_err(|error| CallError::Unreachable(error.into()))?;
        let url = format!("{}{}", address.root(), path::of(path, self.agent.as_str()));
        let mut token = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|error| CallError::Unreachable(error.into()))?;
        token.set_sensitive(true);
        Ok(self.http.request(method, url).header(AUTHORIZATION, token).header(api::CLIENT, self.name))
    }

    async fn read<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        key: Option<&str>,
    ) -> Result<T, CallError> {
        let request = match key {
            Some(key) => request.header(api::IDEMPOTENCY_KEY, key),
            None => request,
        };
        let response = answered(request.timeout(PATIENCE)).await?;
        response.json().await.map_err(unreachable)
    }
}

async fn answered(request: RequestBuilder) -> Result<Response, CallError> {
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.text().await.map_err(unreachable)?;
    let problem = serde_json::from_str::<api::ErrorBody>(&text).map(|body| body.error);
    let problem = problem.unwrap_or_else(|_| api::Problem {
        code: "unknown".to_owned(),
        message: format!("the daemon answers {status}: {}", crate::text::fit(&text, 200)),
        hint: None,
        places: Vec::new(),
    });
    Err(CallError::Refused { status: status.as_u16(), problem })
}

fn unreachable(error: reqwest::Error) -> CallError {
    // The address would be in front of every such message.
    CallError::Unreachable(error.without_url().into())
}

/// A client for loopback: no proxy, no certificates.
fn http() -> reqwest::Client {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(5))
        .user_agent(concat!("klbr-cli/", env!("CARGO_PKG_VERSION")))
        .build()
        .expect("nothing of this configuration can fail")
}

/// A key that no other request has.
pub(crate) fn fresh_key(what: &str) -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let random = || RandomState::new().build_hasher().finish();
    format!("{what}-{:016x}{:016x}", random(), random())
}
