//! Starting, being refused, standing still, and ending in order.

use std::time::{Duration, Instant};

use klbr_core::runtime::probe::Point;
use klbr_server::{Config, Daemon, Home, StartError, whole_story};
use klbr_store::HomeLock;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Process, Scripted, World, in_time, klbrd, until};

/// Where nobody answers: the agent lives, and its model does not.
const NOBODY: &str = "http://127.0.0.1:9/v1";

async fn refusal(change: impl FnOnce(&mut Config), prepare: impl FnOnce(&Home)) -> (StartError, String) {
    let home = tempfile::tempdir().unwrap();
    prepare(&Home::new(home.path()));
    let mut config = Config::new(home.path());
    change(&mut config);
    let Err(error) = Daemon::new(config).model("scripted", Scripted::default()).start().await else {
        panic!("it started");
    };
    let text = whole_story(&error).replace(&home.path().display().to_string(), "~");
    (error, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_says_why_and_what_to_do() {
    let (error, text) = refusal(|_| {}, |home| std::fs::create_dir(home.token()).unwrap()).await;
    assert!(text.starts_with("~/token cannot be used as the token's file: Is a directory"), "{text}");
    assert!(error.hint().unwrap().contains("delete it"));
    let (_, text) = refusal(|_| {}, |home| std::fs::write(home.token(), "short").unwrap()).await;
    assert_eq!(text, "~/token does not hold a token of at least 32 visible characters");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let (error, text) = refusal(|config| config.listen = addr, |_| {}).await;
    assert!(text.starts_with(&format!("the API cannot listen on {addr}: Address")), "{text}");
    assert!(error.hint().unwrap().contains("port 0"));
    let (error, text) = refusal(|config| config.listen = "0.0.0.0:0".parse().unwrap(), |_| {}).await;
    assert_eq!(text, "listening on 0.0.0.0:0 would let other machines in");
    assert!(error.hint().unwrap().contains("KLBR_ALLOW_REMOTE"));
    let (_, text) = refusal(|config| config.home = "/dev/null/home".into(), |_| {}).await;
    assert!(text.starts_with("the home /dev/null/home cannot be used: Not a directory"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_is_told_who_has_the_home() {
    let world = World::start(Scripted::default()).await;
    let mut second = klbrd(world.home.path());
    let output = in_time("a refusal", second.output()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let holder = format!("is in use by klbrd 0.1.0 (process {}, since ", std::process::id());
    assert!(said.contains(&holder) && said.contains("hint: use the daemon that runs"), "{said}");
    // The first one is as it was, and gives the home up in order.
    let home = world.running.home().clone();
    assert_eq!(home.read_address().unwrap().addr, world.client.addr);
    world.running.shutdown().await;
    assert!(home.read_address().is_none());
    // A process that another test is just starting holds copies of this one's files until it has begun.
    until("the home is free", async || HomeLock::acquire(world.home.path(), "a test").is_ok()).await;
    let mut third = Process::start(world.home.path(), |command| {
        command.env("KLBR_BASE_URL", NOBODY);
    })
    .await;
    third.signal(Signal::TERM);
    assert_eq!(third.ended().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_set_aside_and_reported() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(
        home.path().join("klbr.db"),
        "SQLite format 3\0 and then nothing that makes sense".repeat(100),
    )
    .unwrap();
    let output = in_time("a refusal", klbrd(home.path()).output()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it was set aside as") && said.contains("hint: restore a backup"), "{said}");
    let names = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().any(|name| name.starts_with("klbr.db.damaged")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_and_files_are_refused_with_status_2() {
    for (arguments, said) in [
        (&["--frobnicate"][..], "there is no argument \"--frobnicate\""),
        (&["--listen"], "--listen needs a value"),
        (&["--listen", "here"], "flag for KLBR_LISTEN: \"here\" is not an address"),
        (&["--log", "loud=loud"], "KLBR_LOG"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let output = in_time("a refusal", klbrd(home.path()).args(arguments).output()).await.unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("klbr.toml"), "[modle]\n").unwrap();
    let output = in_time("a refusal", klbrd(home.path()).output()).await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("klbr.toml:1: there is no setting \"modle\"; did you mean \"model\"?"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_in_order_with_clients_attached() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = tempfile::tempdir().unwrap();
        let mut daemon = Process::start(home.path(), |command| {
            command.args(["--base-url", NOBODY, "--model", "m"]).env("KLBR_API_KEY", "sesame");
        })
        .await;
        daemon.ready().await;
        let mut events = daemon.client.events(0).await;
        daemon.client.say("k", "Are you there?").await;
        events.until("sampling_failed").await;
        let asked = Instant::now();
        daemon.signal(signal);
        assert_eq!(daemon.ended().await, 0);
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        // The stream ends; what was accepted is still there.
        while events.next().await.is_some() {}
        assert!(!home.path().join("run/address.json").exists());
        // What is logged by default holds no secret, and nothing that people said.
        let mut logged = String::new();
        while let Some(line) = in_time("the log", daemon.stderr.next_line()).await.unwrap() {
            logged += &line;
        }
        assert!(logged.contains("ready"), "{logged}");
        for private in ["sesame", "Are you there?", &daemon.client.token] {
            assert!(!logged.contains(private), "{logged}");
        }
        assert!(std::fs::read_to_string(home.path().join("run/klbrd.log")).unwrap().contains("ready"));
        let mut again = Process::start(home.path(), |command| {
            command.args(["--base-url", NOBODY, "--model", "m"]);
        })
        .await;
        again.ready().await;
        assert_eq!(again.client.say("k", "Are you there?").await["repeated"], true);
        let (_, done) =
            crate::support::read(again.client.request(reqwest::Method::POST, "/v1/shutdown")).await;
        assert_eq!(done, json!({ "done": "the daemon is stopping" }));
        assert_eq!(again.ended().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stands_still_at_a_point_and_a_second_signal_ends_it_at_once() {
    let home = tempfile::tempdir().unwrap();
    let mut daemon = Process::start(home.path(), |command| {
        command.env("KLBR_PAUSE_AT", "admit-before-acknowledge:2").args([
            "--base-url",
            NOBODY,
            "--model",
            "m",
        ]);
    })
    .await;
    daemon.ready().await;
    daemon.client.say("first", "One").await;
    let client = daemon.client.clone();
    let second = tokio::spawn(async move {
        let request = client.request(reqwest::Method::POST, "/v1/agents/klbr/messages");
        request.header("idempotency-key", "second").json(&json!({ "text": "Two" })).send().await.is_ok()
    });
    in_time("the pause", async {
        while daemon.stderr.next_line().await.unwrap().unwrap() != r#"{"paused":"admit-before-acknowledge"}"# {}
    })
    .await;
    // The agent stands still; the daemon still answers, without the agent's own account.
    let status = daemon.client.get("/v1/agents/klbr/status").await;
    assert!(status["agent"].is_null() && status["state"] == "ready", "{status}");
    daemon.signal(Signal::TERM);
    let noticed = async || {
        let answer = daemon.client.request(reqwest::Method::GET, "/healthz").send().await;
        answer.is_err()
    };
    until("it has begun to stop", noticed).await;
    let asked = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await, 130);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(!second.await.unwrap(), "acknowledged from beyond the pause");
    // It was durable, though nobody was told: offered again, it is known.
    let again = Process::start(home.path(), |command| {
        command.args(["--base-url", NOBODY, "--model", "m"]);
    })
    .await;
    again.ready().await;
    assert_eq!(again.client.say("second", "Two").await["repeated"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_point_can_be_named() {
    for point in Point::ALL {
        let home = tempfile::tempdir().unwrap();
        let lookup = |name: &str| (name == "KLBR_PAUSE_AT").then(|| format!("{}:4", point.as_str()));
        let config = Config::load(home.path(), &|_| None, &lookup).unwrap();
        assert_eq!(config.pause.map(|pause| (pause.point, pause.passing)), Some((point, 4)));
    }
}
