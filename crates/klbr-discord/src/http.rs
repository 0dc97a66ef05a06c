//! Discord's REST API.
//!
//! Owns the transport and what its ends mean: what certainly did not go out, what may have, what was refused. The
//! addresses are twilight-http's routes. Its client is not used: it answers a 429 by asking again at once where the
//! limit is global, hides every 429 from its caller, and takes an answer that it cannot parse for a failure, also after
//! the message was made. Here rate limits are waited for in one place, for as long as the caller has time.

mod api;
mod failure;
mod limits;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Client, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use twilight_http::request::Method;
use twilight_http::routing::Route;

use crate::settings::{Settings, Token};
pub(crate) use api::{PAGE, Page, Post, is_by};
pub(crate) use failure::Failure;
use limits::Limits;

/// The most of an answer's body that is read.
const MOST: usize = 16 << 20;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one request may take; one that takes longer may have been carried out.
const REQUEST: Duration = Duration::from_secs(15);

/// Why nothing can be asked of Discord at all.
#[derive(Debug, thiserror::Error)]
#[error("no secure connections are possible here: {0}")]
pub struct TlsError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// A client of the API.
pub(crate) struct Http {
    client: Client,
    base: String,
    token: Token,
    limits: Limits,
}

impl Http {
    pub(crate) fn new(settings: &Settings) -> Result<Self, TlsError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls(settings.api_url.starts_with("https:"))?)
            .connect_timeout(CONNECT)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| TlsError(error.into()))?;
        let (base, token) = (settings.api_url.clone(), settings.token.clone());
        Ok(Http { client, base, token, limits: Limits::default() })
    }

    /// Makes a request, waiting for rate limits as long as there is time; gives the answer's body, `Null` when it
    /// cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits for a limit, nothing has gone out; dropped later, it may have been carried out.
    pub(crate) async fn call(
        &self,
        route: &Route<'_>,
        body: Option<&Value>,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        let path = route.to_string();
        let key = limits::key(route.method(), &path);
        loop {
            self.limits.wait(&key, deadline).await?;
            let (status, headers, body) = self.once(route.method(), &path, body, deadline).await?;
            self.limits.learn(&key, &headers);
            match status {
                200..300 => return Ok(body.unwrap_or_default()),
                429 => self.limits.refuse(&key, &headers, &body.unwrap_or_default()),
                _ => return Err(Failure::of(status, body)),
            }
        }
    }

    /// Makes one request; gives the status, the headers, and the body if it is JSON.
    async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        deadline: Instant,
    ) -> Result<(u16, HeaderMap, Option<Value>), Failure> {
        let mut authorization = HeaderValue::from_str(&format!("Bot {}", self.token.expose()))
            .expect("a token is graphic ASCII, by its constructor");
        authorization.set_sensitive(true);
        let mut request = self
            .client
            .request(reqwest_method(method), format!("{}/{path}", self.base))
            .header(AUTHORIZATION, authorization)
            .header(
                USER_AGENT,
                concat!("DiscordBot (https://github.com/klbr-rs/klbr, ", env!("CARGO_PKG_VERSION"), ")"),
            );
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let deadline = deadline.min(Instant::now() + REQUEST);
        let late = |_| Failure::Unclear("no answer came in time".to_owned());
        let answer = timeout_at(deadline, request.send()).await.map_err(late)?;
        let mut answer = answer.map_err(|error| Failure::of_transport(&error))?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let mut bytes = Vec::new();
        // The status has said what matters: a body that breaks off is one that cannot be read.
        while let Ok(Ok(Some(chunk))) = timeout_at(deadline, answer.chunk()).await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST {
                break;
            }
        }
        Ok((status, headers, serde_json::from_slice(&bytes).ok()))
    }
}

fn reqwest_method(method: Method) -> reqwest::Method {
    match method {
        Method::Delete => reqwest::Method::DELETE,
        Method::Patch => reqwest::Method::PATCH,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        // The type may grow; what it is not yet known for is not asked for.
        _ => reqwest::Method::GET,
    }
}

/// The platform's certificates, loaded only where an address needs them; no provider is installed globally.
pub(crate) fn tls(is_needed: bool) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(error.into()))?;
    let builder = match is_needed {
        false => builder.with_root_certificates(RootCertStore::empty()),
        true => builder.with_platform_verifier().map_err(|error| TlsError(error.into()))?,
    };
    Ok(builder.with_no_client_auth())
}
