//! Discord out of the layers (`B-DIS-1`).

use std::path::Path;

use klbr_discord::Settings;
use klbr_discord::settings::{EVENT_MODE, PLAIN_TOKEN, TOKEN};

use super::layers::{Layer, Layers, read_secret};
use super::{ConfigError, DISCORD_TOKEN_ENV, DISCORD_TOKEN_FILE};

/// The settings; `None` when Discord is off.
pub(super) fn settings(home: &Path, layers: &Layers<'_>) -> Result<Option<Settings>, ConfigError> {
    let token = token(home, layers)?;
    let lookup = |name: &str| match name {
        TOKEN => token.clone(),
        PLAIN_TOKEN => None,
        // Here the empty text says something.
        EVENT_MODE => layers.in_environment(name).or_else(|| layers.get(name).map(|value| value.text)),
        other => layers.get(other).map(|value| value.text),
    };
    Settings::from_lookup(lookup).map_err(|error| {
        let origin = layers.get(error.name).map_or_else(|| error.name.to_owned(), |value| value.origin);
        ConfigError::Value { origin, problem: error.problem }
    })
}

fn token(home: &Path, layers: &Layers<'_>) -> Result<Option<String>, ConfigError> {
    let set = [TOKEN, PLAIN_TOKEN].into_iter().find_map(|name| layers.within(Layer::Environment, name));
    if let Some(token) = set {
        return Ok(Some(token.text));
    }
    if let Some(variable) = layers.get(DISCORD_TOKEN_ENV) {
        return layers.secret_variable(&variable).map(Some);
    }
    layers.get(DISCORD_TOKEN_FILE).map(|file| read_secret(home, &file)).transpose()
}

/// The variables that hold a token.
pub(super) fn secret_variables(layers: &Layers<'_>) -> impl Iterator<Item = String> {
    let named = layers.get(DISCORD_TOKEN_ENV).map(|value| value.text.trim().to_owned());
    [TOKEN, PLAIN_TOKEN].into_iter().map(str::to_owned).chain(named)
}
