//! A real llama.cpp server, where one is named: `KLBR_LLAMA_CPP=http://127.0.0.1:8080`.

use futures_util::StreamExt;
use klbr_core::model::{Failure, Finish, Message, ToolChoice};
use klbr_core::runtime::model::{Model, Piece};
use klbr_llm::{BaseUrl, Config, Provider};

use crate::server::{request, sample};

/// The server that is named, or `None`, said loudly.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn provider() -> Option<Provider> {
    let Ok(address) = std::env::var("KLBR_LLAMA_CPP") else {
        println!("SKIPPED: no llama.cpp server is named (set KLBR_LLAMA_CPP)");
        return None;
    };
    let config = Config::new(BaseUrl::parse(&address).expect("an address"));
    Some(Provider::new(config).expect("a provider"))
}

#[tokio::test]
async fn a_real_server_streams_lists_and_refuses_what_does_not_fit() {
    let Some(provider) = provider() else { return };
    let models = provider.list_models().await.expect("a list");
    let [model] = models.as_slice() else { panic!("one model: {models:?}") };
    let context = model.context_length.expect("llama.cpp tells");

    let mut asked = request();
    asked.model = model.id.as_str().into();
    asked.parameters.max_output_tokens = Some(8);
    match sample(&provider, asked.clone()).await {
        Ok(sampled) => {
            let usage = sampled.usage.expect("llama.cpp counts");
            println!("streamed {usage:?}, finish {:?}, context {context}", sampled.finish);
            assert!(usage.input > 0 && (1..=8).contains(&usage.output), "{usage:?}");
            let mut reply = provider.sample(asked.clone()).await.expect("a reply");
            assert!(matches!(reply.next().await, Some(Ok(Piece::Delta(_)))), "a first piece");
        }
        // A template for tools, and a model too small to follow it: an error frame inside a 200 stream.
        Err(failure) => {
            println!("failed: {failure}");
            assert!(matches!(failure, Failure::Provider { status: Some(500), .. }), "{failure:?}");
        }
    }

    let words = usize::try_from(context).expect("a context fits") + 16;
    asked.messages = vec![Message::User { text: "word ".repeat(words).into(), starts_turn: true }];
    let failure = sample(&provider, asked).await.expect_err("it does not fit");
    println!("overflow: {failure}");
    assert!(
        matches!(failure, Failure::ContextOverflow { limit: Some(limit), .. } if limit == context),
        "{failure:?}"
    );
}

/// Needs a template that knows tools, and is skipped with one that does not.
#[tokio::test]
async fn a_real_server_calls_a_tool_when_it_must() {
    let Some(provider) = provider() else { return };
    let mut asked = request();
    asked.tools = r#"[{"name":"wave","description":"Waves.","parameters":{"type":"object","properties":{"times":{"type":"integer"}},"required":["times"]}}]"#.into();
    asked.parameters.tool_choice = ToolChoice::Required;
    asked.parameters.max_output_tokens = Some(64);
    match sample(&provider, asked).await {
        Ok(sampled) if !sampled.calls.is_empty() => {
            println!("called {:?}, finish {:?}", sampled.calls, sampled.finish);
            assert!(matches!(sampled.finish, Finish::ToolCalls | Finish::Length), "{sampled:?}");
            assert_eq!(sampled.calls[0].name, "wave");
        }
        other => println!("SKIPPED: the server's template knows no tools: {other:?}"),
    }
}
