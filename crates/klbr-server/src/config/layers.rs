//! The layers of settings, nearest first: flags, environment, file.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use super::{ConfigError, Lookup, file};

/// A setting's value, and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) origin: String,
}

/// Which layer a value stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Flag,
    Environment,
    File,
}

pub(super) struct Layers<'a> {
    flags: Lookup<'a>,
    environment: Lookup<'a>,
    file: BTreeMap<&'static str, Value>,
}

impl<'a> Layers<'a> {
    pub(super) fn read(home: &Path, flags: Lookup<'a>, environment: Lookup<'a>) -> Result<Self, ConfigError> {
        Ok(Layers { flags, environment, file: file::read(&home.join("klbr.toml"))? })
    }

    /// The setting's value in the nearest layer that has one. A blank value counts as unset.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.find(name).map(|(_, value)| value)
    }

    /// As [`Layers::get`], with the layer.
    pub(super) fn find(&self, name: &str) -> Option<(Layer, Value)> {
        [Layer::Flag, Layer::Environment, Layer::File]
            .into_iter()
            .find_map(|layer| self.within(layer, name).map(|value| (layer, value)))
    }

    /// The setting's value in one layer.
    pub(super) fn within(&self, layer: Layer, name: &str) -> Option<Value> {
        let value = match layer {
            Layer::Flag => (self.flags)(name).map(|text| Value { text, origin: format!("flag for {name}") }),
            Layer::Environment => {
                (self.environment)(name).map(|text| Value { text, origin: name.to_owned() })
            }
            Layer::File => self.file.get(name).cloned(),
        };
        value.filter(|value| !value.text.trim().is_empty())
    }

    /// Reads the variable that a setting names as the one that holds a secret.
    pub(super) fn secret_variable(&self, setting: &Value) -> Result<String, ConfigError> {
        let name = setting.text.trim();
        (self.environment)(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| ConfigError::Value {
            origin: setting.origin.clone(),
            problem: format!("the variable {name} is not set"),
        })
    }

    /// The setting's value as the environment has it, blank or not.
    pub(super) fn in_environment(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    /// The setting's value, parsed; `None` when it is set nowhere.
    pub(super) fn parse<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let problem = format!("{:?} is not {expected}", value.text);
        value.text.trim().parse().map(Some).map_err(|_| ConfigError::Value { origin: value.origin, problem })
    }

    /// Replaces a default when the setting is set.
    pub(super) fn set<T: FromStr>(
        &self,
        name: &str,
        slot: &mut T,
        expected: &str,
    ) -> Result<(), ConfigError> {
        if let Some(value) = self.parse(name, expected)? {
            *slot = value;
        }
        Ok(())
    }
}

/// Reads the file that a setting names as the one that holds a secret; relative to the home.
pub(super) fn read_secret(home: &Path, setting: &Value) -> Result<String, ConfigError> {
    let path = home.join(setting.text.trim());
    let refused = |problem| ConfigError::Value { origin: setting.origin.clone(), problem };
    match std::fs::read_to_string(&path) {
        Ok(secret) if !secret.trim().is_empty() => Ok(secret),
        Ok(_) => Err(refused(format!("{} is empty", path.display()))),
        Err(error) => Err(refused(format!("{} cannot be read: {error}", path.display()))),
    }
}
