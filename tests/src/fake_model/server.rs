//! The fake's sockets: accepting, reading, answering, and seeing the client go.
//!
//! Owns each connection's life. While an answer is played, the reading side is watched all the time, so that a drop
//! is stamped at once, whether bytes flow, a gate is shut, or the stream stalls. Refuses to decide what is said.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::net::tcp::WriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::http::{Incoming, Reader, Request, Writer};
use super::log::{Captured, DropHow, EndHow, Log, What};
use super::operator::content;
use super::plan::{self, Asked, Step};
use super::script::{Script, When};
use crate::clock::Stamp;
use crate::control::Gates;

/// What all connections and the control share.
pub(super) struct Shared {
    pub(super) log: Log,
    scripted: Mutex<Scripted>,
    pub(super) gates: Gates,
}

struct Scripted {
    script: Arc<Script>,
    used: Vec<u64>,
    chats: u64,
}

impl Shared {
    pub(super) fn new(script: Script) -> Shared {
        let shared = Shared {
            log: Log::new(),
            scripted: Mutex::new(Scripted { script: Arc::default(), used: Vec::new(), chats: 0 }),
            gates: Gates::default(),
        };
        shared.load(script);
        shared
    }

    /// Puts a script in force; its counts begin anew, answers that are being played go on.
    pub(super) fn load(&self, script: Script) {
        let used = vec![0; script.rules.len()];
        *lock(&self.scripted) = Scripted { script: Arc::new(script), used, chats: 0 };
    }

