//! Requests over the wire.
//!
//! Owns the client and what its errors mean. Refuses the process's proxies, redirects that would carry a
//! key elsewhere, and bodies without bound.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use klbr_core::model::Failure;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::time::{Instant, timeout_at};

use crate::config::{ConfigError, Secret};
use crate::failure::{self, retry_after};

/// The most of an error's or a list's body that is read.
const MOST: usize = 4 << 20;

/// How long an error's body may take.
const ERROR_BODY: Duration = Duration::from_secs(5);

/// Whether a client has to speak to `https` addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    Plain,
    Tls,
}

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: Client,
    key: Option<Secret>,
}

impl Http {
    pub(crate) fn new(
        key: Option<Secret>,
        connect: Duration,
        security: Security,
    ) -> Result<Self, ConfigError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls(security)?)
            .connect_timeout(connect)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("klbr/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ConfigError::Tls(error.into()))?;
        Ok(Http { client, key })
    }

    /// Sends a JSON body and gives a successful response.
    pub(crate) async fn post(
        &self,
        url: Url,
        body: Vec<u8>,
        deadline: Deadline,
    ) -> Result<Response, Refusal> {
        let request = self.client.request(Method::POST, url);
        self.send(request.header(CONTENT_TYPE, "application/json").body(body), deadline).await
    }

    /// Gets a document and gives its text.
    pub(crate) async fn get(&self, url: Url, deadline: Deadline) -> Result<String, Failure> {
        let response = self
            .send(self.client.request(Method::GET, url), deadline)
            .await
            .map_err(Refusal::into_failure)?;
        self.text(response, deadline).await
    }

    /// The text of a response.
    pub(crate) async fn text(&self, response: Response, deadline: Deadline) -> Result<String, Failure> {
        deadline.within(read_text(response)).await?.map_err(|error| disconnected(&error))
    }

    async fn send(&self, mut request: RequestBuilder, deadline: Deadline) -> Result<Response, Refusal> {
        if let Some(key) = &self.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .expect("a key is graphic ASCII, by its constructor");
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let response = deadline.within(request.send()).await?.map_err(|error| disconnected(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            let message = format!("redirected to {to}: the base URL is another one");
            return Err(Failure::Refused { status: Some(status.as_u16()), message }.into());
        }
        let asked = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| retry_after::in_header(value.to_str().ok()?, SystemTime::now()));
        let body = self.redact(read_error(response).await);
        let failure = failure::from_response(status.as_u16(), asked, &body);
        let answer = Answer { status: status.as_u16(), words: failure::words(&body) };
        Err(Refusal { failure, answer: Some(answer) })
    }

    /// A server's words without the key, should it repeat it.
    pub(crate) fn redact(&self, words: String) -> String {
        match &self.key {
            Some(key) if words.contains(key.expose()) => words.replace(key.expose(), "(the key)"),
            _ => words,
        }
    }
}

/// What came instead of a successful response.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    /// The server's answer, if it gave one.
    pub(crate) answer: Option<Answer>,
}

/// A server's answer that is no success.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// What it says, in lower case.
    pub(crate) words: String,
}

impl Refusal {
    pub(crate) fn into_failure(self) -> Failure {
        self.failure
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal { failure, answer: None }
    }
}

/// When a wait ends, and how long it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    after: Duration,
}

impl Deadline {
    pub(crate) fn after(after: Duration) -> Self {
        let now = Instant::now();
        // A wait that the clock cannot express is one of a century.
        let at = now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(3_000_000_000));
        Deadline { at, after }
    }

    /// Waits for a future, as long as the wait lasts.
    ///
    /// # Errors
    ///
    /// Fails as stalled when the wait is over before the future is.
    pub(crate) async fn within<T>(self, future: impl Future<Output = T>) -> Result<T, Failure> {
        timeout_at(self.at, future).await.map_err(|_| Failure::Stalled(self.after))
    }
}

/// The words of a transport's error and its causes, without the address.
pub(crate) fn words(error: &reqwest::Error) -> String {
    let mut words =
        if error.is_connect() { "connecting failed".to_owned() } else { "the connection broke".to_owned() };
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

fn disconnected(error: &reqwest::Error) -> Failure {
    Failure::Disconnected(words(error))
}

async fn read_text(mut response: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of an error's body, as far as it comes soon: the status has said what matters.
async fn read_error(mut response: Response) -> String {
    let deadline = Deadline::after(ERROR_BODY);
    let mut bytes = Vec::new();
    while let Ok(Ok(Some(chunk))) = deadline.within(response.chunk()).await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The platform's certificates, loaded only where an address needs them; no provider is installed globally.
fn tls(security: Security) -> Result<ClientConfig, ConfigError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError::Tls(error.into()))?;
    let builder = match security {
        Security::Plain => builder.with_root_certificates(RootCertStore::empty()),
        Security::Tls => builder.with_platform_verifier().map_err(|error| ConfigError::Tls(error.into()))?,
    };
    Ok(builder.with_no_client_auth())
}
