//! What the model is told of cells: how one is written, and how the actions read as functions there.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::action::{ActionSpec, Role};
use crate::config::Config;
use crate::config::toolset::function_name;

/// The names of the actions that cells can call, in order; none where no cell runs.
pub(super) fn functions(config: &Config) -> Vec<Arc<str>> {
    if !config.has_cells() {
        return Vec::new();
    }
    let mut names: Vec<Arc<str>> = config.functions().map(|spec| spec.name().into()).collect();
    names.sort_unstable();
    names
}

/// How actions are called from cells; nothing where no cell runs.
pub(super) fn guide(config: &Config) -> String {
    let cell = config.actions.iter().find(|spec| spec.role == Role::Cell);
    let Some(cell) = cell.filter(|_| config.has_cells()) else { return String::new() };
    let mut text = format!(
        "`{}` runs a cell of Python. Top-level `await` works, variables stay from cell to cell, and what a cell prints \
         and the value of its last expression come back. Each action is an async function there, and each call of one \
         is an action of its own: it is reviewed, numbered and recorded. What it answers is a text with the fields \
         `action` and `data`. A call that did not succeed raises `HostError`, whose `code` is `held`, `denied`, \
         `unknown` or the kind of the failure. `wait(\"10m\")` ends the cell, and your turn with it. `help(…)` tells \
         more of a function.\n\n",
        cell.name()
    );
    let only = config.speaks_in_cells();
    text.push_str(match only {
        true => "There is no other way to call them:\n",
        false => "The functions:\n",
    });
    for spec in config.functions() {
        // Writing to a String never fails.
        let _ = match only {
            true => write!(text, "\n- `{}`: {}", signature(spec), spec.tool.description),
            false => write!(text, "\n- `{}`", signature(spec)),
        };
    }
    text
}

/// An action as the head of a function: what has to be given first.
fn signature(spec: &ActionSpec) -> String {
    let schema = &spec.tool.parameters;
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties: Vec<(&String, &Value)> = schema["properties"].as_object().into_iter().flatten().collect();
    let is_required = |(name, _): &&(&String, &Value)| required.contains(&name.as_str());
    let given = properties.iter().filter(is_required).map(|(name, schema)| match types(schema) {
        Some(types) => format!("{name}: {types}"),
        None => (*name).clone(),
    });
    let optional =
        properties.iter().filter(|one| !is_required(one)).map(|(name, schema)| match types(schema) {
            Some(types) => format!("{name}: {types} = …"),
            None => format!("{name}=…"),
        });
    let parameters: Vec<String> = given.chain(optional).collect();
    format!("{}({})", function_name(spec.name()), parameters.join(", "))
}

/// Python's names of the types that a schema names, without the one that stands for nothing.
fn types(schema: &Value) -> Option<String> {
    let named = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let python = named.into_iter().filter_map(|name| match name {
        "string" => Some("str"),
        "integer" => Some("int"),
        "number" => Some("float"),
        "boolean" => Some("bool"),
        "array" => Some("list"),
        "object" => Some("dict"),
        _ => None,
    });
    let python: Vec<&str> = python.collect();
    (!python.is_empty()).then(|| python.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::wait_tool;
    use crate::config::Toolset;
    use crate::model::ToolDefinition;

    fn config(toolset: Toolset) -> Config {
        let mut config = Config::new("ada".parse().unwrap(), "m");
        let spec = |name: &str, role| ActionSpec {
            tool: ToolDefinition {
                name: name.to_owned(),
                description: "Does it.".to_owned(),
                parameters: serde_json::json!({
                    "type": "object",
                    "properties": {"at": {"type": ["integer", "null"]}, "content": {"type": "string"}, "any": {}},
                    "required": ["content"],
                }),
            },
            role,
            ..wait_tool()
        };
        config.actions = vec![spec("local_send", Role::Ordinary), wait_tool(), spec("python", Role::Cell)];
        config.toolset = toolset;
        config
    }

    #[test]
    fn functions_are_told_with_what_they_take() {
        let text = guide(&config(Toolset::Python));
        let line = "- `local.send(content: str, any=…, at: int = …)`: Does it.";
        assert!(text.ends_with(line), "{text}");
        assert!(!guide(&config(Toolset::Both)).contains("Does it."));
        assert_eq!(guide(&config(Toolset::Tools)), "");
    }

    #[test]
    fn the_toolset_says_what_is_a_tool() {
        let names = |toolset| {
            let config = config(toolset);
            config.tools().map(|spec| spec.name().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Toolset::Tools), "local_send wait_and_continue");
        assert_eq!(names(Toolset::Python), "wait_and_continue python");
        assert_eq!(names(Toolset::Both), "local_send wait_and_continue python");
    }
}
