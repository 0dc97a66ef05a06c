//! What a server offers.
//!
//! Owns the places where servers say how large a model's context is. Refuses to assume a size: where no
//! place tells, it is unknown.

use std::time::Duration;

use klbr_core::model::Failure;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::failure;
use crate::http::{Deadline, Http, Refusal};
use crate::provider::Provider;
use crate::stream::object::{self, Object};

/// How long a server may take to list its models.
const LISTING: Duration = Duration::from_secs(15);
/// How long it may take to tell of one, where that is extra.
const TELLING: Duration = Duration::from_secs(3);
/// The most models that are asked about one by one.
const MOST_ASKED: usize = 64;

/// A model that a server offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// The name that a request uses.
    pub id: String,
    /// The size of its context in tokens, if the server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u64>,
}

impl Provider {
    /// The models that the server offers, in its order.
    ///
    /// # Errors
    ///
    /// Fails when the server does not answer with a list within 15 s.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn list_models(&self) -> Result<Vec<Offered>, Failure> {
        self.lister().list(Deadline::after(LISTING)).await
    }

    /// The size of one model's context in tokens, if the server tells. A server that swaps models may load
    /// this one to answer.
    ///
    /// # Errors
    ///
    /// Fails as [`Provider::list_models`] does.
    pub async fn context_length(&self, model: &str) -> Result<Option<u64>, Failure> {
        let offered = self.list_models().await?;
        let listed = offered.into_iter().find(|offered| offered.id == model);
        match listed.and_then(|offered| offered.context_length) {
            Some(length) => Ok(Some(length)),
            None => Ok(self.lister().swapped(model).await),
        }
    }

    fn lister(&self) -> Lister<'_> {
        Lister { http: self.http(), base_url: &self.config().base_url }
    }
}

/// Asks one server what it offers.
pub(crate) struct Lister<'a> {
    pub(crate) http: &'a Http,
    pub(crate) base_url: &'a crate::config::BaseUrl,
}

impl Lister<'_> {
    pub(crate) async fn list(&self, deadline: Deadline) -> Result<Vec<Offered>, Failure> {
        let body = self.http.get(self.base_url.endpoint("models"), deadline).await?;
        let mut offered = read_list(&body)
            .ok_or_else(|| Failure::Malformed(format!("no list of models: {}", failure::excerpt(&body))))?;
        // What is not told in time stays unknown.
        let _in_time = deadline.within(self.complete(&mut offered)).await;
        Ok(offered)
    }

    /// Asks where servers of a known kind tell the sizes that their list lacks.
    async fn complete(&self, offered: &mut [Offered]) {
        if offered.iter().all(|model| model.context_length.is_some()) {
            return;
        }
        if let [only] = offered
            && let Some(length) = self.llama_cpp(self.base_url.beside("props")).await
        {
            only.context_length = Some(length);
            return;
        }
        if let Some(sizes) = self.lm_studio().await {
            for model in offered.iter_mut() {
                let size = sizes.iter().find(|size| size.id == model.id);
                model.context_length = model.context_length.or(size.and_then(|size| size.context_length));
            }
            return;
        }
        for model in offered.iter_mut().take(MOST_ASKED) {
            match self.ollama(&model.id).await {
                Ok(length) => model.context_length = model.context_length.or(length),
                Err(_) => return,
            }
        }
    }

    /// A server that swaps models tells of each under an address of its own.
    async fn swapped(&self, model: &str) -> Option<u64> {
        self.llama_cpp(self.base_url.beside(&format!("upstream/{model}/props"))).await
    }

    async fn llama_cpp(&self, url: Url) -> Option<u64> {
        let body = self.http.get(url, Deadline::after(TELLING)).await.ok()?;
        let props = Object::read(&body)?;
        let settings = props.object("default_generation_settings");
        settings
            .and_then(|settings| settings.count("n_ctx"))
            .or_else(|| props.count("n_ctx"))
            .filter(|n| *n > 0)
    }

    async fn lm_studio(&self) -> Option<Vec<Offered>> {
        let url = self.base_url.beside("api/v0/models");
        read_list(&self.http.get(url, Deadline::after(TELLING)).await.ok()?)
    }

    async fn ollama(&self, model: &str) -> Result<Option<u64>, Failure> {
        let deadline = Deadline::after(TELLING);
        let question = serde_json::json!({ "model": model }).to_string().into_bytes();
        let response = self.http.post(self.base_url.beside("api/show"), question, deadline).await;
        let body = self.http.text(response.map_err(Refusal::into_failure)?, deadline).await?;
        Ok(read_ollama(&body))
    }
}

