//! A provider that says that a request does not fit, and one that counts what cannot be: over the wire.

use std::time::Duration;

use klbr_core::config::Config as Agent;
use klbr_core::record::Record;
use klbr_core::runtime::{AgentBuilder, RunningAgent, Updates};
use klbr_core::testkit::MemoryStore;
use klbr_core::update::Happening;
use klbr_llm::{BaseUrl, Config, Provider};
use klbr_tests::fake_model::FakeModel;
use serde_json::{Value, json};

use crate::wire::WATCHDOG;

async fn agent(fake: &FakeModel, context_tokens: u64) -> (RunningAgent, Updates) {
    let base = BaseUrl::parse(&fake.ready().base).unwrap();
    let provider = Provider::new(Config::new(base)).unwrap();
    let mut config = Agent::new("ada".parse().unwrap(), "fake-model");
    config.context_tokens = context_tokens;
    config.limits.backoff_first = Duration::from_millis(1);
    let agent = AgentBuilder::new(config, MemoryStore::new(), provider).start().await.unwrap();
    let updates = agent.handle().updates(None).await.unwrap();
    (agent, updates)
}

/// Says something and waits for the turn's end; everything that happened on the way.
async fn turn(agent: &RunningAgent, updates: &mut Updates, key: &str, say: &str) -> Vec<Happening> {
    agent.handle().say(key, say).await.unwrap();
    let mut happened = Vec::new();
    let until = async {
        let mut has_ended = false;
        // A summary is written while the agent waits; whoever speaks at once would end that.
        while !has_ended || agent.handle().status().await.unwrap().compacting {
            let happening = updates.next().await.unwrap().expect("the agent lives").happening.clone();
            has_ended |= matches!(happening, Happening::Waiting { .. });
            happened.push(happening);
        }
    };
    tokio::time::timeout(WATCHDOG, until).await.expect("the turn ends");
    happened
}

fn ends() -> Value {
    json!([
        { "call": { "name": "local_send", "arguments": { "content": "I see" } } },
        { "call": { "name": "wait_and_continue", "arguments": { "duration": "10m" } } },
    ])
}

#[tokio::test]
async fn a_request_that_llama_cpp_refuses_for_its_length_is_made_shorter_and_answered() {
    let refused = json!({ "body": { "refuse": { "status": 400, "says": "overflow" } } });
    let rules = json!([
        // The fourth request is one too many, by a context that nobody was told of.
        { "when": { "nth": 4 }, "answer": refused },
        { "answer": { "body": { "reply": { "parts": ends() } } } },
    ]);
    let fake = FakeModel::scripted(&json!({ "context_tokens": 2_048, "rules": rules })).await.unwrap();
    let (agent, mut updates) = agent(&fake, 32_768).await;
    for n in 0..3 {
        turn(&agent, &mut updates, &format!("k{n}"), &"a long story ".repeat(40)).await;
    }
    let happened = turn(&agent, &mut updates, "k3", "so?").await;
    let order = |wanted: fn(&Happening) -> bool| happened.iter().position(wanted).expect("it happened");
    let failed = order(|happening| matches!(happening, Happening::SamplingFailed { .. }));
    let swapped = order(|happening| matches!(happening, Happening::Compacted { .. }));
    let delivered = order(|happening| matches!(happening, Happening::Delivered { .. }));
    assert!(failed < swapped && swapped < delivered, "{happened:?}");
    let records =
        agent.handle().store().records(agent.handle().agent(), klbr_core::ids::Seq(0), 10_000).await;
    let records = records.unwrap();
    assert!(
        !records
            .iter()
            .any(|r| matches!(r.record, Record::PrefixBroken { .. } | Record::DeadLettered { .. }))
    );
    agent.shutdown().await;
}

#[tokio::test]
async fn counts_that_cannot_be_change_nothing() {
    for usage in [
        r#"{"prompt_tokens":0,"completion_tokens":0}"#,
        r#"{"prompt_tokens":-5,"completion_tokens":-1}"#,
        r#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}"#,
        r#"{"prompt_tokens":9007199254740991,"completion_tokens":1}"#,
        r#"{"prompt_tokens":1e300,"completion_tokens":null}"#,
        r#"{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":4000000}}"#,
        r#"{"prompt_tokens":"many"}"#,
        r#"[]"#,
    ] {
        let calls = r#"[{"index":0,"id":"","function":{"name":"local_send","arguments":"{\"content\":\"I see\"}"}},{"index":1,"id":"","function":{"name":"wait_and_continue","arguments":"{\"duration\":\"10m\"}"}}]"#;
        let stream = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":{calls}}},\"finish_reason\":null}}]}}\n\n\
             data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"tool_calls\"}}],\"usage\":{usage}}}\n\n\
             data: [DONE]\n\n"
        );
        let summary = json!({ "body": { "reply": { "parts": [{ "text": { "say": "in short" } }] } } });
        let rules = json!([
            { "when": { "last_contains": "<instructions>" }, "answer": summary },
            { "answer": { "body": { "replay": { "text": stream } } } },
        ]);
        let fake = FakeModel::scripted(&json!({ "rules": rules })).await.unwrap();
        let (agent, mut updates) = agent(&fake, 6_000).await;
        for n in 0..12 {
            turn(&agent, &mut updates, &format!("k{n}"), &"a long story ".repeat(120)).await;
        }
        let records =
            agent.handle().store().records(agent.handle().agent(), klbr_core::ids::Seq(0), 10_000).await;
        let records = records.unwrap();
        let mut tokens = Vec::new();
        let mut summaries = 0;
        for stamped in &records {
            match &stamped.record {
                Record::StepRequested { tokens: estimated, .. } => tokens.push(*estimated),
                Record::Compacted { model, .. } => summaries += usize::from(model.is_some()),
                Record::PrefixBroken { .. } | Record::SamplingFailed { .. } => panic!("{usage}: {stamped:?}"),
                _ => {}
            }
        }
        assert!(
            summaries >= 1 && tokens.iter().all(|tokens| *tokens < 6_000),
            "{usage}: {summaries} {tokens:?}"
        );
        agent.shutdown().await;
    }
}
