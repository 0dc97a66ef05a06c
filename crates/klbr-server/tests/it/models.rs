//! Which model server is used, also when it comes late; against a small server on a real socket.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use klbr_llm::BaseUrl;
use klbr_llm::discovery::{Candidate, Kind};
use klbr_server::config::ServerChoice;
use klbr_server::{Config, Daemon};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::{Client, in_time, say, until, wait};

/// Offers two models, and answers each request with the same calls.
pub(crate) struct Server {
    shared: Arc<Shared>,
    addr: SocketAddr,
    _tasks: JoinSet<()>,
}

struct Shared {
    asked: Mutex<Vec<Value>>,
    calls: Mutex<Vec<(&'static str, Value)>>,
}

impl Server {
    /// Serves there; each reply makes these calls.
    pub(crate) async fn at(addr: SocketAddr, calls: &[(&'static str, Value)]) -> Self {
        let shared = Arc::new(Shared { asked: Mutex::default(), calls: Mutex::new(calls.to_vec()) });
        let models =
            r#"{"data":[{"id":"late-7b","context_length":8192},{"id":"other","context_length":4096}]}"#;
        let router = Router::new()
            .route("/v1/models", get(async move || models))
            .route("/v1/chat/completions", post(answer))
            .with_state(shared.clone());
        let listener = TcpListener::bind(addr).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Server { shared, addr, _tasks: tasks }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// From now on, replies make these calls.
    pub(crate) fn answers(&self, calls: &[(&'static str, Value)]) {
        *self.shared.calls.lock().unwrap() = calls.to_vec();
    }

    /// The requests, in order.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.shared.asked.lock().unwrap().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, body: String) -> impl IntoResponse {
    shared.asked.lock().unwrap().push(serde_json::from_str(&body).unwrap());
    let calls: Vec<Value> = shared
        .calls
        .lock()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "index": index, "id": format!("c{index}"), "type": "function", "function": function })
        })
        .collect();
    let choice = json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" });
    let chunk = json!({ "choices": [choice] });
    ([("content-type", "text/event-stream")], format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn candidates(addr: SocketAddr) -> ServerChoice {
    let base_url = BaseUrl::parse(&format!("http://{addr}")).unwrap();
    ServerChoice::Discover(vec![Candidate { kind: Kind::LlamaCpp, base_url }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_late_is_found_by_the_next_try() {
    let home = tempfile::tempdir().unwrap();
    let addr = free_port();
    let running =
        Daemon::new(Config { server: candidates(addr), ..Config::new(home.path()) }).start().await.unwrap();
    in_time("ready", running.ready()).await.unwrap();
    let client = Client::new(running.addr(), running.token().expose());
    let status = client.get("/v1/agents/klbr/status").await;
    assert_eq!(status["model"]["server"], "absent", "{status}");
    assert!(status["model"]["hint"].as_str().unwrap().contains("KLBR_BASE_URL"), "{status}");

    let mut events = client.events(0).await;
    client.say("k", "Anyone?").await;
    let (_, failed) = events.until("sampling_failed").await;
    assert!(failed["failure"].as_str().unwrap().contains("no model server was found"), "{failed}");
    let server = Server::at(addr, &[say("Found."), wait(600)]).await;
    let (_, delivered) = events.until("delivered").await;
    assert_eq!(delivered["text"], "Found.");
    assert_eq!(server.asked()[0]["model"], "late-7b");
    let known = json!({
        "server": "known", "base_url": format!("http://{addr}/v1"), "model": "late-7b", "context_tokens": 8192,
    });
    assert_eq!(client.get("/v1/agents/klbr/status").await["model"], known);
    let models = client.get("/v1/models").await;
    assert_eq!(models["servers"][0]["models"][1], json!({ "id": "other", "context_tokens": 4096 }));
    assert_eq!(models["in_use"], known);

    let agent = async || client.get("/v1/agents/klbr/status").await["agent"].clone();
    until("the agent knows it", async || agent().await["context_tokens"] == 8192).await;
    assert_eq!(agent().await["model"], "late-7b");
    client.say("k2", "And now?").await;
    let (_, made) = events.until("prefix_made").await;
    assert_eq!(made["cause"], "model", "the next turn is made with it by name: {made}");
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_server_that_comes_late_is_asked_for_the_context_then() {
    let addr = free_port();
    let at = |file: &str| {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("klbr.toml"), file).unwrap();
        let config = Config::load(home.path(), &|_| None, &|_| None).unwrap();
        (home, config)
    };
    let settings = format!("[model]\nbase_url = \"http://{addr}/v1\"\nname = \"other\"\n");
    let (_home, config) = at(&settings);
    let (_second, configured) = at(&format!("{settings}context_tokens = 30000\n"));
    let mut lives = Vec::new();
    for config in [config, configured] {
        let running = Daemon::new(config).start().await.unwrap();
        let agent = in_time("ready", running.ready()).await.unwrap();
        let mut updates = agent.updates(None).await.unwrap();
        agent.say("k", "Anyone?").await.unwrap();
        let failed = async {
            while !matches!(
                updates.next().await.unwrap().unwrap().happening,
                klbr_core::update::Happening::SamplingFailed { .. }
            ) {}
        };
        in_time("a failure", failed).await;
        lives.push((running, agent));
    }
    assert_eq!(lives[0].1.status().await.unwrap().context_tokens, 32_768, "what is assumed");
    let server = Server::at(addr, &[say("Found."), wait(600)]).await;
    let context = async |at: usize| lives[at].1.status().await.unwrap().context_tokens;
    until("it is told", async || context(0).await == 4_096).await;
    until("both have asked", async || server.asked().len() >= 2).await;
    assert_eq!(context(1).await, 30_000, "what the operator says stays");
    for (running, agent) in lives {
        assert_eq!(&*agent.status().await.unwrap().model, "other");
        running.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_there_says_what_its_model_takes() {
    let home = tempfile::tempdir().unwrap();
    let addr = free_port();
    let server = Server::at(addr, &[say("Found."), wait(600)]).await;
    let mut config = Config { server: candidates(addr), ..Config::new(home.path()) };
    config.agent.model = Some("other".into());
    let running = Daemon::new(config).start().await.unwrap();
    let agent = in_time("ready", running.ready()).await.unwrap();
    let status = agent.status().await.unwrap();
    assert_eq!((&*status.model, status.context_tokens), ("other", 4096));
    agent.say("k", "Hello").await.unwrap();
    until("it is asked", async || !server.asked().is_empty()).await;
    assert_eq!(server.asked()[0]["model"], "other");
    running.shutdown().await;

    let mut config = Config { server: candidates(addr), ..Config::new(home.path()) };
    config.agent.model = Some("gone".into());
    let running = Daemon::new(config).start().await.unwrap();
    in_time("ready", running.ready()).await.unwrap();
    let status = Client::new(running.addr(), running.token().expose()).get("/v1/agents/klbr/status").await;
    assert_eq!(status["model"]["why"], "no model server on this machine offers \"gone\"", "{status}");
    running.shutdown().await;
}
