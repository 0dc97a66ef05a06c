//! One model server behind the model port.
//!
//! Owns a sampling from the request to the last piece of its reply, and what the server has taught on the
//! way. Refuses to retry what the core must decide: only a request that another form avoids being refused
//! is sent again, before anything of a reply has been seen.

mod reply;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt;
use klbr_core::model::{Failure, Request};
use klbr_core::runtime::model::{Model, Reply};
use reqwest::Response;

use crate::config::{Config, ConfigError};
use crate::convert::{self, Form};
use crate::http::{Answer, Deadline, Http, Refusal, Security};
use crate::learned::{self, Learned, LearnedModel, Part};
use crate::levels::{self, Levels, Metadata};

/// A model server. Clones share their connections and what was learned.
#[derive(Clone, Debug)]
pub struct Provider(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    http: Http,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    learned: Learned,
    /// Whether a request with `stream_options` has been answered: its refusals mean something else.
    takes_stream_options: bool,
}

impl Provider {
    /// A provider that has learned nothing yet. Nothing is connected before the first request.
    ///
    /// # Errors
    ///
    /// Fails when the address needs a secure connection and none is possible.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_learned(config, Learned::default())
    }

    /// A provider that knows what an earlier one has [learned](Self::learned).
    ///
    /// # Errors
    ///
    /// Fails as [`Provider::new`] does.
    pub fn with_learned(config: Config, learned: Learned) -> Result<Self, ConfigError> {
        let security = if config.base_url.is_secure() { Security::Tls } else { Security::Plain };
        let http = Http::new(config.key.clone(), config.timeouts.connect, security)?;
        let known = Mutex::new(Known { learned, takes_stream_options: false });
        Ok(Provider(Arc::new(Inner { config, http, known })))
    }

    /// What it was built from.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// What the server turned out not to take, to be kept for the next start.
    pub fn learned(&self) -> Learned {
        self.known(|known| known.learned.clone())
    }

    /// The effort levels that a model offers, without those that its server refused.
    pub fn levels(&self, model: &str) -> Levels {
        let narrowed = self.known(|known| {
            let learned = known.learned.models.get(model);
            learned.map(|learned| learned.narrow(&self.metadata(model)))
        });
        levels::levels(&narrowed.unwrap_or_else(|| self.metadata(model)))
    }

    pub(crate) fn http(&self) -> &Http {
        &self.0.http
    }

    fn metadata(&self, model: &str) -> Metadata {
        self.0.config.models.get(model).cloned().unwrap_or_default()
    }

    fn known<T>(&self, use_it: impl FnOnce(&mut Known) -> T) -> T {
        // What is known is replaced whole, so that a panic elsewhere cannot leave it half changed.
        use_it(&mut self.0.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a request in the forms that it takes until one is answered.
    async fn begin(&self, request: &Request) -> Result<(Response, Deadline), Failure> {
        let Inner { config, http, .. } = &*self.0;
        let model = &*request.model;
        let (learned, takes_stream_options) =
            self.known(|known| (known.learned.clone(), known.takes_stream_options));
        let learned_of_model = learned.models.get(model).cloned().unwrap_or_default();
        let mut form = Form {
            dialect: config.dialect,
            metadata: self.metadata(model),
            learned: learned_of_model.clone(),
            stream_options: !learned.no_stream_options,
            without_effort: false,
        };
        loop {
            let written = convert::write(request, &form)?;
            let deadline = Deadline::after(config.timeouts.first_byte);
            let url = config.base_url.endpoint("chat/completions");
            let refusal = match http.post(url, written.body, deadline).await {
                Ok(response) => {
                    self.remember(model, &form, &learned_of_model);
                    return Ok((response, deadline));
                }
                Err(refusal) => refusal,
            };
            let part = refused_part(&refusal, &written.parts, takes_stream_options);
            let (Some(part), Some(answer)) = (part, &refusal.answer) else {
                return Err(refusal.into_failure());
            };
            tracing::debug!(model, ?part, status = answer.status, "the server refused a part of the request");
            avoid(part, answer, request, &mut form);
        }
    }

    /// Remembers the form that the server took, where it differs from what was known.
    fn remember(&self, model: &str, form: &Form, before: &LearnedModel) {
        self.known(|known| {
            if form.stream_options {
                known.takes_stream_options = true;
            } else {
                known.learned.no_stream_options = true;
            }
            if form.learned != *before {
                known.learned.models.insert(model.to_owned(), form.learned.clone());
            }
        });
    }
}

/// The part of a request that its refusal is about, if it is about one.
fn refused_part(refusal: &Refusal, sent: &[Part], takes_stream_options: bool) -> Option<Part> {
    let Answer { status, words } = refusal.answer.as_ref()?;
    if !matches!(refusal.failure, Failure::Refused { .. } | Failure::Provider { .. }) {
        return None;
    }
    // Older servers refuse `stream_options` without naming it.
    let perhaps = matches!(status, 400 | 422) && sent.contains(&Part::StreamOptions) && !takes_stream_options;
    learned::refused_part(*status, words, sent).or_else(|| perhaps.then_some(Part::StreamOptions))
}

/// Changes the form so that the refused part is not sent again.
fn avoid(part: Part, answer: &Answer, request: &Request, form: &mut Form) {
    match part {
        Part::StreamOptions => form.stream_options = false,
        Part::TemplateKwargs => form.learned.no_template_kwargs = true,
        Part::MaxTokens => form.learned.max_completion_tokens = true,
        Part::RequiredCalls => form.learned.no_required_calls = true,
        Part::ReasoningBack => form.learned.no_reasoning_back = true,
        Part::Effort => {
            form.without_effort = true;
            let metadata = form.learned.narrow(&form.metadata);
            let refused = request.parameters.effort.as_deref();
            form.learned.efforts = Some(learned::narrowed_efforts(&metadata, refused, &answer.words));
        }
    }
}

#[async_trait]
impl Model for Provider {
    async fn sample(&self, request: Request) -> Result<Reply, Failure> {
        let (response, first_byte) = self.begin(&request).await?;
        let timeouts = self.0.config.timeouts;
        Ok(reply::stream(response, first_byte, timeouts, self.0.http.clone())?.boxed())
    }
}
