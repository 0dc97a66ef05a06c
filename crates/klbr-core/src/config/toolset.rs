//! How a model calls the actions of the one registry: as tools, as functions of cells, or both.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Config;
use crate::action::{ActionSpec, Role};

/// How the model calls actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// Every action is a tool; no cell runs.
    Tools,
    /// Only cells and the wait are tools; every other action is a function inside of cells.
    Python,
    /// Every action is a tool, and a function inside of cells where there are cells.
    #[default]
    Both,
}

/// A text that names no [`Toolset`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no way to call actions; there are tools, python and both")]
pub struct ToolsetError(String);

impl FromStr for Toolset {
    type Err = ToolsetError;

    fn from_str(text: &str) -> Result<Self, ToolsetError> {
        match text {
            "tools" => Ok(Toolset::Tools),
            "python" => Ok(Toolset::Python),
            "both" => Ok(Toolset::Both),
            _ => Err(ToolsetError(text.to_owned())),
        }
    }
}

impl Config {
    /// Whether cells run.
    pub fn has_cells(&self) -> bool {
        self.toolset != Toolset::Tools && self.actions.iter().any(|spec| spec.role == Role::Cell)
    }

    /// The actions that the model is offered as tools, in their order.
    pub fn tools(&self) -> impl Iterator<Item = &ActionSpec> {
        self.actions.iter().filter(|spec| self.is_tool(spec))
    }

    /// The actions that a cell can call, in their order.
    pub fn functions(&self) -> impl Iterator<Item = &ActionSpec> {
        self.actions.iter().filter(|spec| is_function(spec))
    }

    /// Whether an action is one of the model's tools. Without cells, everything else is.
    pub(crate) fn is_tool(&self, spec: &ActionSpec) -> bool {
        match spec.role {
            Role::Cell => self.toolset != Toolset::Tools,
            Role::Wait => true,
            Role::Ordinary | Role::Delivery { .. } | Role::Mark { .. } => !self.speaks_in_cells(),
        }
    }

    /// Whether cells are the only place that everything but the wait is called from.
    pub(crate) fn speaks_in_cells(&self) -> bool {
        self.toolset == Toolset::Python && self.has_cells()
    }
}

/// Whether a cell can call an action. A wait ends the cell, and a cell runs no other.
pub(crate) fn is_function(spec: &ActionSpec) -> bool {
    match spec.role {
        Role::Ordinary | Role::Delivery { .. } | Role::Mark { .. } => true,
        Role::Wait | Role::Cell => false,
    }
}

/// The name that an action has in a cell: `discord.send` of `discord_send`.
pub(crate) fn function_name(action: &str) -> String {
    match action.split_once('_') {
        Some((family, verb)) if !family.is_empty() && !verb.is_empty() => format!("{family}.{verb}"),
        Some(_) | None => action.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolsets_are_read_by_name_and_others_are_refused_with_the_choices() {
        for (text, toolset) in
            [("tools", Toolset::Tools), ("python", Toolset::Python), ("both", Toolset::Both)]
        {
            assert_eq!(text.parse(), Ok(toolset));
        }
        let error = "Python".parse::<Toolset>().unwrap_err().to_string();
        assert!(error.contains("tools, python and both"), "{error}");
    }

    #[test]
    fn functions_have_their_family_in_front() {
        assert_eq!(function_name("discord_fetch_history"), "discord.fetch_history");
        assert_eq!(function_name("memory"), "memory");
        assert_eq!(function_name("_odd"), "_odd");
    }
}
