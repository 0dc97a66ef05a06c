//! `klbr models`: what the model server offers.

use std::time::Duration;

use klbr_llm::{Provider, discovery};
use klbr_server::api::{self, ModelServer, ModelStatus, OfferedModel, path};
use klbr_server::config::{Config, ServerChoice};

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::text::clean_line;

/// How long servers on this machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the daemon, or the server itself while none runs.
pub(super) async fn run(context: &Context) -> Outcome {
    let running = if context.home.exists() { context.daemon()? } else { None };
    let servers = match running {
        Some(client) => client.get::<api::Models>(path::MODELS, &()).await?.servers,
        None => ask(&context.config()?).await?,
    };
    if servers.is_empty() {
        return Err(none());
    }
    context.print(&servers, || servers.iter().map(list).collect())
}

fn none() -> CommandError {
    CommandError::remote(
        "no model server answers",
        "start one on this machine (llama.cpp, Ollama, LM Studio, vLLM), or set model.base_url in klbr.toml",
    )
}

/// What the configured server offers, or those that are found on this machine.
pub(super) async fn ask(config: &Config) -> Outcome<Vec<ModelServer>> {
    let server = |base_url: &klbr_llm::BaseUrl, offered: Vec<klbr_llm::Offered>| ModelServer {
        base_url: base_url.to_string(),
        models: offered
            .into_iter()
            .map(|model| OfferedModel { id: model.id, context_tokens: model.context_length })
            .collect(),
    };
    match &config.server {
        ServerChoice::At(config) => {
            let provider = Provider::new((**config).clone())
                .map_err(|error| CommandError::config(error.to_string(), "correct the server's address"))?;
            let offered = provider.list_models().await.map_err(|failure| {
                CommandError::remote(
                    format!("{} does not tell its models", config.base_url),
                    "start the server, or correct model.base_url and its key in klbr.toml",
                )
                .because(failure)
            })?;
            Ok(vec![server(&config.base_url, offered)])
        }
        ServerChoice::Discover(candidates) => {
            let found = discovery::discover(candidates, PATIENCE).await.map_err(|error| {
                CommandError::config(error.to_string(), "set model.base_url in klbr.toml")
            })?;
            Ok(found.into_iter().map(|found| server(&found.candidate.base_url, found.models)).collect())
        }
    }
}

fn list(server: &ModelServer) -> String {
    let line = |model: &OfferedModel| {
        let context = model.context_tokens.map(|tokens| format!("  {tokens} tokens")).unwrap_or_default();
        format!("  {}{context}\n", clean_line(&model.id))
    };
    let models: String = server.models.iter().map(line).collect();
    format!(
        "{}\n{}",
        server.base_url,
        if models.is_empty() { "  offers no model\n".to_owned() } else { models }
    )
}

/// The model in use, in words.
pub(super) fn in_use(status: &ModelStatus) -> String {
    clean_line(&match status {
        ModelStatus::Known { base_url, model, context_tokens } => {
            let context =
                context_tokens.map(|tokens| format!(", {tokens} tokens of context")).unwrap_or_default();
            format!("{model} at {base_url}{context}")
        }
        ModelStatus::BuiltIn { model } => format!("{model}, built in"),
        ModelStatus::Absent { why, hint } => format!("none: {why}; {hint}"),
    })
}
