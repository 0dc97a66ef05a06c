//! What clients do with an agent that lives.

use futures_util::{SinkExt as _, StreamExt as _};
use klbr_server::api::path;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::{Events, Scripted, World, in_time, read, say, until, wait};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_delivered_and_a_repeat_is_known_as_one() {
    let world = World::start(Scripted::new(&[&[say("Hello, Ada."), wait(600)]])).await;
    let client = &world.client;
    let first = client.say("greeting", "Hi").await;
    assert_eq!(first, json!({ "event": 1, "repeated": false, "key": "greeting" }));
    assert_eq!(
        client.say("greeting", "Hi").await,
        json!({ "event": 1, "repeated": true, "key": "greeting" })
    );

    let mut events = client.events(0).await;
    let (id, delivered) = events.until("delivered").await;
    assert_eq!((&delivered["channel"], &delivered["text"]), (&json!("local"), &json!("Hello, Ada.")));
    events.until("waiting").await;

    // A client that comes back is told what followed the last id that it saw, and only that.
    let request = client.request(Method::GET, "/v1/agents/klbr/events?after=1");
    let last_seen = id.unwrap() - 1;
    let response = request.header("last-event-id", last_seen.to_string()).send().await.unwrap();
    let (again, update) = Events::of(response).next().await.unwrap();
    assert_eq!((again, &update), (id, &delivered));

    let ledger = client.get("/v1/agents/klbr/ledger").await;
    assert_eq!(ledger["admitted"], 1);
    let status = client.get("/v1/agents/klbr/status").await;
    assert_eq!(
        (&status["state"], &status["agent"]["activity"]["activity"]),
        (&json!("ready"), &json!("waiting"))
    );
    assert_eq!(status["model"], json!({ "server": "built_in", "model": "scripted" }));
    let hits = client.get("/v1/agents/klbr/history?text=Ada").await;
    assert_eq!(hits["hits"][0]["source"], "agent", "{hits}");
    let page = client.get("/v1/agents/klbr/records?limit=2").await;
    assert_eq!((&page["next"], &page["records"][0]["kind"]), (&json!(2), &json!("admitted")));
    let metrics = in_time("metrics", client.request(Method::GET, "/metrics").send()).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for line in [
        "klbr_events_admitted_total{agent=\"klbr\"} 1",
        "klbr_deliveries_total{agent=\"klbr\"} 1",
        "klbr_input_tokens_total{agent=\"klbr\"} 100",
        "klbr_cached_tokens_total{agent=\"klbr\"} 60",
        "klbr_admission_seconds_count{agent=\"klbr\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
    world.running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_tells_the_same_and_takes_messages() {
    let world = World::start(Scripted::new(&[&[say("Yes?"), wait(600)]])).await;
    let mut request =
        format!("ws://{}/v1/agents/klbr/ws?after=0", world.client.addr).into_client_request().unwrap();
    let token = format!("Bearer {}", world.client.token);
    request.headers_mut().insert("authorization", token.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let mut frames: Vec<Value> = Vec::new();
    for text in [json!({ "type": "message", "text": "Ada?", "key": "k" }).to_string(), "{".to_owned()] {
        socket.send(Message::Text(text.into())).await.unwrap();
    }
    let is_there = |frames: &[Value], kind: &str| frames.iter().any(|frame| frame["type"] == kind);
    while !["accepted", "refused", "delivered", "waiting"].iter().all(|kind| is_there(&frames, kind)) {
        let frame = in_time("a frame", socket.next()).await.unwrap().unwrap();
        frames.push(serde_json::from_str(frame.to_text().unwrap()).unwrap());
    }
    let find = |kind: &str| frames.iter().find(|frame| frame["type"] == kind).unwrap();
    assert_eq!(find("accepted"), &json!({ "type": "accepted", "event": 1, "repeated": false, "key": "k" }));
    assert_eq!(find("refused")["error"]["code"], "malformed_json");
    assert_eq!(find("delivered")["text"], "Yes?");
    world.running.shutdown().await;
    // A last close, or nothing more, but no hanging.
    while in_time("the end", socket.next()).await.is_some_and(|frame| frame.is_ok()) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn who_admitted_what_and_by_which_path_is_recorded_and_shown_to_no_model() {
    // C-TRUST.
    let model = Scripted::default();
    let world = World::start(model.clone()).await;
    let client = &world.client;
    let mut events = client.events(0).await;
    let post = |path: &str| client.request(Method::POST, &format!("/v1/agents/klbr/{path}"));
    let said = |text: &str| json!({ "text": text });
    let long = "x".repeat(150);
    let requests = [
        (post("messages").header("x-klbr-client", "chat").json(&said("one")), "chat", "messages"),
        (
            post("messages").header("user-agent", "curl/8.5 (ü)").json(&said("two")),
            "curl/8.5 (??)",
            "messages",
        ),
        (post("messages").header("x-klbr-client", "a\tb").json(&said("three")), "a?b", "messages"),
        (post("interrupt").header("x-klbr-client", &long), &long[..100], "interrupt"),
        (post("reset").header("x-klbr-client", ""), "http", "reset"),
        (post("messages").json(&said("four")), "http", "messages"),
    ];
    for (request, called, path) in requests {
        let (status, answer) = read(request).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let (_, admitted) = events.until("admitted").await;
        let via = json!({ "client": called, "path": format!("/v1/agents/klbr/{path}") });
        assert_eq!(admitted["via"], via, "{admitted}");
    }
    let mut request =
        format!("ws://{}/v1/agents/klbr/ws?after=0", client.addr).into_client_request().unwrap();
    let token = format!("Bearer {}", client.token);
    request.headers_mut().insert("authorization", token.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    socket
        .send(Message::Text(json!({ "type": "message", "text": "five" }).to_string().into()))
        .await
        .unwrap();
    let (_, admitted) = events.until("admitted").await;
    assert_eq!(admitted["via"], json!({ "client": "ws", "path": "/v1/agents/klbr/ws" }));

    let page = client.get("/v1/agents/klbr/records?limit=1").await;
    assert_eq!(page["records"][0]["event"]["via"]["client"], "chat", "{page}");
    let knows = |text: &str| {
        let asked = model.asked.lock().unwrap();
        asked.iter().any(|request| format!("{request:?}").contains(text))
    };
    until("the last one is shown", async || knows("five")).await;
    assert!(!knows("curl") && !knows("/v1/agents"), "the model is told of clients");
    // A host that admits by itself tells nothing.
    world.running.ready().await.unwrap().say("k", "six").await.unwrap();
    let (_, admitted) = events.until("admitted").await;
    assert_eq!(admitted.get("via"), None, "{admitted}");
    world.running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_carried_out_and_named() {
    let world = World::start(Scripted::default()).await;
    let client = &world.client;
    let mut events = client.events(0).await;
    client.say("k", "Think hard").await;
    events.until("turn_started").await;
    // One key may name a message and a command.
    let interrupt = client.request(Method::POST, "/v1/agents/klbr/interrupt").header("idempotency-key", "k");
    assert_eq!(read(interrupt).await.1, json!({ "event": 2, "repeated": false, "key": "k" }));
    let (_, ended) = events.until("turn_ended").await;
    assert_eq!(ended["turn"], 1);

    let soul = json!({ "text": "You are terse." });
    let (status, _) = read(client.request(Method::PUT, "/v1/agents/klbr/soul").json(&soul)).await;
    assert_eq!(status, StatusCode::OK);
    events.until("soul_changed").await;
    assert_eq!(client.get("/v1/agents/klbr/soul").await, soul);
    client.post("/v1/agents/klbr/reset", json!(null)).await;
    events.until("reset").await;
    client.post("/v1/agents/klbr/stop", json!(null)).await;

    let timer = json!({
        "source": { "kind": "timer", "instance": "alarm" }, "external_id": "at:7", "priority": "directed",
        "text": "Seven o'clock.",
    });
    let accepted = client.post("/v1/agents/klbr/events", timer.clone()).await;
    assert_eq!((&accepted["repeated"], &accepted["key"]), (&json!(false), &json!("at:7")));
    assert_eq!(client.post("/v1/agents/klbr/events", timer).await["repeated"], true);
    let chatter = json!({
        "source": { "kind": "channel", "instance": "irc" }, "priority": "ambient", "conversation": "#den",
        "author": { "id": "7", "name": "Bo" }, "text": "anyone?",
    });
    client.post("/v1/agents/klbr/events", chatter).await;
    until("the chatter waits", async || {
        let inbox = client.get("/v1/agents/klbr/inbox?limit=10").await;
        inbox["waiting"].as_array().unwrap().iter().any(|waiting| waiting["instance"] == "irc")
    })
    .await;
    world.running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_described_and_needs_the_token() {
    let world = World::start(Scripted::default()).await;
    let client = &world.client;
    let described = client.get("/openapi.json").await;
    let paths = described["paths"].as_object().unwrap();
    let known = [
        path::HEALTH,
        path::METRICS,
        path::OPENAPI,
        path::AGENTS,
        path::MODELS,
        path::SHUTDOWN,
        path::MESSAGES,
        path::EVENTS,
        path::WS,
        path::STATUS,
        path::LEDGER,
        path::INBOX,
        path::ITEM,
        path::MARK,
        path::DISCORD_CONVERSATIONS,
        path::RECORDS,
        path::HISTORY,
        path::SOUL,
        path::MEMORY,
        path::INTERRUPT,
        path::STOP,
        path::RESET,
        path::COMPACT,
        path::RESOLVE,
        path::POLICY,
        path::POLICY_LOG,
        path::POLICY_ACTIVATE,
        path::POLICY_DRY_RUN,
        path::POLICY_ROLLBACK,
        path::WORKBENCH,
        path::WORKBENCH_VARS,
        path::WORKBENCH_RESTART,
    ];
    assert_eq!(paths.len(), known.len());
    for path in known {
        let methods =
            paths.get(path).unwrap_or_else(|| panic!("{path} is not described")).as_object().unwrap();
        for method in methods.keys() {
            let method: Method = method.to_ascii_uppercase().parse().unwrap();
            let url = format!(
                "http://{}{}",
                client.addr,
                path.replace("{name}", "klbr").replace("{action}", "1.1.1").replace("{item}", "d1:1")
            );
            let (status, body) = read(client.http.request(method.clone(), url)).await;
            let expected = match path {
                path::HEALTH => StatusCode::OK,
                _ => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(status, expected, "{method} {path}: {body}");
        }
    }
    // Every reference leads somewhere.
    let schemas = &described["components"];
    let mut open = vec![&described];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let name = reference.strip_prefix("#/components").unwrap();
                    assert!(schemas.pointer(name).is_some(), "{reference}");
                }
                open.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    world.running.shutdown().await;
}
