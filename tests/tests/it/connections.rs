//! How connections end: cuts, stalls, and the moment at which a client's going is seen.

use std::time::Duration;

use klbr_tests::clock::Stamp;
use klbr_tests::fake_model::{DropHow, EndHow, FakeModel, What};
use serde_json::{Value, json};

use super::wire::{Raw, always, event, post, says, streaming};

async fn raw(fake: &FakeModel) -> Raw {
    Raw::ask(fake, streaming("x").to_string().as_bytes()).await
}

fn cut(at: Value, how: &str) -> Value {
    json!({"cut": {"at": at, "how": how}, "body": {"reply": {"parts": [{"text": "hello"}]}}})
}

fn gone(what: &What) -> bool {
    matches!(what, What::Dropped { .. })
}

#[tokio::test]
async fn a_reset_comes_after_exactly_the_bytes_before_it() {
    let fake = always(cut(json!({"byte": 100}), "reset")).await;
    let mut raw = raw(&fake).await;
    assert_eq!(raw.body(100).await.len(), 100);
    assert_eq!(raw.end().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    event(&fake, 1, "the end", |what| *what == What::Ended { how: EndHow::Reset }).await;
}

#[tokio::test]
async fn a_close_comes_after_exactly_the_bytes_before_it() {
    let fake = always(cut(json!({"byte": 100}), "close")).await;
    let mut raw = raw(&fake).await;
    assert_eq!(raw.end().await.unwrap().len(), 100);
    assert!(!raw.seen.ends_with(b"0\r\n\r\n"));
    event(&fake, 1, "the end", |what| *what == What::Ended { how: EndHow::Close }).await;
    let broken = post(&fake, &streaming("x")).await.text().await.unwrap_err();
    assert!(broken.is_body() || broken.is_decode(), "{broken:?}");
}

#[tokio::test]
async fn a_cut_may_come_before_the_status_line_or_after_a_write() {
    let fake = always(cut(json!("start"), "close")).await;
    let mut early = raw(&fake).await;
    assert!(early.end().await.unwrap().is_empty() && early.seen.is_empty());
    let fake = always(cut(json!({"write": 1}), "close")).await;
    let body = String::from_utf8(raw(&fake).await.end().await.unwrap()).unwrap();
    assert!(body.contains("assistant") && body.ends_with("\n\n") && !body.contains("hello"));
}

#[tokio::test]
async fn a_whole_reply_breaks_off_inside_its_declared_length() {
    let fake = always(cut(json!({"byte": 10}), "close")).await;
    let body = json!({"messages": []});
    assert!(post(&fake, &body).await.text().await.is_err());
}

#[tokio::test]
async fn a_stall_leaves_the_socket_open_until_the_client_goes() {
    let fake = always(cut(json!({"byte": 70}), "stall")).await;
    let mut raw = raw(&fake).await;
    assert_eq!(raw.body(70).await.len(), 70);
    let stalled = event(&fake, 1, "the stall", |what| *what == What::Stalling).await;
    // Another connection's whole life is the sentinel: meanwhile nothing came and nobody hung up.
    assert_eq!(reqwest::get(format!("{}/health", fake.ready().server)).await.unwrap().status(), 200);
    let nothing = raw.stream.try_read(&mut [0; 8]);
    assert_eq!(nothing.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(raw);
    let dropped = event(&fake, 1, "the drop", gone).await;
    assert!(dropped.seq > stalled.seq && dropped.what == What::Dropped { how: DropHow::Closed });
}

#[tokio::test]
async fn a_failed_event_may_leave_the_socket_open() {
    let fake = says(json!([
        {"text": "a"},
        {"data": "{\"type\":\"response.failed\",\"response\":{\"status\":\"failed\"}}"},
        "stall"
    ]))
    .await;
    let mut response = post(&fake, &streaming("x")).await;
    let mut seen = String::new();
    while !seen.contains("response.failed") {
        seen += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
    }
    event(&fake, 1, "the stall", |what| *what == What::Stalling).await;
    drop(response);
    event(&fake, 1, "the drop", gone).await;
}

#[tokio::test]
async fn a_request_may_never_be_answered() {
    let fake = always(json!({"gate": "never", "body": {"reply": {}}})).await;
    let raw = raw(&fake).await;
    event(&fake, 1, "the gate", |what| matches!(what, What::Holding { .. })).await;
    drop(raw);
    event(&fake, 1, "the drop", gone).await;
    let events = fake.control().events().await.unwrap();
    assert!(!events.iter().any(|event| matches!(event.what, What::Head { .. })));
}

#[tokio::test]
async fn an_endless_stream_ends_with_its_client() {
    let fake = says(json!([{"endless": {"say": "tok ", "gap_ms": 1, "to": "think"}}])).await;
    let mut raw = raw(&fake).await;
    let body = String::from_utf8(raw.body(2_000).await).unwrap();
    assert!(body.contains("\"reasoning_content\":\"tok \""));
    drop(raw);
    let dropped = event(&fake, 1, "the drop", gone).await;
    let events = fake.control().events().await.unwrap();
    assert!(events.iter().all(|event| event.seq <= dropped.seq || !matches!(event.what, What::Wrote { .. })));
}

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let fake = says(json!([{"text": "a"}])).await;
    let client = klbr_tests::http::client();
    for _ in 0..3 {
        let url = format!("{}/chat/completions", fake.ready().base);
        client.post(url).json(&streaming("x")).send().await.unwrap().bytes().await.unwrap();
    }
    let requests = fake.control().requests().await.unwrap();
    assert_eq!(requests.iter().map(|request| request.connection).collect::<Vec<_>>(), [1, 1, 1]);
}

/// From the client's close to the fake's stamp: the median of a batch, in the state that the answer leads to.
async fn detection(fake: &FakeModel, state: fn(&What) -> bool) -> (Duration, Duration) {
    let mut batches = Vec::new();
    let mut next = fake.control().requests().await.unwrap().len() as u64 + 1;
    for _ in 0..4 {
        let mut latencies = Vec::new();
        for _ in 0..50 {
            let raw = raw(fake).await;
            event(fake, next, "the state", state).await;
            let closing = Stamp::now();
            drop(raw);
            latencies.push(event(fake, next, "the drop", gone).await.at.since(closing));
            fake.control().clear().await.unwrap();
            next += 1;
        }
        latencies.sort();
        batches.push((latencies[25], latencies[49]));
    }
    *batches.iter().min().unwrap()
}

#[tokio::test]
async fn a_drop_is_stamped_well_within_a_millisecond_in_every_state() {
    let stalled = says(json!([{"text": "a"}, "stall"])).await;
    let held = always(json!({"gate": "never", "body": {"reply": {}}})).await;
    let pausing = says(json!([{"text": "a"}, {"pause_ms": 600_000}])).await;
    let streaming = says(json!([{"endless": {"say": "tok ", "gap_ms": 1}}])).await;
    for (name, fake, state) in [
        ("stalled", &stalled, (|what| *what == What::Stalling) as fn(&What) -> bool),
        ("held before the first byte", &held, |what| matches!(what, What::Holding { .. })),
        ("between two chunks", &pausing, |what| matches!(what, What::Wrote { .. })),
        ("streaming", &streaming, |what| matches!(what, What::Wrote { .. })),
    ] {
        let (median, worst) = detection(fake, state).await;
        println!("drop seen, {name}: best batch's p50 {median:?}, worst {worst:?}");
        // The best of four batches, so that a busy machine does not decide.
        assert!(median < Duration::from_millis(1), "{name}: {median:?}");
    }
}

#[tokio::test]
async fn a_drop_is_seen_while_the_client_reads_nothing_and_the_write_is_blocked() {
    let big = "x".repeat(1 << 20);
    let fake = says(json!([{"endless": {"say": big, "gap_ms": 1}}])).await;
    let raw = raw(&fake).await;
    event(&fake, 1, "a write", |what| matches!(what, What::Wrote { .. })).await;
    drop(raw);
    let dropped = event(&fake, 1, "the drop", gone).await;
    assert_eq!(dropped.what, What::Dropped { how: DropHow::Reset });
}
