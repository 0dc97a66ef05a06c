//! The model server out of the layers: which one, and with which key.
//!
//! Owns the rule that a key goes only to the server that it was set for.

use std::path::Path;

use klbr_llm::config::{API_KEY, BASE_URL, OPENAI_API_KEY};

use super::layers::{Layer, Layers};
use super::{API_KEY_ENV, API_KEY_FILE, ConfigError};

/// The server that the settings name; `None` when they name none.
pub(super) fn server(home: &Path, layers: &Layers<'_>) -> Result<Option<klbr_llm::Config>, ConfigError> {
    let base_url = layers.find(BASE_URL);
    let key = key(home, layers, base_url.as_ref().map(|(layer, _)| *layer))?;
    let lookup = |name: &str| match name {
        API_KEY => key.clone(),
        other => layers.get(other).map(|value| value.text),
    };
    klbr_llm::Config::from_lookup(lookup).map_err(|error| match error {
        klbr_llm::ConfigError::Invalid { name, problem } => {
            let origin = layers.get(name).map_or_else(|| name.to_owned(), |value| value.origin);
            ConfigError::Value { origin, problem }
        }
        error @ (klbr_llm::ConfigError::NoServer { .. } | klbr_llm::ConfigError::Tls(_)) => {
            ConfigError::Model(error)
        }
    })
}

/// The key for the server whose address stands in the layer `of`. A layer's key is never sent to another
/// layer's server when it names a server of its own.
fn key(home: &Path, layers: &Layers<'_>, of: Option<Layer>) -> Result<Option<String>, ConfigError> {
    for layer in [Layer::Flag, Layer::Environment, Layer::File] {
        if layers.within(layer, BASE_URL).is_some() && of != Some(layer) {
            continue;
        }
        if let Some(key) = layers.within(layer, API_KEY) {
            return Ok(Some(key.text));
        }
        if let Some(variable) = layers.within(layer, API_KEY_ENV) {
            return layers.secret_variable(&variable).map(Some);
        }
        if let Some(file) = layers.within(layer, API_KEY_FILE) {
            return super::layers::read_secret(home, &file).map(Some);
        }
    }
    Ok(None)
}

/// The variables that hold keys.
pub(super) fn secret_variables(layers: &Layers<'_>) -> Vec<String> {
    let named = layers.within(Layer::File, API_KEY_ENV).map(|value| value.text.trim().to_owned());
    [API_KEY, OPENAI_API_KEY].into_iter().map(str::to_owned).chain(named).collect()
}
