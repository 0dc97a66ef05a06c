//! The control API and what is captured.

use klbr_tests::fake_model::{ClientError, What};
use klbr_tests::{prefix, validity};
use serde_json::{Value, json};
use std::time::Duration;

use super::wire::{Raw, event, post, says, scripted, stream, streaming};

#[tokio::test]
async fn requests_are_captured_to_the_byte() {
    let fake = says(json!([{"text": "a"}])).await;
    let odd = "{ \"stream\" :true,\n\t\"messages\":[ ],\"text\":\"\\u00e9 é\"}";
    Raw::ask(&fake, odd.as_bytes()).await.body(1).await;
    let broken = [b'{', 0xff, 0xfe, b'}'];
    Raw::ask(&fake, &broken).await.head().await;
    let requests = fake.control().requests().await.unwrap();
    assert_eq!(requests[0].body, odd.as_bytes());
    assert_eq!(requests[1].body, broken);
    assert_eq!((requests[0].header("host"), requests[0].path.as_str()), (Some("x"), "/v1/chat/completions"));
    assert!(requests[0].began <= requests[0].arrived && requests[0].arrived < requests[1].arrived);
}

#[tokio::test]
async fn the_pages_of_a_llama_server_are_there_and_may_be_replaced() {
    let page = json!({"status": 503, "body": {"error": {"message": "Loading model"}}});
    let fake = scripted(json!({"model": "tiny", "context_tokens": 77, "pages": {"/v1/health": page}})).await;
    let get = |path: &str| {
        let url = format!("{}{path}", fake.ready().server);
        async move {
            let response = reqwest::get(url).await.unwrap();
            let status = response.status().as_u16();
            (status, serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap())
        }
    };
    assert_eq!(get("/health").await, (200, json!({"status": "ok"})));
    assert_eq!(get("/v1/models").await.1["data"][0]["id"], "tiny");
    assert_eq!(get("/props").await.1["default_generation_settings"]["n_ctx"], 77);
    assert_eq!(get("/v1/health").await, (503, json!({"error": {"message": "Loading model"}})));
    assert_eq!(get("/nowhere").await.0, 404);
}

#[tokio::test]
async fn a_bad_script_is_refused_and_changes_nothing() {
    let fake = says(json!([{"text": "old"}])).await;
    let error =
        fake.control().load(&json!({"rules": [{"answer": {"body": {"rpely": {}}}}]})).await.unwrap_err();
    let ClientError::Refused { status: 400, message } = error else { panic!("{error}") };
    assert!(message.starts_with("the script: unknown variant `rpely`, expected one of `reply`"), "{message}");
    assert!(stream(&fake, &streaming("x")).await[1].contains("old"));
}

#[tokio::test]
async fn a_gate_released_before_anyone_comes_lets_one_through() {
    let fake = says(json!([{"gate": "g"}, {"text": "a"}])).await;
    fake.control().release("g").await.unwrap();
    stream(&fake, &streaming("x")).await;
    let held = post(&fake, &streaming("x")).await;
    event(&fake, 2, "the gate", |what| matches!(what, What::Holding { .. })).await;
    fake.control().release("g").await.unwrap();
    assert!(held.text().await.unwrap().contains("[DONE]"));
}

#[tokio::test]
async fn a_wait_for_what_does_not_come_ends_with_what_came() {
    let fake = says(json!([{"text": "a"}])).await;
    stream(&fake, &streaming("x")).await;
    let waited = fake.control().wait_event("a drop", 0, Duration::from_millis(20), |_| false).await;
    let text = waited.unwrap_err().to_string();
    assert!(text.starts_with("a drop did not come within 20 ms; seen instead: [Event"), "{text}");
    fake.control().clear().await.unwrap();
    assert!(fake.control().requests().await.unwrap().is_empty());
    stream(&fake, &streaming("x")).await;
    let numbers: Vec<u64> = fake.control().chats().await.unwrap().iter().map(|chat| chat.number).collect();
    assert_eq!(numbers, [2]);
}

#[tokio::test]
async fn captured_requests_are_judged() {
    let fake = says(json!([{"text": "a"}])).await;
    let mut conversation = streaming("x");
    stream(&fake, &conversation).await;
    let more = [json!({"role": "assistant", "content": "a"}), json!({"role": "user", "content": "y"})];
    conversation["messages"].as_array_mut().unwrap().extend(more);
    stream(&fake, &conversation).await;
    let chats = fake.control().chats().await.unwrap();
    for chat in &chats {
        validity::check(&chat.body, validity::Rules::default()).unwrap();
    }
    let extensions = prefix::check_lane(chats.iter().map(|chat| chat.body.as_slice())).unwrap();
    assert_eq!(extensions[0].appended, 2);
}

#[tokio::test]
async fn what_is_no_http_is_noted() {
    use tokio::io::AsyncWriteExt as _;
    let fake = says(json!([])).await;
    let address = fake.ready().server.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(b"\x00\x01 what\r\n\r\n").await.unwrap();
    let wanted = |event: &klbr_tests::fake_model::Event| matches!(event.what, What::Unreadable { .. });
    fake.control().wait_event("the complaint", 0, super::wire::WATCHDOG, wanted).await.unwrap();
}
