//! The model that may not be there yet.
//!
//! Owns the choice of a server and a model, also while none is known: each sampling then looks again, so
//! that the core's own retries are the retries of the search. Asks again for what a server did not tell at first.
//! Refuses to change its mind: a server that was found stays in use.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::model::{Failure, Request};
use klbr_core::runtime::model::{Model, Reply};
use klbr_llm::discovery::{self, Candidate};
use klbr_llm::{ConfigError, Provider};
use tokio::sync::{Mutex, Notify, watch};

use crate::api::{ModelServer, ModelStatus, Models, OfferedModel};
use crate::config::ServerChoice;

/// The model's name in an agent's records while the server that will answer is not known.
pub(crate) const LATE: &str = "auto";

/// How long a server may take to tell what it offers.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long nothing is looked for while nothing is asked for.
const PAUSE: Duration = Duration::from_secs(10);

/// A model server that is found at the latest when it is needed. Clones share what was found.
#[derive(Clone)]
pub(crate) struct LateModel(Arc<Inner>);

struct Inner {
    servers: Servers,
    /// The model that was asked for.
    wanted: Option<String>,
    /// Whether the size of the model's context has to be asked for.
    asks_context: bool,
    found: watch::Sender<Result<InUse, Absence>>,
    /// Held while looking, so that only one looks.
    looking: Mutex<()>,
    /// A server has begun to answer.
    answered: Notify,
}

enum Servers {
    One(Provider),
    Any(Vec<Candidate>),
}

/// The server and model in use.
#[derive(Clone)]
pub(crate) struct InUse {
    provider: Provider,
    pub(crate) model: Arc<str>,
    pub(crate) context_tokens: Option<u64>,
    /// Whether the server was not there yet to tell the size of the context.
    is_silent: bool,
}

/// Why no server is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    why: String,
    hint: &'static str,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.why, self.hint)
    }
}

const HINT_NONE: &str = "start a model server on this machine (llama.cpp, Ollama, LM Studio or vLLM), or set KLBR_BASE_URL \
                         and, where it asks for one, KLBR_API_KEY";
const HINT_SILENT: &str = "start the server, or correct KLBR_BASE_URL; it is asked again with each try";
const HINT_MODEL: &str = "set KLBR_MODEL to one that is offered; `klbr models` lists them";

impl LateModel {
    /// Connects to nothing.
    ///
    /// # Errors
    ///
    /// Fails when the server needs a secure connection and none is possible.
    pub(crate) fn new(
        choice: &ServerChoice,
        wanted: Option<String>,
        asks_context: bool,
    ) -> Result<Self, ConfigError> {
        let servers = match choice {
            ServerChoice::At(config) => Servers::One(Provider::new((**config).clone())?),
            ServerChoice::Discover(candidates) => Servers::Any(candidates.clone()),
        };
        let not_yet = Absence { why: "no model server has been looked for yet".into(), hint: HINT_NONE };
        let found = watch::Sender::new(Err(not_yet));
        Ok(LateModel(Arc::new(Inner {
            servers,
            wanted,
            asks_context,
            found,
            looking: Mutex::new(()),
            answered: Notify::new(),
        })))
    }

    /// The server in use; looks for one when there is none. Takes at most about a second.
    pub(crate) async fn find(&self) -> Result<InUse, Absence> {
        let found = || self.0.found.borrow().clone();
        if let Ok(in_use) = found() {
            return Ok(in_use);
        }
        let _only = self.0.looking.lock().await;
        let known = match found() {
            Ok(in_use) => return Ok(in_use),
            Err(absence) => absence,
        };
        let result = match &self.0.servers {
            Servers::One(provider) => self.look_at(provider).await,
            Servers::Any(candidates) => self.look_for(candidates).await,
        };
        match &result {
            Ok(in_use) => tracing::info!(
                server = %in_use.provider.config().base_url, model = %in_use.model,
                context_tokens = in_use.context_tokens, "the model server"
            ),
            Err(absence) if *absence == known => {}
            Err(absence) => tracing::warn!(hint = absence.hint, "{}", absence.why),
        }
        // What was there before was no server.
        let _ = self.0.found.send_replace(result.clone());
        result
    }

    /// Looks again and again until a server is found that has said what it has to say; answers with it, the size of
    /// the context only where it had to be asked for.
    pub(crate) async fn settled(&self) -> InUse {
        loop {
            if let Ok(in_use) = self.find().await {
                let in_use = if in_use.is_silent { self.ask_again(in_use).await } else { in_use };
                if !in_use.is_silent {
                    let told = in_use.context_tokens.filter(|_| self.0.asks_context);
                    return InUse { context_tokens: told, ..in_use };
                }
            }
            // A server that answers a request ends the pause.
            let _ = tokio::time::timeout(PAUSE, self.0.answered.notified()).await;
        }
    }

    /// Asks a server for the size of the context that it did not tell before.
    async fn ask_again(&self, in_use: InUse) -> InUse {
        let Some(told) = told_context(&in_use.provider, &in_use.model).await else { return in_use };
        let in_use = InUse { context_tokens: told, is_silent: false, ..in_use };
        tracing::info!(model = %in_use.model, context_tokens = told, "the model server tells its context");
        // What was there before is the same without it.
        let _ = self.0.found.send_replace(Ok(in_use.clone()));
        in_use
    }

