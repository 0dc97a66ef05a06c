//! One sampling over a real socket: what arrives, and every way in which it fails.

use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use klbr_core::model::{Delta, Failure, Finish, RawCall, Usage};
use klbr_core::runtime::model::{Model, Piece};
use klbr_llm::{Config, Provider, Secret};

use crate::server::{Script, Server, delta, events, finish, read, request, sample};

async fn sample_from(script: Script) -> Result<klbr_core::model::Sampled, Failure> {
    let server = Server::start(vec![script]).await;
    sample(&server.provider(), request()).await
}

#[tokio::test]
async fn a_reply_arrives_in_pieces_and_whole() {
    let body = [
        delta(r#"{"role":"assistant","content":""}"#),
        delta(r#"{"reasoning_content":"hm"}"#),
        delta(r#"{"content":"hel"}"#),
        delta(r#"{"content":"lo"}"#),
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#),
        delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#),
        finish("tool_calls"),
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
            .into(),
    ];
    let server = Server::start(vec![Script::hold(events(&body.concat()))]).await;
    let mut config = Config::new(server.base_url.clone());
    config.key = Some(Secret::new("sesame").unwrap());
    let reply = Provider::new(config).unwrap().sample(request()).await.unwrap();
    let pieces: Vec<_> = reply.map(Result::unwrap).collect().await;
    let Some((Piece::Finished(sampled), deltas)) = pieces.split_last() else { panic!("{pieces:?}") };
    let shown = |delta: &Piece| matches!(delta, Piece::Delta(Delta::Scratch(text)) if text == "lo");
    assert!(deltas.iter().any(shown), "{deltas:?}");
    assert_eq!((sampled.text.as_str(), sampled.reasoning.as_deref()), ("hello", Some("hm")));
    let call = RawCall { id: Some("a".into()), name: "f".into(), arguments: r#"{"x":1}"#.into() };
    assert_eq!(sampled.calls, [call]);
    assert_eq!(sampled.finish, Finish::ToolCalls);
    assert_eq!(sampled.usage, Some(Usage { input: 5, output: 2, cached: None }));

    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /v1/chat/completions");
    assert!(seen.head.contains("authorization: bearer sesame"), "{}", seen.head);
    assert_eq!(seen.body["stream"], true);
    assert_eq!(seen.body["messages"][1]["content"], "hi");
    assert!(seen.body.get("tools").is_none(), "no tools are none, not an empty list");
}

#[tokio::test]
async fn a_connection_whose_reply_has_ended_is_used_again() {
    let body = delta(r#"{"content":"a"}"#) + &finish("stop") + "data: [DONE]\n\n";
    let whole = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let server = Server::start(vec![Script::keep_alive(whole)]).await;
    let provider = server.provider();
    for _ in 0..10 {
        assert_eq!(sample(&provider, request()).await.unwrap().text, "a");
    }
    // A machine under load may miss the moment once, not always.
    let seen = server.seen();
    assert!(seen.windows(2).any(|two| two[0].peer == two[1].peer), "{seen:?}");
}

#[tokio::test]
async fn dropping_a_reply_closes_its_connection_at_once() {
    let mut server = Server::start(vec![Script::hold(events(&delta(r#"{"content":"a"}"#)))]).await;
    let provider = server.provider();
    let mut reply = provider.sample(request()).await.unwrap();
    reply.next().await.unwrap().unwrap();
    let dropped = Instant::now();
    drop(reply);
    server.closed().await;
    assert!(dropped.elapsed() < Duration::from_secs(1), "{:?}", dropped.elapsed());
}

#[tokio::test]
async fn dropping_a_sampling_that_has_no_answer_closes_its_connection_at_once() {
    let mut server = Server::start(vec![Script::hold("")]).await;
    let provider = server.provider();
    let sampling = tokio::spawn(async move { provider.sample(request()).await.map(|_| ()) });
    server.arrived().await;
    sampling.abort();
    server.closed().await;
}

#[tokio::test]
async fn silence_is_a_stall_wherever_it_falls() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#;
    for sent in [
        String::new(),
        events(""),
        events(&delta(r#"{"content":"a"}"#)),
        events(&delta(call)),
        events(&(finish("tool_calls") + &delta(call))),
    ] {
        let mut server = Server::start(vec![Script::hold(&sent)]).await;
        let failure = sample(&server.hasty_provider(), request()).await.unwrap_err();
        assert_eq!(failure, Failure::Stalled(Duration::from_millis(60)), "{sent}");
        server.closed().await;
    }
}

#[tokio::test]
async fn silence_after_the_finish_reason_ends_the_reply() {
    let body = delta(r#"{"content":"a"}"#) + &finish("stop");
    let server = Server::start(vec![Script::hold(events(&body))]).await;
    let sampled = sample(&server.hasty_provider(), request()).await.unwrap();
    assert_eq!((sampled.text.as_str(), sampled.finish), ("a", Finish::Stop));
}

#[tokio::test]
async fn an_error_in_a_stream_ends_the_reply_though_the_socket_stays_open() {
    for error in [
        "event: error\ndata: {\"message\":\"boom\"}\n\n",
        "event: failed\ndata: {\"error\":{\"message\":\"boom\"}}\n\n",
        "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"boom\"}}}\n\n",
        "data: {\"error\":{\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}}\n\n",
        "data: {\"choices\":[{\"index\":0,\"error\":\"boom\",\"finish_reason\":\"error\"}]}\n\n",
    ] {
        let body = delta(r#"{"content":"a"}"#) + error;
        let mut server = Server::start(vec![Script::hold(events(&body))]).await;
        let reply = server.provider().sample(request()).await.unwrap();
        let (deltas, end) = read(reply).await;
        assert_eq!(deltas, 1);
        assert!(
            matches!(&end, Err(Failure::Provider { message, .. }) if message == "boom"),
            "{error}: {end:?}"
        );
        server.closed().await;
    }
}

#[tokio::test]
async fn an_unterminated_error_is_read_whether_the_socket_closes_or_not() {
    let body =
        events("data: {\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\",\"n_ctx\":512}}");
    for script in [Script::send(&body), Script::hold(&body)] {
        let server = Server::start(vec![script]).await;
        let failure = sample(&server.hasty_provider(), request()).await.unwrap_err();
        assert!(matches!(failure, Failure::ContextOverflow { limit: Some(512), .. }), "{failure:?}");
    }
}

#[tokio::test]
async fn a_reply_that_just_ends_is_no_short_reply() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#;
    for body in [
        String::new(),
        ": keep-alive\n\n".to_owned(),
        delta(r#"{"content":"a"}"#),
        delta(r#"{"content":"a"}"#) + "data: {\"choi",
        delta(call),
        finish("tool_calls") + &delta(call),
    ] {
        let failure = sample_from(Script::send(events(&body))).await.unwrap_err();
        assert!(matches!(failure, Failure::Disconnected(_)), "{body}: {failure:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_reply_is_no_short_reply() {
    let chunk = delta(r#"{"content":"a"}"#);
    let body = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{chunk}\r\n",
        chunk.len()
    );
    let failure = sample_from(Script::send(body)).await.unwrap_err();
    assert!(matches!(failure, Failure::Disconnected(_)), "{failure:?}");
}

#[tokio::test]
async fn arguments_cut_by_the_token_limit_come_as_they_are() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#;
    let sampled = sample_from(Script::send(events(&(delta(call) + &finish("length"))))).await.unwrap();
    assert_eq!(sampled.finish, Finish::Length);
    assert_eq!(sampled.calls[0].arguments, "{\"x\":");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_too() {
    let body = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}"#;
    let answer = |kind: &str, body: &str| Script::answer(200, &format!("content-type: {kind}\r\n"), body);
    assert_eq!(sample_from(answer("application/json", body)).await.unwrap().text, "a");
    let error = r#"{"error":{"message":"boom"}}"#;
    let failure = sample_from(answer("application/json", error)).await.unwrap_err();
    assert!(matches!(failure, Failure::Provider { .. }), "{failure:?}");
    let events = delta(r#"{"content":"a"}"#) + &finish("stop");
    assert_eq!(sample_from(answer("application/json", &events)).await.unwrap().text, "a");
    let failure = sample_from(answer("text/html", "<html></html>")).await.unwrap_err();
    assert!(matches!(failure, Failure::Malformed(_)), "{failure:?}");
}

#[tokio::test]
async fn a_damaged_chunk_is_malformed() {
    let failure = sample_from(Script::send(events("data: {\"choices\":[}\n\n"))).await.unwrap_err();
    assert!(matches!(failure, Failure::Malformed(_)), "{failure:?}");
}

#[tokio::test]
async fn refusals_are_sorted_and_keep_what_the_provider_asks() {
    let message = |message: &str| format!(r#"{{"error":{{"message":"{message}"}}}}"#);
    let limited = sample_from(Script::answer(429, "retry-after: 7\r\n", &message("slow"))).await.unwrap_err();
    assert_eq!(
        limited,
        Failure::RateLimited { retry_after: Some(Duration::from_secs(7)), message: "slow".into() }
    );
    let date = httpdate(SystemTime::now() + Duration::from_secs(3600));
    let down =
        sample_from(Script::answer(503, &format!("retry-after: {date}\r\n"), "down")).await.unwrap_err();
    let wait = down.retry_after().expect("a wait").as_secs();
    assert!((3590..=3600).contains(&wait), "{down:?}");
    assert!(matches!(down, Failure::Provider { status: Some(503), .. }), "{down:?}");
    let long = message("This model's maximum context length is 8192 tokens");
    let long = sample_from(Script::answer(400, "", &long)).await.unwrap_err();
    assert!(matches!(long, Failure::ContextOverflow { limit: Some(8192), .. }), "{long:?}");
    let moved = sample_from(Script::answer(302, "location: http://elsewhere/\r\n", "")).await.unwrap_err();
    assert!(matches!(moved, Failure::Refused { status: Some(302), .. }), "{moved:?}");
}

fn httpdate(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

#[tokio::test]
async fn no_failure_shows_the_key() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sesame"}}"#;
    let in_stream = events(&format!("data: {body}\n\n"));
    for script in [Script::answer(401, "", body), Script::send(in_stream)] {
        let server = Server::start(vec![script]).await;
        let mut config = Config::new(server.base_url.clone());
        config.key = Some(Secret::new("sesame").unwrap());
        let provider = Provider::new(config).unwrap();
        let failure = sample(&provider, request()).await.unwrap_err();
        assert!(!format!("{failure:?} {failure} {provider:?}").contains("sesame"), "{failure:?}");
    }
}

#[tokio::test]
async fn nobody_at_home_is_disconnected() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let config = Config::new(klbr_llm::BaseUrl::parse(&format!("http://{address}")).unwrap());
    let failure = sample(&Provider::new(config).unwrap(), request()).await.unwrap_err();
    assert!(matches!(&failure, Failure::Disconnected(message) if message.contains("connect")), "{failure:?}");
}
