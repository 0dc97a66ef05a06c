//! What the fake says: replies, replays, refusals, and the order in which rules answer.

use klbr_tests::fake_model::{EndHow, What};
use serde_json::{Value, json};

use super::wire::{WATCHDOG, always, data, event, joined, post, says, scripted, stream, streaming};

#[tokio::test]
async fn a_reply_streams_thought_text_and_calls() {
    let call = json!({"name": "f", "arguments": {"a": [1, 2]}, "pieces": {"bytes": 3}});
    let fake = says(json!([
        {"think": {"say": "let me see", "pieces": "words", "gap_ms": 1}},
        {"text": {"say": "héllo", "pieces": "chars"}},
        {"call": call}
    ]))
    .await;
    let data = stream(&fake, &streaming("hi")).await;
    assert_eq!(joined(&data, "reasoning_content"), "let me see");
    assert_eq!(joined(&data, "content"), "héllo");
    let chunks: Vec<Value> =
        data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let calls: Vec<&Value> =
        chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]).collect();
    let arguments: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(arguments, r#"{"a":[1,2]}"#);
    assert_eq!(calls.iter().filter(|call| call["id"] == "call_1_0").count(), 1);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(data.last().unwrap(), "[DONE]");
}

#[tokio::test]
async fn the_same_reply_comes_whole_without_stream() {
    let fake = says(json!([{"think": "t"}, {"text": "a"}, {"text": "b"}, {"call": {"name": "f"}}])).await;
    let response = post(&fake, &json!({"model": "m", "messages": []})).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let choice = &body["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["message"]["reasoning_content"]),
        (&json!("ab"), &json!("t"))
    );
    assert_eq!(choice["message"]["tool_calls"][0]["function"], json!({"name": "f", "arguments": "{}"}));
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert!(body["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn rules_answer_in_order_and_by_condition() {
    let text = |text: &str| json!({"body": {"reply": {"parts": [{"text": text}]}}});
    let fake = scripted(json!({"rules": [
        {"when": {"last_contains": "weather"}, "answer": text("sun")},
        {"when": {"nth": 3}, "answer": text("third")},
        {"when": {"body_contains": "\"model\":\"z\"", "stream": true, "last_role": "user"}, "answer": text("z")},
        {"times": 1, "answer": text("first")},
        {"times": 1, "answer": text("second")},
    ]}))
    .await;
    let mut said = Vec::new();
    for ask in ["x", "the weather", "x", "x"] {
        said.push(joined(&stream(&fake, &streaming(ask)).await, "content"));
    }
    let mut named = streaming("x");
    named["model"] = "z".into();
    said.push(joined(&stream(&fake, &named).await, "content"));
    assert_eq!(said, ["first", "sun", "third", "second", "z"]);
    let response = post(&fake, &streaming("x")).await;
    assert_eq!(response.status(), 500);
    assert!(response.text().await.unwrap().contains("no rule of the script answers chat request 6"));
}

#[tokio::test]
async fn recorded_bytes_are_replayed_to_the_byte_however_they_are_written() {
    let recorded = "data: {\"é\": \"世界\"}\r\n\r\n: note\n\ndata: [DONE]";
    let file = std::env::temp_dir().join(format!("klbr-replay-{}.sse", std::process::id()));
    std::fs::write(&file, recorded).unwrap();
    let replay = json!({"replay": {"file": file}});
    for (split, writes) in
        [(json!("events"), 3), (json!({"each": 1}), recorded.len()), (json!({"at": [8, 20]}), 3)]
    {
        let fake = always(json!({"body": replay, "writes": {"split": split}})).await;
        assert_eq!(post(&fake, &streaming("x")).await.bytes().await.unwrap(), recorded);
        event(&fake, 1, "the end", |what| *what == What::Ended { how: EndHow::Whole }).await;
        let events = fake.control().events().await.unwrap();
        let wrote: Vec<usize> = events
            .iter()
            .filter_map(|event| match event.what {
                What::Wrote { total, .. } => Some(total),
                _ => None,
            })
            .collect();
        assert_eq!((wrote.len(), wrote.last()), (writes, Some(&recorded.len())));
    }
    std::fs::remove_file(&file).unwrap();
    let fake = always(json!({"body": replay})).await;
    let response = post(&fake, &streaming("x")).await;
    assert!(response.text().await.unwrap().contains("klbr-replay-"));
}

#[tokio::test]
async fn every_recorded_stream_of_the_shared_folder_is_replayed_to_the_byte() {
    let shared = std::env::var("KLBR_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared").into());
    let folder = std::path::Path::new(&shared).join("real/streams");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        assert!(std::env::var_os("CI").is_none(), "{} is absent", folder.display());
        println!("SKIPPED: {} is absent; set KLBR_SHARED", folder.display());
        return;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "sse")).collect();
    assert!(files.len() > 200);
    let rules: Vec<Value> = files
        .iter()
        .map(|file| json!({"times": 1, "answer": {"body": {"replay": {"file": file}}}}))
        .collect();
    let fake = scripted(json!({"rules": rules})).await;
    for file in &files {
        let replayed = post(&fake, &streaming("x")).await.bytes().await.unwrap();
        assert_eq!(replayed, std::fs::read(file).unwrap(), "{}", file.display());
    }
}