    /// The rule that answers and its steps.
    fn plan(&self, request: &Request, number: u64) -> (Option<usize>, Vec<Step>) {
        let path = request.path.split('?').next().unwrap_or_default();
        let mut scripted = lock(&self.scripted);
        let script = Arc::clone(&scripted.script);
        if let Some(page) = script.pages.get(path) {
            return (None, plan::page(page.status, &page.body));
        }
        if (request.method.as_str(), path) != ("POST", "/v1/chat/completions") {
            return (None, page(&request.method, path, &script));
        }
        scripted.chats += 1;
        let body: Value = match serde_json::from_slice(&request.body) {
            Ok(body) => body,
            Err(error) => return (None, refused(400, &format!("the body is not JSON: {error}"))),
        };
        let asked = Asked { body, size: request.body.len(), number };
        let nth = scripted.chats;
        let matching = script.rules.iter().enumerate().find(|(index, rule)| {
            rule.times.is_none_or(|times| scripted.used[*index] < times)
                && rule.when.holds(&asked, &request.body, nth)
        });
        let Some((index, rule)) = matching else {
            return (None, refused(500, &format!("no rule of the script answers chat request {nth}")));
        };
        scripted.used[index] += 1;
        drop(scripted);
        (Some(index), plan::answer(&script, &rule.answer, &asked))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl When {
    fn holds(&self, asked: &Asked, body: &[u8], nth: u64) -> bool {
        let last = asked.messages().last().unwrap_or(&Value::Null);
        self.nth.is_none_or(|wanted| wanted == nth)
            && self.stream.is_none_or(|wanted| wanted == asked.stream())
            && self.last_role.as_ref().is_none_or(|wanted| last["role"] == wanted.as_str())
            && self.last_contains.as_ref().is_none_or(|wanted| content(last).contains(wanted))
            && self.body_contains.as_ref().is_none_or(|wanted| String::from_utf8_lossy(body).contains(wanted))
    }
}

/// What a llama.cpp server tells beside completions.
fn page(method: &str, path: &str, script: &Script) -> Vec<Step> {
    let context = script.context_tokens;
    let body = match (method, path) {
        ("GET", "/health" | "/v1/health") => json!({"status": "ok"}),
        ("GET", "/v1/models" | "/models") => json!({"object": "list", "data": [{
            "id": script.model, "object": "model", "created": 0, "owned_by": "fake",
            "meta": {"n_ctx": context, "n_ctx_train": context},
        }]}),
        ("GET", "/props") => json!({
            "default_generation_settings": {"n_ctx": context},
            "total_slots": 1,
            "model_alias": script.model,
            "chat_template": "",
        }),
        _ => return refused(404, &format!("nothing is served at {method} {path}")),
    };
    plan::page(200, &body)
}

fn refused(status: u16, message: &str) -> Vec<Step> {
    plan::page(status, &json!({"error": {"message": message, "type": "fake_model_error", "code": status}}))
}

/// Accepts connections until it is dropped, and all of them with it.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let mut count = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                count += 1;
                let (stream, _) = accepted?;
                let at = Stamp::now();
                shared.log.note(at, count, None, What::Connected);
                connections.spawn(connection(stream, count, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

enum Parting {
    Close,
    Reset,
}

enum Played {
    Whole,
    Reset,
    Close,
    Gone(Stamp, DropHow),
}

async fn connection(mut stream: TcpStream, id: u64, shared: Arc<Shared>) {
    // Without it a small write may wait for the peer's acknowledgement; failing to set it costs only latency.
    let _ = stream.set_nodelay(true);
    match converse(&mut stream, id, &shared).await {
        // A zero linger turns the close that follows into a reset.
        Parting::Reset => drop(stream.set_zero_linger()),
        Parting::Close => {}
    }
}

/// Answers one request after another; how the connection shall end.
async fn converse(stream: &mut TcpStream, id: u64, shared: &Shared) -> Parting {
    let (read, mut write) = stream.split();
    let mut reader = Reader::new(read);
    let log = &shared.log;
    loop {
        let request = match reader.request().await {
            Incoming::Request(request) => request,
            Incoming::Gone(at, how) => {
                log.note(at, id, None, What::Dropped { how });
                return Parting::Close;
            }
            Incoming::Unreadable(reason) => {
                log.note(Stamp::now(), id, None, What::Unreadable { reason });
                return Parting::Close;
            }
        };
        let (arrived, method, path) = (request.arrived, request.method.clone(), request.path.clone());
        let keep = request.headers.iter().all(|(name, value)| name != "connection" || value != "close");
        let number = log.capture(|number| captured(&request, number, id));
        let (rule, steps) = shared.plan(&request, number);
        log.note(arrived, id, Some(number), What::Arrived { method, path, rule });
        let played = tokio::select! {
            biased;
            (at, how) = reader.gone() => Played::Gone(at, how),
            played = play(steps, &mut write, shared, (id, number)) => played,
        };
        let note = |what| log.note(Stamp::now(), id, Some(number), what);
        match played {
            Played::Whole if keep => {}
            Played::Whole => return Parting::Close,
            Played::Close => {
                note(What::Ended { how: EndHow::Close });
                return Parting::Close;
            }
            Played::Reset => {
                note(What::Ended { how: EndHow::Reset });
                return Parting::Reset;
            }
            Played::Gone(at, how) => {
                log.note(at, id, Some(number), What::Dropped { how });
                return Parting::Close;
            }
        }
    }
}

fn captured(request: &Request, number: u64, connection: u64) -> Captured {
    Captured {
        number,
        connection,
        began: request.began,
        arrived: request.arrived,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
    }
}

async fn play(
    steps: Vec<Step>,
    half: &mut WriteHalf<'_>,
    shared: &Shared,
    (id, number): (u64, u64),
) -> Played {
    let note = |what| shared.log.note(Stamp::now(), id, Some(number), what);
    let mut writer = Writer::new(half);
    let mut total = 0;
    for step in steps {
        let written = match step {
            Step::Pause(pause) => {
                tokio::time::sleep(pause).await;
                Ok(())
            }
            Step::Gate(gate) => {
                note(What::Holding { gate: gate.clone() });
                shared.gates.pass(&gate).await;
                Ok(())
            }
            Step::Head(head) => {
                let written = writer.head(&head).await;
                note(What::Head { status: head.status });
                written
            }
            Step::Write(bytes) => {
                let written = writer.body(&bytes).await;
                total += bytes.len();
                note(What::Wrote { bytes: bytes.len(), total });
                written
            }
            Step::Forever(bytes, gap) => loop {
                if let Err(error) = writer.body(&bytes).await {
                    break Err(error);
                }
                total += bytes.len();
                note(What::Wrote { bytes: bytes.len(), total });
                tokio::time::sleep(gap).await;
            },
            Step::Stall => {
                note(What::Stalling);
                std::future::pending().await
            }
            Step::Reset => return Played::Reset,
            Step::Close => return Played::Close,
        };
        if written.is_err() {
            return Played::Gone(Stamp::now(), DropHow::Reset);
        }
    }
    if writer.end().await.is_err() {
        return Played::Gone(Stamp::now(), DropHow::Reset);
    }
    note(What::Ended { how: EndHow::Whole });
    Played::Whole
}