/// Reads a list of models in any form that servers give it; `None` when it is none.
fn read_list(body: &str) -> Option<Vec<Offered>> {
    let items = match Object::read(body) {
        Some(object) => object.array("data").or_else(|| object.array("models"))?,
        None => object::array(body)?,
    };
    Some(items.into_iter().filter_map(read_offered).collect())
}

fn read_offered(raw: &str) -> Option<Offered> {
    if let Some(id) = object::string(raw) {
        return Some(Offered { id, context_length: None });
    }
    let model = Object::read(raw)?;
    let id = ["id", "model", "name"].into_iter().find_map(|name| model.filled(name))?;
    let names = [
        "loaded_context_length",
        "max_model_len",
        "context_length",
        "context_window",
        "max_context_length",
        "max_input_tokens",
    ];
    let meta = || model.object("meta")?.count("n_ctx");
    let context_length = names.into_iter().find_map(|name| model.count(name)).or_else(meta);
    Some(Offered { id, context_length: context_length.filter(|length| *length > 0) })
}

/// What Ollama tells of a model: the context it is configured with, else the largest that it can have.
fn read_ollama(body: &str) -> Option<u64> {
    let show = Object::read(body)?;
    let configured = show.string("parameters").and_then(|parameters| {
        let line = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
        line.trim().parse().ok()
    });
    configured.or_else(|| {
        let info = show.object("model_info")?;
        let largest = info.fields().find(|(name, _)| name.ends_with(".context_length"));
        largest.and_then(|(_, length)| length.parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_several_forms() {
        let list = |body| {
            read_list(body)
                .map(|list| list.into_iter().map(|model| (model.id, model.context_length)).collect())
        };
        let one = |id: &str, length| Some(vec![(id.to_owned(), length)]);
        assert_eq!(list(r#"{"object":"list","data":[{"id":"a"}]}"#), one("a", None));
        assert_eq!(list(r#"{"data":[{"id":"a","max_model_len":4096}]}"#), one("a", Some(4096)));
        assert_eq!(
            list(r#"{"data":[{"id":"a","meta":{"n_ctx":512,"n_ctx_train":9}}]}"#),
            one("a", Some(512))
        );
        assert_eq!(list(r#"[{"id":"a","context_length":0},7,{}]"#), one("a", None));
        assert_eq!(list(r#"{"models":[{"name":"a"}]}"#), one("a", None));
        assert_eq!(list(r#"{"data":[]}"#), Some(Vec::new()));
        for other in ["<html>", r#"{"error":"x"}"#, r#"{"data":"x"}"#, ""] {
            assert_eq!(list(other), None, "{other}");
        }
    }

    #[test]
    fn ollama_tells_what_is_configured_before_what_is_possible() {
        let info = r#""model_info":{"general.x":1,"llama.context_length":131072}"#;
        assert_eq!(read_ollama(&format!("{{{info}}}")), Some(131_072));
        let parameters = r#""parameters":"stop \"x\"\nnum_ctx    8192""#;
        assert_eq!(read_ollama(&format!("{{{parameters},{info}}}")), Some(8192));
        assert_eq!(read_ollama("{}"), None);
    }
}
