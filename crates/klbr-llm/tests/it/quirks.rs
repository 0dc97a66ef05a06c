//! What a server does not take is left out once it has said so, and remembered.

use std::sync::Arc;

use klbr_core::model::{AssistantMessage, Failure, Message, ToolChoice};
use klbr_llm::{Config, Learned, Provider};
use serde_json::Value;

use crate::server::{Script, Seen, Server, events, finish, request, sample};

fn good() -> Script {
    Script::send(events(&finish("stop")))
}

fn refusal(status: u16, message: &str) -> Script {
    Script::answer(status, "", &format!(r#"{{"error":{{"message":"{message}"}}}}"#))
}

/// A server that refuses every request with this field.
async fn server_without(field: &'static str, status: u16, message: &'static str) -> Server {
    let has = move |seen: &Seen| seen.body.to_string().contains(&format!("\"{field}\":"));
    Server::route(move |seen, _| if has(seen) { refusal(status, message) } else { good() }).await
}

#[tokio::test]
async fn stream_options_are_left_out_after_a_refusal_and_that_is_remembered() {
    for message in ["extra field stream_options", "Bad Request"] {
        let server = server_without("stream_options", 422, message).await;
        let provider = server.provider();
        sample(&provider, request()).await.unwrap();
        sample(&provider, request()).await.unwrap();
        let with: Vec<bool> =
            server.seen().iter().map(|seen| seen.body.get("stream_options").is_some()).collect();
        assert_eq!(with, [true, false, false]);

        let learned = provider.learned();
        let kept: Learned = serde_json::from_value(serde_json::to_value(&learned).unwrap()).unwrap();
        let restored = Provider::with_learned(Config::new(server.base_url.clone()), kept).unwrap();
        sample(&restored, request()).await.unwrap();
        assert_eq!(server.seen().len(), 4);
    }
}

#[tokio::test]
async fn a_refusal_that_means_something_else_is_tried_once_without_and_nothing_is_learned() {
    let server = Server::start(vec![refusal(400, "no such thing")]).await;
    let provider = server.provider();
    let failure = sample(&provider, request()).await.unwrap_err();
    assert!(matches!(failure, Failure::Refused { status: Some(400), .. }), "{failure:?}");
    assert_eq!(server.seen().len(), 2);
    assert_eq!(provider.learned(), Learned::default());
}

#[tokio::test]
async fn a_server_that_has_taken_stream_options_is_not_asked_twice() {
    let server = Server::start(vec![good(), refusal(400, "no such thing")]).await;
    let provider = server.provider();
    sample(&provider, request()).await.unwrap();
    sample(&provider, request()).await.unwrap_err();
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn an_effort_that_is_refused_narrows_the_levels() {
    let message = "Unexpected reasoning effort high, supported are low and medium";
    let has_high = |seen: &Seen| seen.body["reasoning_effort"] == "high";
    let server =
        Server::route(move |seen, _| if has_high(seen) { refusal(500, message) } else { good() }).await;
    let provider = server.provider();
    assert_eq!(provider.levels("m").levels, ["low", "medium", "high"]);
    let mut request = request();
    request.parameters.effort = Some("high".into());
    sample(&provider, request.clone()).await.unwrap();
    assert_eq!(provider.levels("m").levels, ["low", "medium"]);
    assert_eq!(provider.levels("other").levels, ["low", "medium", "high"]);
    sample(&provider, request).await.unwrap();
    let efforts: Vec<Value> =
        server.seen().iter().map(|seen| seen.body["reasoning_effort"].clone()).collect();
    assert_eq!(efforts, [Value::from("high"), Value::Null, Value::from("medium")]);
}

#[tokio::test]
async fn template_arguments_that_are_not_known_leave_the_effort_at_the_top() {
    let server =
        server_without("chat_template_kwargs", 400, "Unknown parameter: 'chat_template_kwargs'").await;
    let mut request = request();
    request.parameters.effort = Some("high".into());
    sample(&server.provider(), request).await.unwrap();
    let last = &server.seen()[1].body;
    assert_eq!(last["reasoning_effort"], "high");
}

#[tokio::test]
async fn the_token_limit_is_sent_under_the_name_that_is_taken() {
    let message = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let server = server_without("max_tokens", 400, message).await;
    let provider = server.provider();
    let mut request = request();
    request.parameters.max_output_tokens = Some(7);
    sample(&provider, request.clone()).await.unwrap();
    sample(&provider, request).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen[1..].iter().all(|seen| seen.body["max_completion_tokens"] == 7));
}

#[tokio::test]
async fn what_a_transcript_or_a_choice_may_not_have_is_left_out() {
    let server =
        server_without("reasoning_content", 400, "property 'reasoning_content' is unsupported").await;
    let mut request = request();
    request.messages.push(Message::Assistant(AssistantMessage {
        text: "a".into(),
        reasoning: Some(Arc::from("because")),
        calls: Vec::new(),
    }));
    request.messages.push(Message::User { text: "go on".into(), starts_turn: false });
    sample(&server.provider(), request.clone()).await.unwrap();
    assert_eq!(server.seen().len(), 2);

    let server = server_without("tool_choice", 400, "this model does not support this tool_choice").await;
    request.tools = r#"[{"name":"f","description":"","parameters":{}}]"#.into();
    request.parameters.tool_choice = ToolChoice::Required;
    sample(&server.provider(), request).await.unwrap();
    assert_eq!(server.seen()[1].body["tools"][0]["function"]["name"], "f");
}

#[tokio::test]
async fn a_server_that_refuses_every_part_is_asked_a_bounded_number_of_times() {
    let message = "stream_options chat_template_kwargs reasoning_content max_completion_tokens tool_choice \
                   reasoning_effort is not supported";
    let server = Server::start(vec![refusal(400, message)]).await;
    let mut request = request();
    request.tools = r#"[{"name":"f","description":"","parameters":{}}]"#.into();
    request.parameters.tool_choice = ToolChoice::Required;
    request.parameters.effort = Some("high".into());
    request.parameters.max_output_tokens = Some(7);
    sample(&server.provider(), request).await.unwrap_err();
    assert_eq!(server.seen().len(), 6);
}