    async fn look_at(&self, provider: &Provider) -> Result<InUse, Absence> {
        let url = &provider.config().base_url;
        let silent = |why: &dyn fmt::Display| Absence {
            why: format!("{url} does not tell its models: {why}"),
            hint: HINT_SILENT,
        };
        if let Some(model) = &self.0.wanted {
            let told = match self.0.asks_context {
                true => told_context(provider, model).await,
                false => Some(None),
            };
            return Ok(InUse {
                provider: provider.clone(),
                model: model.as_str().into(),
                context_tokens: told.flatten(),
                is_silent: told.is_none(),
            });
        }
        let offered = match within(provider.list_models()).await {
            Ok(Ok(offered)) => offered,
            Ok(Err(failure)) => return Err(silent(&failure)),
            Err(_) => return Err(silent(&"it does not answer within a second")),
        };
        match offered.into_iter().next() {
            Some(first) => Ok(InUse {
                provider: provider.clone(),
                model: first.id.into(),
                context_tokens: first.context_length,
                is_silent: false,
            }),
            None => Err(Absence { why: format!("{url} offers no model"), hint: HINT_SILENT }),
        }
    }

    async fn look_for(&self, candidates: &[Candidate]) -> Result<InUse, Absence> {
        let absent = |why: String, hint| Absence { why, hint };
        let servers = discovery::discover(candidates, PATIENCE)
            .await
            .map_err(|error| absent(error.to_string(), HINT_NONE))?;
        let fits = |id: &str| self.0.wanted.as_deref().is_none_or(|wanted| wanted == id);
        let is_any = !servers.is_empty();
        let first = servers.into_iter().find_map(|server| {
            let model = server.models.into_iter().find(|offered| fits(&offered.id))?;
            Some((server.candidate.base_url, model))
        });
        match (first, &self.0.wanted) {
            (Some((base_url, model)), _) => {
                let provider = Provider::new(klbr_llm::Config::new(base_url))
                    .map_err(|error| absent(error.to_string(), HINT_NONE))?;
                Ok(InUse {
                    provider,
                    model: model.id.into(),
                    context_tokens: model.context_length,
                    is_silent: false,
                })
            }
            (None, Some(wanted)) if is_any => {
                Err(absent(format!("no model server on this machine offers {wanted:?}"), HINT_MODEL))
            }
            (None, _) => Err(absent("no model server was found on this machine".into(), HINT_NONE)),
        }
    }

    pub(crate) fn status(&self) -> ModelStatus {
        match &*self.0.found.borrow() {
            Ok(in_use) => ModelStatus::Known {
                base_url: in_use.provider.config().base_url.to_string(),
                model: in_use.model.to_string(),
                context_tokens: in_use.context_tokens,
            },
            Err(absence) => ModelStatus::Absent { why: absence.why.clone(), hint: absence.hint.to_owned() },
        }
    }

    /// What the servers offer; those that do not answer are left out.
    pub(crate) async fn offered(&self) -> Models {
        let in_use = self.find().await;
        let list = match (&self.0.servers, &in_use) {
            (Servers::One(provider), _) => match within(provider.list_models()).await {
                Ok(Ok(models)) => vec![(provider.config().base_url.to_string(), models)],
                Ok(Err(_)) | Err(_) => Vec::new(),
            },
            (Servers::Any(candidates), _) => {
                let found = discovery::discover(candidates, PATIENCE).await.unwrap_or_default();
                found.into_iter().map(|found| (found.candidate.base_url.to_string(), found.models)).collect()
            }
        };
        let servers = list.into_iter().map(|(base_url, models)| ModelServer {
            base_url,
            models: models
                .into_iter()
                .map(|model| OfferedModel { id: model.id, context_tokens: model.context_length })
                .collect(),
        });
        Models { servers: servers.collect(), in_use: self.status() }
    }
}

/// The context of a model, as its server tells it; none inside when it does not tell, none at all when it is not
/// there to be asked.
async fn told_context(provider: &Provider, model: &str) -> Option<Option<u64>> {
    match within(provider.context_length(model)).await {
        Ok(Ok(told)) => Some(told),
        Ok(Err(
            Failure::Malformed(_)
            | Failure::Unauthorized { .. }
            | Failure::Refused { .. }
            | Failure::ContextOverflow { .. },
        )) => Some(None),
        Ok(Err(
            Failure::Disconnected(_)
            | Failure::Stalled(_)
            | Failure::RateLimited { .. }
            | Failure::Provider { .. },
        ))
        | Err(_) => None,
    }
}

async fn within<T>(work: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout(PATIENCE, work).await
}

#[async_trait]
impl Model for LateModel {
    async fn sample(&self, mut request: Request) -> Result<Reply, Failure> {
        let in_use = self.find().await.map_err(|absence| Failure::Disconnected(absence.to_string()))?;
        if &*request.model == LATE {
            request.model = in_use.model;
        }
        let reply = in_use.provider.sample(request).await?;
        self.0.answered.notify_one();
        Ok(reply)
    }
}
