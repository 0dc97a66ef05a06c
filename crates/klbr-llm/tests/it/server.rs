//! A model server that does exactly what a test says, on a socket of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use klbr_core::model::{Failure, Message, Parameters, Request, Sampled};
use klbr_core::runtime::model::{Model, Piece, Reply};
use klbr_llm::{BaseUrl, Config, Provider, Timeouts};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longer than anything here takes: a test that waits this long has failed.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(20);

/// What the server does with one request.
#[derive(Clone)]
pub(crate) struct Script {
    send: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    Close,
    /// Keep the connection open until the client closes it.
    Hold,
    /// Answer the next request on the same connection.
    Next,
}

impl Script {
    /// Sends these bytes and closes the connection.
    pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Self {
        Script { send: bytes.as_ref().to_vec(), then: Then::Close }
    }

    /// Sends these bytes and keeps the connection open.
    pub(crate) fn hold(bytes: impl AsRef<[u8]>) -> Self {
        Script { send: bytes.as_ref().to_vec(), then: Then::Hold }
    }

    /// Sends these bytes and waits for another request.
    pub(crate) fn keep_alive(bytes: impl AsRef<[u8]>) -> Self {
        Script { send: bytes.as_ref().to_vec(), then: Then::Next }
    }

    /// Answers with a status and a body.
    pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::send(format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }
}

/// The head of an event stream that ends with its connection.
pub(crate) fn events(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

/// An event whose delta is this JSON.
pub(crate) fn delta(json: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{json}}}]}}\n\n")
}

/// An event with a finish reason.
pub(crate) fn finish(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}

/// A request that the server saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Whose connection it came over.
    pub(crate) peer: SocketAddr,
    /// Method and path.
    pub(crate) line: String,
    /// The head in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A server that answers each request with the next script, and the last one for ever.
pub(crate) struct Server {
    pub(crate) base_url: BaseUrl,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrivals: mpsc::UnboundedReceiver<()>,
    closures: mpsc::UnboundedReceiver<()>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(scripts: Vec<Script>) -> Self {
        Self::route(move |_, number| scripts[number.min(scripts.len() - 1)].clone()).await
    }

    /// Starts a server that chooses its script by the request and its number.
    pub(crate) async fn route(choose: impl Fn(&Seen, usize) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (closed, closures) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let all = Arc::clone(&seen);
        tasks.spawn(async move {
            let choose = &choose;
            let mut connections = futures_util::stream::FuturesUnordered::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let (stream, _) = accepted.expect("a connection");
                        connections.push(serve(stream, choose, &all, &arrived, &closed));
                    }
                    Some(()) = connections.next() => {}
                }
            }
        });
        let base_url = BaseUrl::parse(&format!("http://{address}")).expect("an address");
        Server { base_url, seen, arrivals, closures, _tasks: tasks }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no test panics here").clone()
    }

    /// Waits until a request has arrived.
    pub(crate) async fn arrived(&mut self) {
        timeout(WATCHDOG, self.arrivals.recv()).await.expect("a request arrives");
    }

    /// Waits until the client has closed a connection that was held open.
    pub(crate) async fn closed(&mut self) {
        timeout(WATCHDOG, self.closures.recv()).await.expect("the client closes the connection");
    }

    /// A provider for this server whose timeouts are far longer than any test.
    pub(crate) fn provider(&self) -> Provider {
        Provider::new(Config::new(self.base_url.clone())).expect("a provider")
    }

    /// A provider that gives up soon.
    pub(crate) fn hasty_provider(&self) -> Provider {
        let mut config = Config::new(self.base_url.clone());
        let soon = Duration::from_millis(60);
        config.timeouts = Timeouts { first_byte: soon, idle: soon, linger: soon, ..Timeouts::default() };
        Provider::new(config).expect("a provider")
    }
}

async fn serve(
    mut stream: TcpStream,
    choose: &(impl Fn(&Seen, usize) -> Script + Sync),
    all: &Mutex<Vec<Seen>>,
    arrived: &mpsc::UnboundedSender<()>,
    closed: &mpsc::UnboundedSender<()>,
) {
    while let Some(request) = read_request(&mut stream).await {
        let number = {
            let mut all = all.lock().expect("no test panics here");
            all.push(request.clone());
            all.len() - 1
        };
        // Nobody may be listening; that is the test's choice.
        let _ = arrived.send(());
        let script = choose(&request, number);
        let _ = stream.write_all(&script.send).await;
        match script.then {
            Then::Close => return,
            Then::Next => {}
            Then::Hold => {
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                let _ = closed.send(());
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let line = text.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let head = text.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    while bytes.len() < end + length.unwrap_or(0) {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[end..]).unwrap_or(Value::Null);
    let peer = stream.peer_addr().ok()?;
    Some(Seen { peer, line, head, body })
}

/// A request of one message.
pub(crate) fn request() -> Request {
    Request {
        model: "m".into(),
        system: "be kind".into(),
        tools: "[]".into(),
        messages: vec![Message::User { text: "hi".into(), starts_turn: true }],
        parameters: Parameters::default(),
    }
}

/// Reads a reply to its end; gives how many deltas came, and the end.
pub(crate) async fn read(mut reply: Reply) -> (usize, Result<Sampled, Failure>) {
    let mut deltas = 0;
    loop {
        match timeout(WATCHDOG, reply.next()).await.expect("a piece in time").expect("an end before the end")
        {
            Ok(Piece::Delta(_)) => deltas += 1,
            Ok(Piece::Finished(sampled)) => {
                assert!(reply.next().await.is_none(), "nothing follows the end");
                return (deltas, Ok(sampled));
            }
            Err(failure) => {
                assert!(reply.next().await.is_none(), "nothing follows a failure");
                return (deltas, Err(failure));
            }
        }
    }
}

/// Samples to the end.
pub(crate) async fn sample(provider: &Provider, request: Request) -> Result<Sampled, Failure> {
    read(timeout(WATCHDOG, provider.sample(request)).await.expect("an answer in time")?).await.1
}
