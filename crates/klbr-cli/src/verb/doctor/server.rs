//! The model's server: whether it answers, what it offers, whether its model calls tools.

use std::time::Duration;

use futures_util::StreamExt as _;
use klbr_core::model::{Message, Parameters, Request, Sampled, ToolChoice};
use klbr_core::runtime::model::{Model as _, Piece};
use klbr_llm::{BaseUrl, Provider};
use klbr_server::api::{ModelServer, OfferedModel};
use klbr_server::config::{Config, ServerChoice};

use super::super::models;
use super::Finding;
use crate::error::CommandError;

/// How long a model may take for one word and one call.
const PATIENCE: Duration = Duration::from_secs(60);
/// Below so many tokens an agent has little room to live in.
const SMALL: u64 = 8_192;

/// Looks at the server, and at the model that would be used.
pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let servers = match models::ask(config).await {
        Ok(servers) => servers,
        Err(error) => return vec![Finding::of("model", &error)],
    };
    let wanted = config.agent.model.as_deref();
    let fits = |model: &&OfferedModel| wanted.is_none_or(|wanted| model.id == wanted);
    let chosen = servers.iter().find_map(|server| Some((server, server.models.iter().find(fits)?)));
    let Some((server, model)) = chosen else { return vec![unusable(&servers, wanted)] };
    let mut findings = vec![Finding::good("model", format!("{} at {}", model.id, server.base_url))];
    findings.push(match config.agent.context_tokens.or(model.context_tokens) {
        Some(tokens) if tokens < SMALL => Finding::note(
            "context",
            format!("{tokens} tokens are few"),
            "start the server with a larger context; conversations are summarised often otherwise",
        ),
        Some(tokens) => Finding::good("context", format!("{tokens} tokens")),
        None => Finding::note(
            "context",
            "the server does not tell how large it is; 32768 tokens are taken for it",
            "set model.context_tokens in klbr.toml",
        ),
    });
    findings.push(tools(config, server, model).await);
    findings
}

fn unusable(servers: &[ModelServer], wanted: Option<&str>) -> Finding {
    match (servers, wanted) {
        ([], _) => Finding::bad(
            "model",
            "no model server answers on this machine, and none is configured",
            "start one (llama.cpp, Ollama, LM Studio, vLLM), or set model.base_url in klbr.toml; klbr demo needs none",
        ),
        (_, Some(wanted)) => Finding::bad(
            "model",
            format!("no server offers {wanted:?}"),
            "set model.name in klbr.toml to one that klbr models lists",
        ),
        (_, None) => Finding::bad("model", "the server offers no model", "load one there"),
    }
}

async fn tools(config: &Config, server: &ModelServer, model: &OfferedModel) -> Finding {
    let asked = tokio::time::timeout(PATIENCE, ask(config, server, model)).await;
    let hint = "an agent speaks only by calling tools: use a model and a chat template that know them";
    match asked {
        Ok(Ok(sampled)) if sampled.calls.iter().any(|call| call.name == "answer") => {
            Finding::good("tools", "the model calls them")
        }
        Ok(Ok(_)) => Finding::bad("tools", "asked to call a tool, the model only wrote text", hint),
        Ok(Err(error)) => Finding::of("tools", &error),
        Err(_) => Finding::note(
            "tools",
            format!("the model did not answer within {} s", PATIENCE.as_secs()),
            "it may be busy or slow; try again",
        ),
    }
}

/// Asks the model to call a tool.
async fn ask(config: &Config, server: &ModelServer, model: &OfferedModel) -> Result<Sampled, CommandError> {
    let no_server = |error: klbr_llm::ConfigError| {
        CommandError::config(error.to_string(), "correct the server's address")
    };
    let config = match &config.server {
        ServerChoice::At(config) => (**config).clone(),
        ServerChoice::Discover(_) => {
            klbr_llm::Config::new(BaseUrl::parse(&server.base_url).map_err(no_server)?)
        }
    };
    let provider = Provider::new(config).map_err(no_server)?;
    let tools = r#"[{"name":"answer","description":"Gives your answer.","parameters":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]"#;
    let request = Request {
        model: model.id.as_str().into(),
        system: "You answer only by calling the tool named answer.".into(),
        tools: tools.into(),
        messages: vec![Message::User {
            text: "Call answer with the text \"ready\".".into(),
            starts_turn: true,
        }],
        parameters: Parameters { effort: None, max_output_tokens: Some(512), tool_choice: ToolChoice::Auto },
    };
    let failed = |failure: klbr_core::model::Failure| {
        CommandError::remote("the model could not be asked", "the server's log says more").because(failure)
    };
    let mut reply = provider.sample(request).await.map_err(failed)?;
    while let Some(piece) = reply.next().await {
        if let Piece::Finished(sampled) = piece.map_err(failed)? {
            return Ok(sampled);
        }
    }
    Err(CommandError::remote("the model's reply ended before it was whole", "the server's log says more"))
}
