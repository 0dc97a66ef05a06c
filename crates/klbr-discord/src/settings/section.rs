//! The same settings as a section of a file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::KEYS;

/// The section `discord` of a configuration file: the keys of [`KEYS`], as texts, numbers, truths or lists.
///
/// A token has no key: a file names its variable or its own file, and whoever assembles reads that (`C-HOME`).
///
/// ```
/// use klbr_discord::{Section, Settings, settings};
///
/// let section: Section = serde_json::from_str(r#"{"batch_secs": 3, "channel_ids": ["12", 34]}"#)?;
/// let lookup = |name: &str| match name {
///     settings::TOKEN => Some("a.token".to_owned()),
///     name => section.get(name),
/// };
/// let settings = Settings::from_lookup(lookup)?.expect("there is a token");
/// assert_eq!(settings.batch.as_secs(), 3);
/// assert_eq!(settings.channels.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section(BTreeMap<&'static str, String>);

impl Section {
    /// A setting by its name in the environment, as the environment would have it.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

impl<'de> Deserialize<'de> for Section {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = BTreeMap::<String, Entry>::deserialize(deserializer)?;
        let known = |key: String, entry: Entry| {
            let (_, name) = KEYS.iter().find(|(known, _)| *known == key).ok_or_else(|| {
                let keys: Vec<&str> = KEYS.iter().map(|(known, _)| *known).collect();
                D::Error::custom(format!("unknown key {key:?}, expected one of {}", keys.join(", ")))
            })?;
            Ok((*name, entry.text()))
        };
        entries.into_iter().map(|(key, entry)| known(key, entry)).collect::<Result<_, _>>().map(Section)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Truth(bool),
    Whole(u64),
    Number(f64),
    Text(String),
    List(Vec<Entry>),
}

impl Entry {
    fn text(&self) -> String {
        match self {
            Entry::Truth(truth) => truth.to_string(),
            Entry::Whole(number) => number.to_string(),
            Entry::Number(number) => number.to_string(),
            Entry::Text(text) => text.clone(),
            Entry::List(entries) => entries.iter().map(Entry::text).collect::<Vec<_>>().join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_dis_1_an_unknown_key_is_refused_with_the_known_ones() {
        let error = serde_json::from_str::<Section>(r#"{"token": "secret"}"#).unwrap_err().to_string();
        assert!(error.contains("unknown key \"token\"") && error.contains("batch_secs"), "{error}");
        let section: Section = serde_json::from_str(r#"{"enabled": true, "event_mode": ""}"#).unwrap();
        assert_eq!(section.get(super::super::ENABLED).as_deref(), Some("true"));
        assert_eq!(section.get(super::super::EVENT_MODE).as_deref(), Some(""));
        assert_eq!(section.get(super::super::BATCH_SECS), None);
    }
}
