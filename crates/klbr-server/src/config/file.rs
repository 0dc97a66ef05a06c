//! `klbr.toml`: read into the same settings that the environment has, by their names.
//!
//! One table says which keys there are; an unknown one is refused with the nearest.

use std::collections::BTreeMap;
use std::path::Path;

use klbr_discord::settings;
use klbr_llm::config::{BASE_URL, CONNECT_TIMEOUT, DIALECT, FIRST_BYTE_TIMEOUT, IDLE_TIMEOUT};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, layers::Value};

/// The keys of `klbr.toml` and the names of the same settings in the environment.
pub const SETTINGS: &[(&str, &str)] = &[
    ("agent.name", super::AGENT),
    ("agent.soul", super::SOUL),
    ("model.name", super::MODEL),
    ("model.effort", super::EFFORT),
    ("model.context_tokens", super::CONTEXT_TOKENS),
    ("model.max_output_tokens", super::MAX_OUTPUT_TOKENS),
    ("model.tool_choice", super::TOOL_CHOICE),
    ("model.base_url", BASE_URL),
    ("model.api_key_env", super::API_KEY_ENV),
    ("model.api_key_file", super::API_KEY_FILE),
    ("model.dialect", DIALECT),
    ("model.connect_timeout_secs", CONNECT_TIMEOUT),
    ("model.first_byte_timeout_secs", FIRST_BYTE_TIMEOUT),
    ("model.idle_timeout_secs", IDLE_TIMEOUT),
    ("server.listen", super::LISTEN),
    ("server.allow_remote", super::ALLOW_REMOTE),
    ("server.hosts", super::HOSTS),
    ("workspace.root", super::WORKSPACE_ROOT),
    ("workspace.start", super::WORKSPACE_START),
    ("code.root", super::CODE_ROOT),
    ("code.enabled", super::CODE_ENABLED),
    ("code.write", super::CODE_WRITE),
    ("tools.process", super::PROCESS_TOOL),
    ("python.enabled", super::PYTHON_ENABLED),
    ("python.interpreter", super::PYTHON),
    ("python.actions", super::PYTHON_ACTIONS),
    ("python.self_activation", super::PYTHON_SELF_ACTIVATION),
    ("python.memory_mb", super::PYTHON_MEMORY),
    ("python.cpu_secs", super::PYTHON_CPU),
    ("python.open_files", super::PYTHON_FILES),
    ("discord.token_env", super::DISCORD_TOKEN_ENV),
    ("discord.token_file", super::DISCORD_TOKEN_FILE),
    ("discord.enabled", settings::ENABLED),
    ("discord.event_mode", settings::EVENT_MODE),
    ("discord.source", settings::SOURCE),
    ("discord.wake_on_ambient", settings::WAKE_ON_AMBIENT),
    ("discord.include_bots", settings::INCLUDE_BOTS),
    ("discord.batch_secs", settings::BATCH_SECS),
    ("discord.channel_ids", settings::CHANNEL_IDS),
    ("discord.pending_timeout_secs", settings::PENDING_TIMEOUT_SECS),
    ("discord.allowed_mentions", settings::ALLOWED_MENTIONS),
    ("discord.typing", settings::TYPING),
    ("discord.api_url", settings::API_URL),
    ("discord.gateway_url", settings::GATEWAY_URL),
    ("discord.shards", settings::SHARDS),
    ("discord.nonce_secs", settings::NONCE_SECS),
];

/// Reads the file; no settings when there is none.
pub(super) fn read(path: &Path) -> Result<BTreeMap<&'static str, Value>, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(ConfigError::Unreadable { path: path.into(), source }),
    };
    let table = DeTable::parse(&text).map_err(|error| ConfigError::Syntax {
        path: path.into(),
        line: line(&text, error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })?;
    let mut reader = Reader { path, text: &text, settings: BTreeMap::new() };
    reader.table("", table.get_ref())?;
    Ok(reader.settings)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    settings: BTreeMap<&'static str, Value>,
}

impl Reader<'_> {
    fn table(&mut self, above: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (key, value) in table {
            let name = if above.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{above}.{}", key.get_ref())
            };
            if let Some((key, setting)) = SETTINGS.iter().find(|(known, _)| *known == name) {
                let value = self.value(key, value)?;
                self.settings.insert(setting, value);
                continue;
            }
            let line = line(self.text, key.span().start);
            let is_table = SETTINGS.iter().any(|(known, _)| is_below(known, &name));
            match value.get_ref() {
                DeValue::Table(inner) if is_table => self.table(&name, inner)?,
                _ if is_table => {
                    let origin = format!("{}:{line}: {name}", self.path.display());
                    let problem = format!("it is a table: begin it with [{name}]");
                    return Err(ConfigError::Value { origin, problem });
                }
                _ => return Err(self.unknown(name, line)),
            }
        }
        Ok(())
    }

    fn value(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, ConfigError> {
        let line = line(self.text, value.span().start);
        let origin = format!("{}:{line}: {key}", self.path.display());
        match text(value.get_ref()) {
            Some(text) => Ok(Value { text, origin }),
            None => Err(ConfigError::Value {
                origin,
                problem: format!(
                    "expected text, a number, true or false, or a list of texts, not {}",
                    value.get_ref().type_str()
                ),
            }),
        }
    }

    fn unknown(&self, key: String, line: usize) -> ConfigError {
        let secret = match &*key {
            "model.api_key" => Some("api_key"),
            "discord.token" => Some("token"),
            _ => None,
        };
        if let Some(secret) = secret {
            return ConfigError::Value {
                origin: format!("{}:{line}: {key}", self.path.display()),
                problem: format!(
                    "a secret is not kept in this file: name its variable with {secret}_env, or its file with \
                     {secret}_file"
                ),
            };
        }
        // Two keys are alike when their last parts are, whichever table they stand in.
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let likeness = |known: &str| {
            strsim::jaro_winkler(known, &key).max(strsim::jaro_winkler(&last(known), &last(&key)) - 0.02)
        };
        let tables = SETTINGS.iter().filter_map(|(known, _)| known.split_once('.')).map(|(table, _)| table);
        let nearest = SETTINGS
            .iter()
            .map(|(known, _)| *known)
            .chain(tables)
            .map(|known| (likeness(known), known))
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .filter(|(likeness, _)| *likeness > 0.75)
            .map(|(_, known)| known.to_owned());
        ConfigError::UnknownKey { path: self.path.into(), line, key, nearest }
    }
}

fn is_below(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

/// A value as the environment would have it.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> = items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    _ => None,
                })
                .collect();
            Some(texts?.join(","))
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

fn line(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}
