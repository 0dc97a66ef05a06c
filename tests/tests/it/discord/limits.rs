//! Limits: for a route, for all, and who came too early.

use std::time::{Duration, Instant};

use klbr_tests::discord_double::{Fault, Make, Scope};
use serde_json::json;
use twilight_http::Client;

use super::{MESSAGES, Scene, channel_id};

/// One request to a route with nothing but a client; status, headers, body.
async fn ask(scene: &Scene) -> (u16, reqwest::header::HeaderMap, serde_json::Value) {
    let url = format!("{}/channels/{}/messages", scene.double.ready().api, scene.channel);
    let request = reqwest::Client::new().get(url).header("authorization", "Bot double-token");
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.headers().clone(), response.json().await.unwrap())
}

fn seconds(value: &reqwest::header::HeaderValue) -> f64 {
    value.to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_route_over_its_limit_says_when_to_come_again() {
    let scene = Scene::new().await;
    let route = format!("GET {MESSAGES}");
    scene.control().set(json!({"limits": {route: {"requests": 2, "per_ms": 1_000}}})).await.unwrap();
    let (status, headers, _) = ask(&scene).await;
    assert_eq!(
        (status, &headers["x-ratelimit-limit"], &headers["x-ratelimit-remaining"]),
        (200, &"2".parse().unwrap(), &"1".parse().unwrap())
    );
    assert!(seconds(&headers["x-ratelimit-reset-after"]) <= 1.0 && !headers.contains_key("retry-after"));
    ask(&scene).await;
    let (status, headers, body) = ask(&scene).await;
    assert_eq!(
        (status, &headers["x-ratelimit-scope"], &body["global"]),
        (429, &"user".parse().unwrap(), &json!(false))
    );
    let wait = body["retry_after"].as_f64().unwrap();
    assert!(wait > 0.0 && wait <= 1.0 && seconds(&headers["retry-after"]) >= wait);
    // The first 429 is nobody's fault; whoever does not wait is noted.
    assert_eq!(scene.control().summary().await.unwrap().violations, 0);
    assert_eq!(ask(&scene).await.0, 429);
    assert_eq!(scene.control().summary().await.unwrap().violations, 1);
    tokio::time::sleep(Duration::from_secs_f64(wait)).await;
    assert_eq!(ask(&scene).await.0, 200);
    assert_eq!(scene.control().summary().await.unwrap().violations, 1);
    // Another channel has a limit of its own.
    let other = scene.control().channel(scene.guild, "other").await.unwrap();
    scene.http().channel_messages(channel_id(other)).await.unwrap();
}

#[tokio::test]
async fn all_routes_together_have_a_limit() {
    let scene = Scene::new().await;
    scene.control().set(json!({"global_per_second": 2})).await.unwrap();
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(ask(&scene).await);
    }
    let (status, headers, body) = answers.remove(2);
    assert_eq!(
        (status, &headers["x-ratelimit-global"], &body["global"]),
        (429, &"true".parse().unwrap(), &json!(true))
    );
    let summary = scene.control().summary().await.unwrap();
    assert_eq!((summary.violations, summary.statuses[&429]), (1, 2));
}

#[tokio::test]
async fn a_limit_is_scripted_and_a_client_that_waits_does_not_violate_it() {
    let scene = Scene::new().await;
    let limit = Make::Limit { retry_after_ms: 300, scope: Scope::User };
    scene.control().faults([Fault::new(limit).on("POST", MESSAGES)]).await.unwrap();
    let ready = scene.double.ready();
    let http = Client::builder().proxy(ready.address.clone(), true).token(ready.token.clone()).build();
    let began = Instant::now();
    http.create_message(channel_id(scene.channel)).content("late").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(290));
    let summary = scene.control().summary().await.unwrap();
    assert_eq!((summary.violations, summary.created, summary.statuses[&429]), (0, 1, 1));
}

#[tokio::test]
async fn a_client_that_does_not_wait_is_noted_each_time() {
    let scene = Scene::new().await;
    let limit = Make::Limit { retry_after_ms: 200, scope: Scope::Global };
    scene.control().faults([Fault::new(limit).on("POST", MESSAGES)]).await.unwrap();
    // Without a limiter twilight asks again at once, until it is let in.
    scene.http().create_message(channel_id(scene.channel)).content("pushy").await.unwrap();
    let summary = scene.control().summary().await.unwrap();
    assert!(summary.violations > 0 && summary.created == 1, "{summary:?}");
}
