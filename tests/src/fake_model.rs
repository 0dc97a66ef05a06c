//! A scripted OpenAI-compatible model server, as a process of its own.
//!
//! Owns a server that says exactly what a script tells it to, byte for byte and moment for moment, and that remembers
//! what it was asked and when its clients went. Refuses to know klbr: it speaks the provider's wire and nothing else.
//!
//! ```text
//! fake-model [--port N] [--control-port N] [--script FILE]
//! ```
//!
//! binds loopback (port 0 by default), prints one line and serves until its standard input ends, or SIGTERM or SIGINT:
//!
//! ```json
//! {"ready":"fake-model","pid":4711,"base":"http://127.0.0.1:40001/v1","server":"http://127.0.0.1:40001","control":"http://127.0.0.1:40002"}
//! ```
//!
//! # Served
//!
//! `POST /v1/chat/completions` (streamed and whole), `GET /v1/models`, `GET /props`, `GET /health` as llama.cpp has
//! them; anything else is 404. A request that no rule answers gets 500 with the reason.
//!
//! # Script
//!
//! JSON; unknown members are refused. The types are in this module: [`Script`] is the whole.
//!
//! ```
//! # let text = r#"
//! {
//!   "model": "m", "context_tokens": 8192, "seed": 7,
//!   "pages": {"/props": {"status": 503, "body": {"error": {"message": "loading"}}}},
//!   "rules": [
//!     {"when": {"nth": 1}, "answer": {"body": {"refuse": {"status": 429, "retry_after": {"seconds": 2}}}}},
//!     {"when": {"last_contains": "hello", "last_role": "user", "stream": true}, "times": 1,
//!      "answer": {
//!        "gate": "late", "delay_ms": 5,
//!        "writes": {"split": {"at": [10, 200]}, "gap_ms": 1},
//!        "cut": {"at": {"byte": 900}, "how": "reset"},
//!        "body": {"reply": {
//!          "reasoning": "inline", "finish": "length", "done": false,
//!          "usage": {"given": {"prompt": 10, "completion": 2, "cached": 8, "chunk": "finish"}},
//!          "parts": [
//!            {"think": {"say": "let me see", "pieces": "words", "gap_ms": 2}},
//!            {"text": "plain"},
//!            {"call": {"name": "local_send", "arguments": {"text": "hi"}, "pieces": {"bytes": 3}, "index": false, "id": ""}},
//!            {"calls": {"layout": "interleaved", "list": [{"name": "a"}, {"name": "b", "repeat_id": true}]}},
//!            {"pause_ms": 5}, {"gate": "g"},
//!            {"data": "{\"type\":\"response.failed\"}"}, {"raw": ": comment\n\n"},
//!            {"error": {"message": "broken", "code": 500}},
//!            {"endless": {"say": "tok ", "gap_ms": 2, "to": "text"}},
//!            "stall"
//!          ]}}}},
//!     {"answer": {"body": {"replay": {"file": "recorded.sse"}}}},
//!     {"answer": {"body": {"refuse": {"status": 400, "says": "overflow"}}}},
//!     {"answer": {"body": {"operator": {"scope": "transcript", "misbehave": {"reset": 0.05, "status_429": 0.05}}}}}
//!   ]
//! }
//! # "#;
//! # let script: klbr_tests::fake_model::Script = serde_json::from_str(text).unwrap();
//! # assert_eq!(script.rules.len(), 5);
//! ```
//!
//! - The first rule whose conditions hold and whose `times` are not used up answers. `times: 1` on each gives an order.
//! - `gate` and `delay_ms` hold back the status line; the parts `gate` and `pause_ms` hold back what follows them.
//! - `stall` never ends by itself; a drop is seen and stamped all the same.
//! - `error` and `data` leave the socket open if `stall` follows.
//! - `cut` counts bytes or writes of the body before the transfer encoding; `"start"` cuts before the status line.
//! - To a request without `stream`, the parts are gathered into one reply; `error` becomes a 500, and `pause_ms`,
//!   `gate`, `stall` and `endless` happen before its status line.
//! - [`Operator`] is a model that answers each operator message once; see there.
//!
//! # Control
//!
//! | request | effect |
//! |---|---|
//! | `PUT /script` | loads a script; 400 says what is wrong and keeps the old one |
//! | `GET /requests?after=N&wait_ms=M` | captured requests ([`Captured`]) after number N, exact to the byte |
//! | `GET /events?after=N&wait_ms=M` | events ([`Event`]) after sequence number N |
//! | `POST /release {"gate": "g", "times": 1}` | lets so many answers through a gate, come or to come |
//! | `DELETE /log` | forgets requests and events; numbers go on |
//!
//! `wait_ms` (at most 30,000) waits for news where there is none yet. [`Client`] speaks it.
//!
//! # Stamps
//!
//! Each event has a [`Stamp`](crate::clock::Stamp): when a request was read whole (`arrived`), when bytes had been
//! handed to the kernel (`head`, `wrote`), and when the client's going was seen (`dropped`), which is when the
//! kernel told of it, whatever the answer was doing.

