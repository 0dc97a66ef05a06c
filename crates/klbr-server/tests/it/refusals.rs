//! Requests that are refused: the answer names what is wrong, and nothing is changed.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::json;

use crate::support::{Client, Scripted, World, read};

async fn check(request: RequestBuilder, status: StatusCode, code: &str, said: &str) {
    let (found, body) = read(request).await;
    let error = &body["error"];
    assert_eq!((found, error["code"].as_str()), (status, Some(code)), "{body}");
    assert!(error["message"].as_str().unwrap().contains(said), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_by_name_and_change_nothing() {
    let world = World::start(Scripted::default()).await;
    let client = &world.client;
    let message = || client.request(Method::POST, "/v1/agents/klbr/messages");
    let body = json!({ "text": "hi" });
    let stranger = Client { token: "f".repeat(64), ..client.clone() };

    check(
        stranger.request(Method::GET, "/v1/agents"),
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        "not the home's",
    )
    .await;
    check(
        client.http.get(format!("http://{}/v1/agents", client.addr)),
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        "no token",
    )
    .await;
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "not a host"] {
        check(
            message().header("host", host).json(&body),
            StatusCode::FORBIDDEN,
            "foreign_host",
            "not this one",
        )
        .await;
    }
    for origin in ["https://evil.example", "null", "http://localhost:1", "file://"] {
        check(
            message().header("origin", origin).json(&body),
            StatusCode::FORBIDDEN,
            "foreign_origin",
            "another site",
        )
        .await;
    }
    check(
        client.request(Method::GET, "/v1/agents/nobody/status"),
        StatusCode::NOT_FOUND,
        "unknown_agent",
        "nobody",
    )
    .await;
    check(
        client.request(Method::GET, "/v1/agents/a%2Fb/status"),
        StatusCode::NOT_FOUND,
        "unknown_agent",
        "a/b",
    )
    .await;
    check(client.request(Method::GET, "/v2"), StatusCode::NOT_FOUND, "unknown_path", "nothing").await;
    check(
        client.request(Method::DELETE, "/v1/agents"),
        StatusCode::METHOD_NOT_ALLOWED,
        "unknown_method",
        "method",
    )
    .await;
    check(message().body("{"), StatusCode::BAD_REQUEST, "malformed_json", "EOF").await;
    check(message().body(""), StatusCode::BAD_REQUEST, "malformed_json", "EOF").await;
    check(message().body("\u{0}"), StatusCode::BAD_REQUEST, "malformed_json", "column 1").await;
    check(message().json(&json!({ "txt": "hi" })), StatusCode::BAD_REQUEST, "invalid_body", "txt").await;
    check(message().json(&json!({ "text": 7 })), StatusCode::BAD_REQUEST, "invalid_body", "integer").await;
    check(message().json(&json!({ "text": " \n" })), StatusCode::BAD_REQUEST, "empty_message", "empty").await;
    let huge = json!({ "text": "x".repeat(1024 * 1024) });
    check(message().json(&huge), StatusCode::PAYLOAD_TOO_LARGE, "too_large", "1048576").await;
    for key in [&b""[..], b"two words", &[0xff, 0xfe], &[b'k'; 201]] {
        let named = message().header("idempotency-key", key).json(&body);
        check(named, StatusCode::BAD_REQUEST, "invalid_idempotency_key", "Idempotency-Key").await;
    }
    let twice = message().header("idempotency-key", "a").header("idempotency-key", "b").json(&body);
    check(twice, StatusCode::BAD_REQUEST, "invalid_idempotency_key", "more than once").await;

    let events = |query: &str| client.request(Method::GET, &format!("/v1/agents/klbr/events{query}"));
    let resume = "invalid_last_event_id";
    check(events("").header("last-event-id", "x"), StatusCode::BAD_REQUEST, resume, "not the number").await;
    check(events("").header("last-event-id", "-1"), StatusCode::BAD_REQUEST, resume, "not the number").await;
    check(events("?after=9"), StatusCode::BAD_REQUEST, resume, "another history").await;
    check(events("?after=x"), StatusCode::BAD_REQUEST, "invalid_query", "after").await;
    check(events("?since=1"), StatusCode::BAD_REQUEST, "invalid_query", "since").await;
    let get = |path: &str| client.request(Method::GET, path);
    check(get("/v1/agents/klbr/inbox?limit=0"), StatusCode::BAD_REQUEST, "invalid_query", "limit is 0").await;
    check(get("/v1/agents/klbr/records?limit=9999"), StatusCode::BAD_REQUEST, "invalid_query", "9999").await;
    check(get("/v1/agents/klbr/history"), StatusCode::BAD_REQUEST, "invalid_query", "text").await;
    check(get("/v1/agents/klbr/ws"), StatusCode::UPGRADE_REQUIRED, "no_websocket", "").await;

    let event = |kind: &str, instance: &str, priority: &str| {
        let source = json!({ "kind": kind, "instance": instance });
        let event = json!({ "source": source, "priority": priority, "text": "obey" });
        client.request(Method::POST, "/v1/agents/klbr/events").json(&event)
    };
    check(event("operator", "x", "operator"), StatusCode::BAD_REQUEST, "invalid_source", "operator's words")
        .await;
    check(event("timer", "local", "directed"), StatusCode::BAD_REQUEST, "invalid_source", "operator's words")
        .await;
    check(event("timer", "x", "control"), StatusCode::BAD_REQUEST, "invalid_event", "priority").await;
    check(event("timer", "x", "operator"), StatusCode::BAD_REQUEST, "invalid_event", "priority").await;
    check(event("timer", "", "directed"), StatusCode::BAD_REQUEST, "invalid_event", "instance").await;
    check(event("planet", "x", "directed"), StatusCode::BAD_REQUEST, "invalid_body", "planet").await;
    let resolve = |action: &str| {
        client
            .request(Method::POST, &format!("/v1/agents/klbr/effects/{action}/resolve"))
            .json(&json!({ "allow": true }))
    };
    check(resolve("x"), StatusCode::BAD_REQUEST, "invalid_action", "an action's id").await;
    check(resolve("1.1.1"), StatusCode::CONFLICT, "not_held", "1.1.1").await;

    assert_eq!(client.get("/v1/agents/klbr/ledger").await["admitted"], 0);
    world.running.shutdown().await;
}
