//! The HTTP API: one request from its arrival to its answer.
//!
//! Owns the order of things: recorded, authorised, limited, faulted, done, answered. Refuses to know what each route
//! does; that stands in `call`, `channel`, `message`.

mod call;
mod channel;
mod message;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use self::call::Call;
use super::fault::{Make, Scope};
use super::record::{Asked, Outcome};
use super::snowflake::Snowflake;
use super::socket::Peer;
use super::state::{Double, State};
use crate::clock::Stamp;

/// The largest request that Discord takes.
const LARGEST: usize = 25 << 20;

/// What a route did.
#[derive(Debug)]
struct Done {
    status: u16,
    body: Option<Value>,
    message: Option<Snowflake>,
    known_nonce: bool,
}

impl Done {
    fn with(body: Value) -> Done {
        Done { status: 200, body: Some(body), message: None, known_nonce: false }
    }

    fn empty() -> Done {
        Done { status: 204, body: None, message: None, known_nonce: false }
    }

    fn made(body: Value) -> Done {
        Done { status: 201, ..Done::with(body) }
    }
}

/// An error, as Discord tells it.
#[derive(Debug)]
struct Refused {
    status: u16,
    code: u64,
    message: String,
    errors: Option<Value>,
}

impl Refused {
    fn new(status: u16, code: u64, message: &str) -> Refused {
        Refused { status, code, message: message.to_owned(), errors: None }
    }

    /// 400 with code 50035, about one member of the body or the path.
    fn form(member: &str, code: &str, message: &str) -> Refused {
        let errors = json!({member: {"_errors": [{"code": code, "message": message}]}});
        Refused { errors: Some(errors), ..Refused::new(400, 50035, "Invalid Form Body") }
    }

    fn body(&self) -> Value {
        let mut body = json!({"message": self.message, "code": self.code});
        if let Some(errors) = &self.errors {
            body["errors"] = errors.clone();
        }
        body
    }
}

/// What Discord says with a status that it did not mean to answer with.
fn page(status: u16) -> Value {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    json!({"message": format!("{status}: {}", reason.unwrap_or("Unknown")), "code": 0})
}

/// Writes to the record when an answer is ready, or when its client is gone before that.
struct Watch<'a> {
    double: &'a Double,
    number: u64,
    outcome: Option<Outcome>,
}

impl Watch<'_> {
    fn end(&mut self, status: Option<u16>, body: Option<&Value>) {
        if let Some(mut outcome) = self.outcome.take() {
            outcome.at = Stamp::now();
            outcome.status = status;
            let is_error = status.is_some_and(|status| status >= 400);
            outcome.code = body.filter(|_| is_error).and_then(|body| body["code"].as_u64());
            self.double.lock().record.amend(self.number, |asked| asked.outcome = Some(outcome));
        }
    }

    async fn wait_at(&self, gate: &str) {
        self.double.lock().record.amend(self.number, |asked| asked.held = true);
        self.double.gates.pass(gate).await;
    }

    fn note(&mut self, note: impl FnOnce(&mut Outcome)) {
        self.outcome.as_mut().map(note);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.note(|outcome| outcome.abandoned = true);
        self.end(None, None);
    }
}

