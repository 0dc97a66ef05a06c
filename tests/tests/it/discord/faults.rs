//! What goes wrong with requests, and what stays done.

use std::time::{Duration, Instant};

use klbr_tests::discord_double::{Fault, Make};
use serde_json::json;
use twilight_http::error::ErrorType;

use super::{MESSAGES, Scene, refusal};

fn body() -> serde_json::Value {
    json!({"content": "x", "nonce": "n", "enforce_nonce": true})
}

/// Makes a fault at one message; the error that twilight has, and how many messages were made.
async fn with(make: Make) -> (Scene, twilight_http::Error, usize) {
    let scene = Scene::new().await;
    let name = make.name();
    scene.control().faults([Fault::new(make).on("POST", MESSAGES)]).await.unwrap();
    let error = scene.post(&scene.http(), body()).await.unwrap_err();
    let made = scene.control().messages().await.unwrap().len();
    let asked = scene.request("the outcome", |asked| asked.outcome.is_some()).await;
    let outcome = asked.outcome.unwrap();
    assert_eq!((outcome.fault.as_deref(), outcome.performed), (Some(name), made == 1));
    // It happens once: the next attempt finds the message, or makes it.
    scene.post(&scene.http(), body()).await.unwrap();
    assert_eq!(scene.control().messages().await.unwrap().len(), 1);
    (scene, error, made)
}

#[tokio::test]
async fn a_server_error_comes_before_or_after_the_message() {
    for status in [500, 502, 503] {
        let (_, error, made) = with(Make::Fail { status, body: None }).await;
        assert_eq!((refusal(&error), made), ((status, 0), 0));
    }
    let (_, error, made) = with(Make::FailAfter { status: 504, body: None }).await;
    assert_eq!((refusal(&error), made), ((504, 0), 1));
    let said = json!({"message": "no", "code": 7});
    let (_, error, _) = with(Make::Fail { status: 400, body: Some(said) }).await;
    assert_eq!(refusal(&error), (400, 7));
}

#[tokio::test]
async fn a_connection_is_cut_before_or_after_the_message() {
    for (make, wanted) in [(Make::Cut, 0), (Make::CutAfter, 1)] {
        let (scene, error, made) = with(make).await;
        assert!(matches!(error.kind(), ErrorType::RequestError), "{error:?}");
        assert_eq!(made, wanted);
        let first = scene.control().requests().await.unwrap().remove(0);
        assert_eq!(first.status(), None);
    }
}

#[tokio::test]
async fn a_connection_is_cut_within_the_body() {
    let scene = Scene::new().await;
    scene.control().faults([Fault::new(Make::CutBody(20)).on("POST", MESSAGES)]).await.unwrap();
    let http = scene.http();
    let sent = body().to_string();
    let response = http.create_message(super::channel_id(scene.channel)).payload_json(sent.as_bytes()).await;
    let response = response.unwrap();
    assert_eq!(response.status().get(), 200);
    assert!(response.bytes().await.is_err());
    assert_eq!(scene.control().messages().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_body_that_cannot_be_read_comes_after_the_message() {
    let scene = Scene::new().await;
    scene.control().faults([Fault::new(Make::Garble).on("POST", MESSAGES)]).await.unwrap();
    let http = scene.http();
    let response = http.create_message(super::channel_id(scene.channel)).content("x").await.unwrap();
    assert!(response.model().await.is_err());
    assert_eq!(scene.control().messages().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_is_slow() {
    let scene = Scene::new().await;
    let slow = |make| Fault::new(make).on("POST", MESSAGES);
    scene.control().faults([slow(Make::Delay(60)), slow(Make::DelayAfter(60))]).await.unwrap();
    for _ in 0..2 {
        let began = Instant::now();
        scene.post(&scene.http(), body()).await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(60));
    }
}

#[tokio::test]
async fn a_request_is_held_and_its_client_may_go() {
    let scene = Scene::new().await;
    let hold = |make| Fault::new(make).on("POST", MESSAGES);
    let gate = || "g".to_owned();
    scene.control().faults([hold(Make::HoldAfter(gate())), hold(Make::Hold(gate()))]).await.unwrap();
    let http = scene.http();
    let post = scene.post(&http, body());
    let created = scene.control().wait_message("the message", super::WATCHDOG, |_| true);
    // Created, not acknowledged, and the client goes.
    tokio::select! {
        answer = post => panic!("{answer:?}"),
        created = created => assert_eq!(created.unwrap().nonce, Some(json!("n"))),
    }
    drop(http);
    let gone = scene.request("the going", |asked| asked.outcome.is_some()).await;
    let outcome = gone.outcome.unwrap();
    assert!(outcome.performed && outcome.abandoned && outcome.status.is_none());
    let http = scene.http();
    let (answer, released) = tokio::join!(scene.post(&http, body()), scene.control().release("g"));
    released.unwrap();
    assert_eq!(answer.unwrap()["nonce"], "n");
}

#[tokio::test]
async fn a_fault_skips_and_counts_and_chooses() {
    let scene = Scene::new().await;
    let http = scene.http();
    let mut fault = Fault::new(Make::Fail { status: 500, body: None }).times(2).after(1);
    fault.on.body = Some("bad".to_owned());
    scene.control().faults([fault]).await.unwrap();
    let mut statuses = Vec::new();
    for content in ["good", "bad 1", "bad 2", "good", "bad 3", "bad 4"] {
        let answer = scene.post(&http, json!({"content": content})).await;
        statuses.push(answer.map_or_else(|error| refusal(&error).0, |_| 200));
    }
    assert_eq!(statuses, [200, 200, 500, 200, 500, 200]);
    scene.control().faults([Fault::new(Make::Cut)]).await.unwrap();
    scene.control().clear_faults().await.unwrap();
    http.current_user().await.unwrap();
}
