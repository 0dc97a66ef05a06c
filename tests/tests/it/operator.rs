//! The model that answers its operator, over the wire.

use klbr_tests::validity::{Rules, check};
use serde_json::{Value, json};

use super::wire::{always, post};

/// One exchange without stream: the assistant message.
async fn step(fake: &klbr_tests::fake_model::FakeModel, messages: &[Value]) -> Value {
    let response = post(fake, &json!({"model": "m", "messages": messages})).await;
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    body["choices"][0]["message"].clone()
}

fn calls(message: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let call = |call: &Value| (text(&call["function"]["name"]), text(&call["function"]["arguments"]));
    message["tool_calls"].as_array().unwrap().iter().map(call).collect()
}

#[tokio::test]
async fn every_operator_message_is_answered_once_over_several_turns() {
    let tool = json!({"call": {"name": "count", "arguments": {"of": "{marker}"}}, "chance": 1.0});
    let fake = always(json!({"body": {"operator": {"tools": [tool], "wait_in": "next_step"}}})).await;
    let mut messages = Vec::new();
    let mut sent = Vec::new();
    for turn in [
        "<operator>msg-1</operator><operator>msg-2</operator>",
        "<nudge>msg-7</nudge>",
        "<operator>msg-3</operator>",
    ] {
        messages.push(json!({"role": "user", "content": turn}));
        loop {
            let message = step(&fake, &messages).await;
            let calls = calls(&message);
            let ids: Vec<Value> =
                message["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].clone()).collect();
            messages.push(message);
            messages
                .extend(ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": "ok"})));
            let waits = calls.iter().any(|(name, _)| name == "wait_and_continue");
            sent.extend(calls);
            if waits {
                break;
            }
        }
    }
    let sends: Vec<&str> = sent
        .iter()
        .filter(|(name, _)| name == "local_send")
        .map(|(_, arguments)| arguments.as_str())
        .collect();
    assert_eq!(sends, [r#"{"text":"re msg-1"}"#, r#"{"text":"re msg-2"}"#, r#"{"text":"re msg-3"}"#]);
    assert_eq!(sent.iter().filter(|(name, _)| name == "count").count(), 3);
    for chat in fake.control().chats().await.unwrap() {
        check(&chat.body, Rules::default()).unwrap();
    }
}

#[tokio::test]
async fn canaries_stand_in_scratch_and_reasoning_and_never_in_a_call() {
    let fake = always(json!({"body": {"operator": {"canary": "SECRET"}}})).await;
    let message = step(&fake, &[json!({"role": "user", "content": "<operator>msg-1</operator>"})]).await;
    assert_eq!(message["content"], "muttering SECRET-text-1");
    assert_eq!(message["reasoning_content"], "thinking SECRET-think-1");
    assert!(calls(&message).iter().all(|(_, arguments)| !arguments.contains("SECRET")));
}

#[tokio::test]
async fn each_misbehaviour_happens_on_the_wire() {
    let ask = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "<operator>msg-1</operator>"}]});
    let run = async |fault: &str| {
        let fake = always(json!({"body": {"operator": {"misbehave": {fault: 1.0}}}})).await;
        let response = post(&fake, &ask).await;
        (response.status().as_u16(), response.text().await.unwrap_or_else(|_| "broken".into()))
    };
    assert_eq!(run("status_500").await.0, 500);
    assert_eq!(run("status_429").await.0, 429);
    assert_eq!(run("close").await.1, "broken");
    assert_eq!(run("reset").await.1, "broken");
    assert!(run("error").await.1.contains("the model crashed"));
    assert!(!run("no_done").await.1.contains("[DONE]"));
    assert!(!run("text_only").await.1.contains("tool_calls"));
    let (_, cut) = run("cut_arguments").await;
    assert!(cut.contains("\"finish_reason\":\"length\"") && cut.contains(r#"re msg-1","name""#), "{cut}");
    assert!(run("unknown_action").await.1.contains("no_such_action"));
    let (_, bare) = run("bare_calls").await;
    assert!(bare.contains("\"id\":\"\"") && !bare.contains("\"index\":1"));
}
