//! Answers that are no success: one shape, a word for programs, a hint for people.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use klbr_core::runtime::store::StoreError;
use klbr_core::runtime::{AdmitError, Stopped};

use crate::api::{ErrorBody, Place, Problem};

/// A request that is not answered as it was asked.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    problem: Problem,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let (code, message) = (code.to_owned(), message.into());
        ApiError { status, problem: Problem { code, message, hint: None, places: Vec::new() } }
    }

    pub(super) fn bad_request(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
        self
    }

    pub(super) fn at(mut self, places: Vec<Place>) -> Self {
        self.problem.places = places;
        self
    }

    pub(super) fn starting() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "starting", "the agent is still reading its history")
            .hint("ask again in a moment; its status says when it is ready")
    }

    pub(super) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the daemon is stopping").hint(
            "start it again; a message that was not acknowledged may be sent again with its Idempotency-Key",
        )
    }

    pub(super) fn failed(why: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "failed", format!("the agent could not be started: {why}"))
            .hint("the daemon's log says more")
    }

    pub(super) fn into_problem(self) -> Problem {
        self.problem
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(ErrorBody { error: self.problem })).into_response();
        let extra = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

impl From<AdmitError> for ApiError {
    fn from(error: AdmitError) -> Self {
        match error {
            AdmitError::Invalid(error) => Self::bad_request("invalid_event", error.to_string()),
            AdmitError::Store(why) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_failed",
                format!("the event could not be made durable: {why}"),
            )
            .hint("nothing of it is kept; send it again with the same Idempotency-Key"),
            AdmitError::Stopped => Self::stopping(),
        }
    }
}

impl From<Stopped> for ApiError {
    fn from(_: Stopped) -> Self {
        Self::stopping()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_failed", error.to_string())
            .hint("`klbr store check` looks at the database")
    }
}

pub(super) async fn no_such_path() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown_path", "there is nothing at this path")
        .hint("GET /openapi.json lists what there is")
}

pub(super) async fn no_such_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "unknown_method", "this path does not take this method")
        .hint("GET /openapi.json lists what there is")
}