#[tokio::test]
async fn refusals_carry_status_retry_after_and_a_fitting_body() {
    let refuse = |refuse: Value| json!({"times": 1, "answer": {"body": {"refuse": refuse}}});
    let fake = scripted(json!({"context_tokens": 100, "rules": [
        refuse(json!({"status": 429, "retry_after": {"seconds": 2}})),
        refuse(json!({"status": 429, "retry_after": {"date_in": 60}})),
        refuse(json!({"status": 503, "retry_after": {"text": "soon"}, "says": {"text": "busy"}})),
        refuse(json!({"status": 500})),
        refuse(json!({"status": 401})),
        refuse(json!({"status": 400, "says": "overflow"})),
        refuse(json!({"status": 418, "says": {"json": {"detail": "tea"}}})),
    ]}))
    .await;
    let mut seen = Vec::new();
    for _ in 0..7 {
        let response = post(&fake, &streaming("x")).await;
        let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        seen.push((response.status().as_u16(), retry, response.text().await.unwrap()));
    }
    assert_eq!((seen[0].0, seen[0].1.as_deref()), (429, Some("2")));
    let date = seen[1].1.as_deref().unwrap();
    assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
    assert_eq!(seen[2], (503, Some("soon".into()), "busy".into()));
    assert!(seen[3].0 == 500 && seen[3].2.contains("server_error"));
    assert!(seen[4].0 == 401 && seen[4].2.contains("invalid_api_key"));
    assert!(
        seen[5].0 == 400
            && seen[5].2.contains("exceed_context_size_error")
            && seen[5].2.contains("\"n_ctx\":100")
    );
    assert_eq!(seen[6], (418, None, r#"{"detail":"tea"}"#.into()));
}

#[tokio::test]
async fn usage_comes_where_it_is_told_to_or_not_at_all() {
    let reply = |usage: Value| json!({"times": 1, "answer": {"body": {"reply": {"parts": [{"text": "hi"}], "usage": usage}}}});
    let given = |chunk| json!({"given": {"prompt": 9, "completion": 2, "cached": 8, "chunk": chunk}});
    let fake = scripted(json!({"rules": [
        reply(json!("auto")), reply(json!("auto")), reply(json!("absent")), reply(json!("zero")),
        reply(given("own")), reply(given("finish")),
    ]}))
    .await;
    let mut asks = streaming("x");
    let mut found = Vec::new();
    for n in 0..6 {
        if n == 1 {
            asks["stream_options"] = json!({"include_usage": true});
        }
        let data = stream(&fake, &asks).await;
        let chunks = data.iter().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let with = chunks.filter(|chunk| chunk.get("usage").is_some());
        found.push(
            with.map(|chunk| (chunk["choices"].as_array().unwrap().len(), chunk["usage"].clone()))
                .collect::<Vec<_>>(),
        );
    }
    assert!(found[0].is_empty() && found[2].is_empty());
    assert!(found[1][0].0 == 0 && found[1][0].1["completion_tokens"] == 1);
    assert_eq!(found[3][0].1["total_tokens"], 0);
    assert!(found[4][0].0 == 0 && found[5][0].0 == 1);
    assert_eq!(found[5][0].1["prompt_tokens_details"]["cached_tokens"], 8);
}

#[tokio::test]
async fn an_error_inside_the_stream_ends_what_is_said() {
    let fake = says(json!([{"text": "so far"}, {"error": {"message": "boom", "code": 500}}])).await;
    let data = stream(&fake, &streaming("x")).await;
    assert_eq!(data.last().unwrap(), r#"{"error":{"code":500,"message":"boom"}}"#);
    assert!(!data.iter().any(|data| data.contains("finish_reason\":\"")));
    let whole = post(&fake, &json!({"messages": []})).await;
    assert_eq!(whole.status(), 500);
}

#[tokio::test]
async fn a_stream_may_end_without_done_or_finish_reason() {
    let fake =
        always(json!({"body": {"reply": {"parts": [{"text": "a"}], "done": false, "finish": false}}})).await;
    let data = stream(&fake, &streaming("x")).await;
    assert_eq!(data.len(), 2);
    assert!(data[1].contains("\"content\":\"a\""));
}

#[tokio::test]
async fn raw_bytes_and_data_stand_in_the_stream_as_written() {
    let fake = says(json!([{"raw": ": comment\n\n"}, {"data": "not json"}])).await;
    let body = post(&fake, &streaming("x")).await.text().await.unwrap();
    assert!(body.contains("\n\n: comment\n\ndata: not json\n\n"));
}

#[tokio::test]
async fn a_delay_and_a_gate_hold_back_the_first_byte() {
    let fake =
        always(json!({"gate": "go", "delay_ms": 30, "body": {"reply": {"parts": [{"text": "late"}]}}})).await;
    let asks = streaming("x");
    let control = fake.control().clone();
    let (data, ()) = tokio::join!(stream(&fake, &asks), async {
        event(&fake, 1, "the gate", |what| matches!(what, What::Holding { gate } if gate == "go")).await;
        control.release("go").await.unwrap();
    });
    assert_eq!(joined(&data, "content"), "late");
    let holding = event(&fake, 1, "the gate", |what| matches!(what, What::Holding { .. })).await;
    let head = event(&fake, 1, "the head", |what| matches!(what, What::Head { status: 200 })).await;
    assert!(head.at.since(holding.at).as_millis() >= 30);
}

#[tokio::test]
async fn a_late_call_comes_only_after_its_release() {
    let fake = says(json!([{"text": "wait"}, {"gate": "late"}, {"call": {"name": "f"}}])).await;
    let mut response = post(&fake, &streaming("x")).await;
    let mut seen = String::new();
    while !seen.contains("wait") {
        seen += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
    }
    event(&fake, 1, "the gate", |what| matches!(what, What::Holding { .. })).await;
    let held = fake.control().events().await.unwrap().len();
    assert!(!seen.contains("tool_calls"));
    fake.control().release("late").await.unwrap();
    seen += &response.text().await.unwrap();
    assert!(seen.contains("\"tool_calls\":[") && data(&seen).last().unwrap() == "[DONE]");
    let wanted = |event: &klbr_tests::fake_model::Event| event.what == What::Ended { how: EndHow::Whole };
    let end = fake.control().wait_event("the end", held as u64, WATCHDOG, wanted).await.unwrap();
    assert_eq!(end.request, Some(1));
}
