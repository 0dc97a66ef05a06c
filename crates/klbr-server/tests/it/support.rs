//! Daemons in this process and in their own, a scripted model, and clients, each wait with a watchdog.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use klbr_core::model::{Failure, Finish, RawCall, Request, Sampled, Usage};
use klbr_core::runtime::model::{Model, Piece, Reply};
use klbr_server::{Config, Daemon, Running};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// How long anything may take before a test fails.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(20);

pub(crate) async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(WATCHDOG, work).await {
        Ok(done) => done,
        Err(_) => panic!("not in time: {what}"),
    }
}

/// Asks again and again until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    in_time(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// A model that answers with these calls, one reply after the other, and then with silence.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    replies: Arc<Mutex<VecDeque<Vec<RawCall>>>>,
    pub(crate) asked: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    pub(crate) fn new(replies: &[&[(&str, Value)]]) -> Self {
        let scripted = Self::default();
        replies.iter().for_each(|calls| scripted.then(calls));
        scripted
    }

    pub(crate) fn then(&self, calls: &[(&str, Value)]) {
        let call = |(name, arguments): &(&str, Value)| RawCall {
            id: None,
            name: (*name).to_owned(),
            arguments: arguments.to_string(),
        };
        self.replies.lock().unwrap().push_back(calls.iter().map(call).collect());
    }
}

#[async_trait::async_trait]
impl Model for Scripted {
    async fn sample(&self, request: Request) -> Result<Reply, Failure> {
        self.asked.lock().unwrap().push(request);
        let Some(calls) = self.replies.lock().unwrap().pop_front() else {
            return Ok(futures_util::stream::pending().boxed());
        };
        let sampled = Sampled {
            text: "scratch".into(),
            calls,
            finish: Finish::ToolCalls,
            usage: Some(Usage { input: 100, output: 10, cached: Some(60) }),
            ..Sampled::default()
        };
        Ok(futures_util::stream::iter([Ok(Piece::Finished(sampled))]).boxed())
    }
}

pub(crate) fn say(text: &str) -> (&'static str, Value) {
    ("local_send", json!({ "content": text }))
}

pub(crate) fn wait(seconds: u64) -> (&'static str, Value) {
    ("wait_and_continue", json!({ "seconds": seconds }))
}

pub(crate) fn run(command: &str) -> (&'static str, Value) {
    ("process", json!({ "command": command, "timeout_ms": 600_000 }))
}

/// A client of a daemon's API, with its token.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
    pub(crate) token: String,
    pub(crate) http: reqwest::Client,
}

impl Client {
    pub(crate) fn new(addr: SocketAddr, token: &str) -> Self {
        // The client wants one to be there even where nothing is encrypted; the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client { addr, token: token.trim().to_owned(), http: reqwest::Client::new() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("http://{}{path}", self.addr)).bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = read(self.request(Method::GET, path)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = read(self.request(Method::POST, path).json(&body)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    pub(crate) async fn say(&self, key: &str, text: &str) -> Value {
        let request = self.request(Method::POST, "/v1/agents/klbr/messages");
        let (status, body) =
            read(request.header("idempotency-key", key).json(&json!({ "text": text }))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    pub(crate) async fn events(&self, after: u64) -> Events {
        let request = self.request(Method::GET, &format!("/v1/agents/klbr/events?after={after}"));
        Events::of(in_time("a stream", request.send()).await.unwrap())
    }
}

/// Status and JSON body of an answer; the text as a JSON string when it is no JSON.
pub(crate) async fn read(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = in_time("an answer", request.send()).await.unwrap();
    let status = response.status();
    let text = in_time("a body", response.text()).await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// A stream of server-sent events.
pub(crate) struct Events {
    response: reqwest::Response,
    buffer: String,
}

impl Events {
    pub(crate) fn of(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        Events { response, buffer: String::new() }
    }

    /// The next event: its id, if it has one, and its data. None at the stream's end.
    pub(crate) async fn next(&mut self) -> Option<(Option<u64>, Value)> {
        loop {
            while let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let field =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let (id, data) = (field("id: "), field("data: "));
                self.buffer = rest.to_owned();
                if let Some(data) = data {
                    return Some((id.map(|id| id.parse().unwrap()), serde_json::from_str(&data).unwrap()));
                }
            }
            let chunk = in_time("an event", self.response.chunk()).await.ok()??;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads on to the first event of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> (Option<u64>, Value) {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before {kind}"));
            if event.1["type"] == kind {
                return event;
            }
        }
    }
}

/// A daemon in this process.
pub(crate) struct World {
    pub(crate) home: TempDir,
    pub(crate) running: Running,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn start(model: Scripted) -> Self {
        Self::with(model, |_| {}).await
    }

    pub(crate) async fn with(model: Scripted, change: impl FnOnce(&mut Config)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut config = Config::new(home.path());
        change(&mut config);
        let running = Daemon::new(config).model("scripted", model).start().await.unwrap();
        in_time("ready", running.ready()).await.unwrap();
        let client = Client::new(running.addr(), running.token().expose());
        World { home, running, client }
    }
}

/// A daemon in a process of its own. Killed when it is dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) client: Client,
    pub(crate) stderr: Lines<BufReader<ChildStderr>>,
}

/// `klbrd` on a home, with nothing of this process's environment.
pub(crate) fn klbrd(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klbrd"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KLBR_HOME", home)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

impl Process {
    pub(crate) async fn start(home: &Path, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = klbrd(home);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let Some(line) = in_time("the first line", stdout.next_line()).await.unwrap() else {
            let mut said = String::new();
            while let Some(line) = in_time("its words", stderr.next_line()).await.unwrap() {
                said += &line;
            }
            panic!("klbrd ended early: {said}");
        };
        let line: Value = serde_json::from_str(&line).unwrap();
        let token = std::fs::read_to_string(line["token_path"].as_str().unwrap()).unwrap();
        let client = Client::new(line["addr"].as_str().unwrap().parse().unwrap(), &token);
        Process { child, client, stderr }
    }

    pub(crate) async fn ready(&self) {
        until("ready", async || self.client.get("/v1/agents/klbr/status").await["state"] == "ready").await;
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Its exit status; -1 when a signal ended it.
    pub(crate) async fn ended(&mut self) -> i32 {
        in_time("the end", self.child.wait()).await.unwrap().code().unwrap_or(-1)
    }
}
