//! The effort levels that a model offers, and what each sends.
//!
//! Owns the two pure questions about them. Refuses to know a model by its name: what one offers is
//! configured, and narrowed by what its server refuses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The level that switches thinking off.
pub const OFF: &str = "off";
/// The one level of a model that takes no effort.
pub const DEFAULT: &str = "default";
/// The efforts of a model whose metadata do not say, in offering order.
pub const FALLBACK: [&str; 3] = ["low", "medium", "high"];

/// What is known of a model's efforts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Whether its server stops thinking when a request sends `enable_thinking: false`.
    pub thinking_switch: bool,
    /// The efforts it takes, in offering order; absent means [`FALLBACK`], empty means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// The level a new conversation starts with, if it is one of those offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Where a request carries the effort.
    pub effort_style: EffortStyle,
}

/// Metadata by a model's name; an unknown one has the default.
pub type Catalogue = BTreeMap<String, Metadata>;

/// Where a request carries the effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortStyle {
    /// As `reasoning_effort`.
    Top,
    /// As `chat_template_kwargs.reasoning_effort`, all that llama.cpp reads.
    Kwargs,
    /// As both.
    #[default]
    Both,
}

/// How the levels of a model are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Not at all: there is only one.
    None,
    /// As a switch between off and the other one.
    Switch,
    /// As a list, in their order.
    Slider,
}

/// The levels that a model offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    /// Their names in offering order; never empty.
    pub levels: Vec<String>,
    /// How they are offered.
    pub control: Control,
    /// The one that a new conversation starts with.
    pub start: String,
}

/// What a chat request carries for a level; absent fields are not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fields {
    /// The effort at the request's top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// What the server's chat template reads.
    #[serde(skip_serializing_if = "TemplateKwargs::is_empty")]
    pub chat_template_kwargs: TemplateKwargs,
}

/// What a server's chat template reads of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TemplateKwargs {
    /// False to switch thinking off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_thinking: Option<bool>,
    /// The effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

impl TemplateKwargs {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The levels that a model of these metadata offers.
pub fn levels(model: &Metadata) -> Levels {
    let efforts = model.efforts.clone().unwrap_or_else(|| FALLBACK.map(str::to_owned).to_vec());
    let mut levels = Vec::with_capacity(efforts.len() + 1);
    if model.thinking_switch {
        levels.push(OFF.to_owned());
    }
    let start_of_efforts = efforts
        .iter()
        .find(|effort| *effort == "medium")
        .or(efforts.first())
        .cloned()
        .unwrap_or_else(|| DEFAULT.to_owned());
    if efforts.is_empty() {
        levels.push(DEFAULT.to_owned());
    }
    levels.extend(efforts);
    let control = match levels.as_slice() {
        [_] => Control::None,
        [off, _] if off == OFF => Control::Switch,
        _ => Control::Slider,
    };
    let wanted = model.effort.clone().filter(|effort| levels.contains(effort));
    Levels { start: wanted.unwrap_or(start_of_efforts), levels, control }
}

/// What a request carries for a level. A level that the model does not offer is read as its start level.
pub fn request(model: &Metadata, level: &str) -> Fields {
    let offered = levels(model);
    let level = offered.levels.iter().find(|name| *name == level).unwrap_or(&offered.start);
    let mut fields = Fields::default();
    match level.as_str() {
        DEFAULT => {}
        OFF => fields.chat_template_kwargs.enable_thinking = Some(false),
        effort => {
            if model.effort_style != EffortStyle::Kwargs {
                fields.reasoning_effort = Some(effort.to_owned());
            }
            if model.effort_style != EffortStyle::Top {
                fields.chat_template_kwargs.reasoning_effort = Some(effort.to_owned());
            }
        }
    }
    fields
}
