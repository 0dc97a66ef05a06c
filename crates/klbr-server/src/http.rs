//! The API: its router, and how it is served until the daemon stops.

mod control;
mod error;
mod extract;
mod guard;
mod memory;
mod openapi;
mod policy;
mod read;
mod routes;
mod stream;
mod system;
mod workbench;
mod ws;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::home::{Home, Token};
use crate::host::Hosted;

/// The largest body that is read.
const MAX_BODY: usize = 1024 * 1024;

/// How long clients may take to hear the last of an answer when the daemon stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// What every handler may look at.
pub(crate) struct Shared {
    pub(crate) hosted: Arc<Hosted>,
    pub(crate) token: Token,
    pub(crate) hosts: BTreeSet<String>,
    pub(crate) home: Home,
    pub(crate) started: Instant,
    pub(crate) stop: CancellationToken,
}

pub(crate) use guard::hosts;

/// Serves until the daemon stops, and a moment longer for answers under way.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let stop = shared.stop.clone();
    let serving =
        axum::serve(listener, router(shared)).with_graceful_shutdown(stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        // Only what is still being served then is cut off.
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        served = serving.into_future() => {
            if let Err(error) = served {
                tracing::error!(%error, "the API ended");
            }
        }
        () = overdue => {}
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    for route in routes::routes() {
        router = router.route(route.path, route.handler);
    }
    router
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(shared.clone(), guard::guard))
        .with_state(shared)
}
