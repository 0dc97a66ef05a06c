//! A restart with much that waits.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use klbr_core::event::{Body, NewEvent, Priority, Source, SourceKind};
use klbr_server::{Config, Daemon};

use crate::support::{Client, Scripted, in_time};

const WAITING: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn with_ten_thousand_waiting_the_api_answers_while_the_agent_starts() {
    let home = tempfile::tempdir().unwrap();
    let running =
        Daemon::new(Config::new(home.path())).model("scripted", Scripted::default()).start().await.unwrap();
    let agent = in_time("ready", running.ready()).await.unwrap();
    // A turn that does not end keeps them waiting.
    agent.say("k", "Stay busy").await.unwrap();
    let admitted = stream::iter(0..WAITING).map(|n| {
        let source = Source::new(SourceKind::Channel, "irc");
        let event = NewEvent::external(
            source,
            format!("msg:{n}"),
            Priority::Ambient,
            Body::text(format!("message {n}")),
        )
        .in_conversation(format!("#{}", n % 50));
        let agent = agent.clone();
        async move { agent.admit(event).await.unwrap() }
    });
    assert_eq!(admitted.buffer_unordered(512).count().await, WAITING);
    // As if killed: without a checkpoint of the last records.
    drop(running);
    drop(agent);

    let config = Config::new(home.path());
    let daemon = loop {
        // The threads of the one before may still be letting go.
        match Daemon::new(config.clone()).model("scripted", Scripted::default()).start().await {
            Ok(running) => break running,
            Err(klbr_server::StartError::Lock(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let started = Instant::now();
    let client = Client::new(daemon.addr(), daemon.token().expose());
    let mut slowest = Duration::ZERO;
    let mut answers = 0;
    loop {
        let asked = Instant::now();
        let status = client.get("/v1/agents/klbr/status").await;
        slowest = slowest.max(asked.elapsed());
        answers += 1;
        if status["state"] == "ready" {
            break;
        }
        assert_eq!(status["state"], "starting");
    }
    let ready = started.elapsed();
    let ledger = client.get("/v1/agents/klbr/ledger").await;
    assert_eq!(ledger["admitted"], WAITING as u64 + 1);
    println!("ready after {ready:?}; {answers} answers meanwhile, the slowest after {slowest:?}");
    daemon.shutdown().await;
}