/// Answers one request.
pub(super) async fn handle(
    Shared(double): Shared<Arc<Double>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, LARGEST).await else {
        return answer(413, HeaderMap::new(), Some(&page(413)));
    };
    let method = head.method.as_str();
    let Some(path) = head.uri.path().strip_prefix("/api/v10") else {
        return answer(404, HeaderMap::new(), Some(&page(404)));
    };
    let query = head.uri.query().unwrap_or_default();
    let call = Call::parse(method, path);
    let route = call.as_ref().map_or("", |(_, route)| *route);
    let key = (format!("{method} {route}"), call::major(path));
    let parsed = match body.as_ref() {
        [] => Value::Null,
        bytes => serde_json::from_slice(bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned())),
    };
    let is_authentic = head.headers.get("authorization").and_then(|value| value.to_str().ok())
        == Some(&format!("Bot {}", double.token));
    let (number, verdict, fault) = {
        let mut state = double.lock();
        let State { limits, settings, record, faults, .. } = &mut *state;
        let mut verdict = limits.take(settings, &key);
        let mut fault = None;
        if verdict.wait.is_none() {
            fault = faults.take(method, route, path, &body);
            if let Some(Make::Limit { retry_after_ms, scope }) = fault {
                let wait = Duration::from_millis(retry_after_ms);
                verdict = limits.refuse(settings, &key, wait, scope, false);
            }
        }
        let number = record.ask(Asked {
            seq: 0,
            number: 0,
            connection: peer.number,
            at: Stamp::now(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            route: route.to_owned(),
            body: parsed.clone(),
            violation: verdict.violation,
            held: false,
            outcome: None,
        });
        (number, verdict, fault)
    };
    let outcome = Outcome {
        at: Stamp::now(),
        status: None,
        code: None,
        message: None,
        known_nonce: false,
        fault: fault.as_ref().map(|fault| fault.name().to_owned()),
        performed: false,
        abandoned: false,
    };
    let mut watch = Watch { double: &double, number, outcome: Some(outcome) };
    if let Some((wait, scope)) = verdict.wait {
        let words = match scope {
            Scope::Shared => "The resource is being rate limited.",
            Scope::User | Scope::Global => "You are being rate limited.",
        };
        // Discord's are seconds with milliseconds; never less than what is left.
        let seconds = (wait.as_secs_f64() * 1000.0).ceil() / 1000.0;
        let body = json!({"message": words, "retry_after": seconds, "global": scope == Scope::Global});
        watch.end(Some(429), Some(&body));
        return answer(429, verdict.headers, Some(&body));
    }
    match &fault {
        Some(Make::Delay(ms)) => tokio::time::sleep(Duration::from_millis(*ms)).await,
        Some(Make::Hold(gate)) => watch.wait_at(gate).await,
        Some(Make::Cut) => {
            watch.end(None, None);
            peer.cut();
            return Response::default();
        }
        Some(Make::Fail { status, body }) => {
            let body = body.clone().unwrap_or_else(|| page(*status));
            watch.end(Some(*status), Some(&body));
            return answer(*status, verdict.headers, Some(&body));
        }
        _ => {}
    }
    let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    let done = match call {
        Some(_) if !is_authentic => Err(Refused::new(401, 0, "401: Unauthorized")),
        Some((call, _)) => call.and_then(|call| {
            let body = form(&body, content_type, parsed)?;
            let mut state = double.lock();
            call.perform(&mut state, &double.address, number, query, body)
        }),
        None => Err(Refused::new(404, 0, "404: Not Found")),
    };
    let (status, body) = match done {
        Ok(done) => {
            watch.note(|outcome| {
                outcome.performed = true;
                outcome.message = done.message;
                outcome.known_nonce = done.known_nonce;
            });
            (done.status, done.body)
        }
        Err(refused) => (refused.status, Some(refused.body())),
    };
    match fault {
        Some(Make::DelayAfter(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Some(Make::HoldAfter(gate)) => watch.wait_at(&gate).await,
        Some(Make::CutAfter) => {
            watch.end(None, None);
            peer.cut();
            return Response::default();
        }
        Some(Make::FailAfter { status, body }) => {
            let body = body.unwrap_or_else(|| page(status));
            watch.end(Some(status), Some(&body));
            return answer(status, verdict.headers, Some(&body));
        }
        Some(Make::CutBody(bytes)) => peer.cut_after(bytes),
        Some(Make::Garble) => {
            watch.end(Some(status), None);
            let mut response = answer(status, verdict.headers, None);
            *response.body_mut() = Body::from("{\"id\": <html>");
            return response;
        }
        _ => {}
    }
    watch.end(Some(status), body.as_ref());
    answer(status, verdict.headers, body.as_ref())
}

/// The body of a form, which is JSON or nothing.
fn form(body: &Bytes, content_type: Option<&str>, parsed: Value) -> Result<Value, Refused> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    if content_type.is_none_or(|kind| !kind.starts_with("application/json")) {
        let words = "Expected \"Content-Type\" header to be one of {'application/json'}.";
        return Err(Refused::form("_errors", "CONTENT_TYPE_INVALID", words));
    }
    if parsed.is_string() {
        return Err(Refused::new(400, 50109, "The request body contains invalid JSON."));
    }
    Ok(parsed)
}

fn answer(status: u16, headers: HeaderMap, body: Option<&Value>) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    if let Some(body) = body {
        *response.body_mut() = Body::from(body.to_string());
        response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    }
    response
}
