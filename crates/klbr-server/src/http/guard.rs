//! Who may ask at all: requests that name this machine, from no foreign page, with the token.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::error::ApiError;
use super::routes::OPEN;

/// The host names that requests may name: this machine's own, so that a page whose name was made to resolve
/// to it (DNS rebinding) gets nothing.
pub(crate) fn hosts(configured: &[String], addr: SocketAddr) -> BTreeSet<String> {
    let mut hosts: BTreeSet<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
    hosts.extend(configured.iter().map(|host| host.to_ascii_lowercase()));
    if !addr.ip().is_unspecified() {
        hosts.insert(match addr {
            SocketAddr::V4(addr) => addr.ip().to_string(),
            SocketAddr::V6(addr) => format!("[{}]", addr.ip()),
        });
    }
    hosts
}

pub(super) async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    match check(&shared, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(shared: &Shared, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    let host =
        host(request.uri(), headers).filter(|host| shared.hosts.contains(&host.host().to_ascii_lowercase()));
    let Some(host) = host else {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "foreign_host",
            "the request names a host that is not this one",
        )
        .hint("ask 127.0.0.1 or localhost; KLBR_HOSTS names further hosts"));
    };
    if let Some(origin) = headers.get(header::ORIGIN) {
        let is_own = origin.to_str().ok().and_then(origin_authority).is_some_and(|origin| origin == host);
        if !is_own {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "foreign_origin",
                "the request comes from another site's page",
            ));
        }
    }
    if OPEN.contains(&request.uri().path()) {
        return Ok(());
    }
    let offered = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    match offered {
        Some(token) if shared.token.is(token) => Ok(()),
        offered => {
            let message =
                if offered.is_some() { "this is not the home's token" } else { "the request has no token" };
            Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
                .hint("send `Authorization: Bearer …` with what the file `token` in the home holds"))
        }
    }
}

fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut named = headers.get_all(header::HOST).into_iter();
    let header = named.next().and_then(|value| value.to_str().ok()?.parse::<Authority>().ok())?;
    // Two names, or two that differ, are one too many.
    let is_plain = named.next().is_none() && uri.authority().is_none_or(|authority| *authority == header);
    is_plain.then_some(header)
}

fn origin_authority(origin: &str) -> Option<Authority> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?.parse().ok()
}