mod client;
mod control;
mod http;
mod log;
mod operator;
mod plan;
mod reply;
mod script;
mod server;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

pub use crate::control::ClientError;
pub use client::{Client, FakeModel};
pub use log::{Captured, DropHow, EndHow, Event, What};
pub use operator::{Misbehave, Operator, Scope, Template, Tool, WaitIn, answer as answer_operator};
pub use script::{
    Answer, Body, Call, Calls, Channel, Cut, CutAt, CutHow, Endless, Layout, Page, Part, Pieces, Reasoning,
    Refuse, Replay, Reply, RetryAfter, Rule, Say, Says, Script, Slot, Split, Tokens, Usage, UsageChunk, When,
    Writes,
};

/// How the process is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The model's port on loopback; 0 for any.
    pub port: u16,
    /// The control's port on loopback; 0 for any.
    pub control_port: u16,
    /// A script to begin with; without one every chat request is refused.
    pub script: Option<PathBuf>,
}

impl Options {
    /// Reads the command line, without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let port = || value.parse().map_err(|_| format!("{name}: {value:?} is no port"));
            match name.as_str() {
                "--port" => options.port = port()?,
                "--control-port" => options.control_port = port()?,
                "--script" => options.script = Some(value.into()),
                _ => return Err(format!("unknown option {name}; known: --port, --control-port, --script")),
            }
        }
        Ok(options)
    }

    /// The command line that [`Options::parse`] reads back.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--port".into(), self.port.to_string().into()];
        arguments.extend(["--control-port".into(), self.control_port.to_string().into()]);
        arguments.extend(self.script.iter().flat_map(|script| ["--script".into(), script.into()]));
        arguments
    }
}

/// Where a running fake is found: the line that it prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Always `fake-model`.
    pub ready: String,
    /// Its process id.
    pub pid: u32,
    /// The base URL that an OpenAI client takes, with `/v1`.
    pub base: String,
    /// The server's root, for `/props` and `/health`.
    pub server: String,
    /// The control API's root.
    pub control: String,
}

/// Serves until it is dropped; `announce` is called once both ports are bound.
pub async fn serve(options: Options, announce: impl FnOnce(&Ready) -> io::Result<()>) -> io::Result<()> {
    let script = options.script.as_deref().map_or(Ok(Script::default()), read_script)?;
    let model = TcpListener::bind(loopback(options.port)).await?;
    let control = TcpListener::bind(loopback(options.control_port)).await?;
    let server = format!("http://{}", model.local_addr()?);
    announce(&Ready {
        ready: "fake-model".into(),
        pid: std::process::id(),
        base: format!("{server}/v1"),
        server,
        control: format!("http://{}", control.local_addr()?),
    })?;
    let shared = Arc::new(server::Shared::new(script));
    let router = control::router(Arc::clone(&shared));
    tokio::select! {
        ended = server::accept(model, shared) => ended,
        ended = async { axum::serve(control, router).await } => ended,
    }
}

fn read_script(path: &Path) -> io::Result<Script> {
    let read = std::fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    read.map_err(|error| io::Error::new(error.kind(), format!("the script {}: {error}", path.display())))
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
