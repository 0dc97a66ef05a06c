//! What a server offers, and which servers are there.

use std::time::Duration;

use klbr_core::model::Failure;
use klbr_llm::discovery::{Candidate, Kind, discover, usual_candidates};
use klbr_llm::{BaseUrl, Config, Offered, Provider};

use crate::server::{Script, Server};

fn json(body: &str) -> Script {
    Script::answer(200, "content-type: application/json\r\n", body)
}

fn not_found() -> Script {
    Script::answer(404, "", "not found")
}

fn offered(id: &str, context_length: Option<u64>) -> Offered {
    Offered { id: id.into(), context_length }
}

async fn llama_cpp() -> Server {
    Server::route(|seen, _| match seen.line.as_str() {
        "GET /v1/models" => json(r#"{"data":[{"id":"tiny","meta":{"n_ctx_train":9}}]}"#),
        "GET /props" => json(r#"{"default_generation_settings":{"n_ctx":4096}}"#),
        _ => not_found(),
    })
    .await
}

#[tokio::test]
async fn models_are_listed_with_the_context_that_the_server_tells() {
    let server = llama_cpp().await;
    assert_eq!(server.provider().list_models().await.unwrap(), [offered("tiny", Some(4096))]);

    let ollama = Server::route(|seen, _| match (seen.line.as_str(), seen.body["model"].as_str()) {
        ("GET /v1/models", _) => json(r#"{"data":[{"id":"a"},{"id":"b"}]}"#),
        ("POST /api/show", Some("a")) => json(r#"{"model_info":{"llama.context_length":8192}}"#),
        ("POST /api/show", Some("b")) => json(r#"{"parameters":"num_ctx 2048","model_info":{}}"#),
        _ => not_found(),
    })
    .await;
    assert_eq!(
        ollama.provider().list_models().await.unwrap(),
        [offered("a", Some(8192)), offered("b", Some(2048))]
    );

    let studio = Server::route(|seen, _| match seen.line.as_str() {
        "GET /v1/models" => json(r#"{"data":[{"id":"a"},{"id":"b"}]}"#),
        "GET /api/v0/models" => json(
            r#"{"data":[{"id":"b","max_context_length":9000,"loaded_context_length":4000},{"id":"a","max_context_length":7}]}"#,
        ),
        _ => not_found(),
    })
    .await;
    assert_eq!(
        studio.provider().list_models().await.unwrap(),
        [offered("a", Some(7)), offered("b", Some(4000))]
    );

    let hosted = Server::route(|seen, _| match seen.line.as_str() {
        "GET /v1/models" => json(r#"{"data":[{"id":"a"}]}"#),
        _ => not_found(),
    })
    .await;
    assert_eq!(hosted.provider().list_models().await.unwrap(), [offered("a", None)]);
}

#[tokio::test]
async fn a_server_that_swaps_models_is_asked_about_one() {
    let server = Server::route(|seen, _| match seen.line.as_str() {
        "GET /v1/models" => json(r#"{"data":[{"id":"a"},{"id":"b"}]}"#),
        "GET /upstream/b/props" => json(r#"{"default_generation_settings":{"n_ctx":1024}}"#),
        _ => not_found(),
    })
    .await;
    assert_eq!(server.provider().context_length("b").await.unwrap(), Some(1024));
    assert_eq!(server.provider().context_length("a").await.unwrap(), None);
}

#[tokio::test]
async fn what_is_no_list_is_a_failure() {
    let server = Server::start(vec![json("{}")]).await;
    assert!(matches!(server.provider().list_models().await, Err(Failure::Malformed(_))));
    let server = Server::start(vec![Script::answer(401, "", r#"{"error":"who are you"}"#)]).await;
    assert!(matches!(server.provider().list_models().await, Err(Failure::Unauthorized { status: 401, .. })));
}

#[tokio::test]
async fn servers_are_found_where_they_list_models() {
    let (found, web, silent) = (
        llama_cpp().await,
        Server::start(vec![Script::answer(200, "content-type: text/html\r\n", "<html></html>")]).await,
        Server::start(vec![Script::hold("")]).await,
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let candidate = |kind, base_url: &BaseUrl| Candidate { kind, base_url: base_url.clone() };
    let candidates = [
        candidate(Kind::Vllm, &silent.base_url),
        candidate(Kind::Ollama, &BaseUrl::parse(&format!("http://{free}")).unwrap()),
        candidate(Kind::LmStudio, &web.base_url),
        candidate(Kind::LlamaCpp, &found.base_url),
    ];
    let servers = discover(&candidates, Duration::from_millis(500)).await.unwrap();
    assert_eq!(servers.len(), 1, "{servers:?}");
    assert_eq!(servers[0].candidate, candidates[3]);
    assert_eq!(servers[0].models, [offered("tiny", Some(4096))]);
}

#[test]
fn the_usual_candidates_are_on_this_machine() {
    let addresses: Vec<String> = usual_candidates()
        .iter()
        .map(|candidate| format!("{} {}", candidate.kind, candidate.base_url))
        .collect();
    assert_eq!(
        addresses,
        [
            "llama.cpp http://127.0.0.1:8080/v1",
            "Ollama http://127.0.0.1:11434/v1",
            "LM Studio http://127.0.0.1:1234/v1",
            "vLLM http://127.0.0.1:8000/v1",
        ]
    );
}

#[test]
fn a_secure_address_needs_no_global_setup() {
    let config = Config::new(BaseUrl::parse("https://api.example.test/v1").unwrap());
    assert!(Provider::new(config).is_ok());
}
