//! The effort levels that a model offers, and what each puts into a request.
//!
//! Owns the rules over a model's metadata. Refuses to send a level that the model does not offer: it is read as
//! the level that a conversation starts with.

use serde::{Deserialize, Serialize};

/// The level that switches thinking off.
pub const OFF: &str = "off";
/// The one level of a model that takes no efforts: its own.
pub const DEFAULT: &str = "default";
/// The efforts of a model whose metadata do not say, in offering order.
pub const FALLBACK: [&str; 3] = ["low", "medium", "high"];

/// What a model's metadata say about its efforts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Whether its server turns thinking off for `chat_template_kwargs.enable_thinking: false`.
    pub thinking_switch: bool,
    /// The efforts it takes, in offering order; empty when it takes none, absent for [`FALLBACK`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// The level that a conversation is meant to start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Where a request carries an effort.
    pub effort_style: EffortStyle,
}

/// Where a request in the OpenAI chat dialect carries an effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortStyle {
    /// As the top-level field `reasoning_effort`.
    Top,
    /// As `chat_template_kwargs.reasoning_effort`.
    Kwargs,
    /// As both.
    #[default]
    Both,
}

/// The levels that a model offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    /// The levels in offering order; never empty, and none twice.
    pub levels: Vec<String>,
    /// How a choice among them is shown.
    pub control: Control,
    /// The level that a conversation starts with.
    pub start: String,
}

/// How the choice of a level is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Not at all: there is only one level.
    None,
    /// As a switch between off and the other one.
    Switch,
    /// As a slider or a list, in offering order.
    Slider,
}

/// What a request in the OpenAI chat dialect carries for a level; what is absent is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fields {
    /// The field of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// What is merged into the field of this name; not sent when there is nothing.
    #[serde(skip_serializing_if = "TemplateKwargs::is_empty")]
    pub chat_template_kwargs: TemplateKwargs,
}

/// The effort's part of `chat_template_kwargs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TemplateKwargs {
    /// False to switch thinking off; never sent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_thinking: Option<bool>,
    /// The effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

impl TemplateKwargs {
    /// Whether there is nothing to merge.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The levels that a model of these metadata offers.
pub fn levels(model: &Metadata) -> Levels {
    let mut levels: Vec<String> = Vec::new();
    let efforts = model.efforts.clone().unwrap_or_else(|| FALLBACK.map(str::to_owned).to_vec());
    let own = efforts.is_empty().then(|| DEFAULT.to_owned());
    let off = model.thinking_switch.then(|| OFF.to_owned());
    for level in off.into_iter().chain(efforts.iter().cloned()).chain(own) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let control = match levels.as_slice() {
        [_] => Control::None,
        [first, second] if first == OFF || second == OFF => Control::Switch,
        _ => Control::Slider,
    };
    let is_offered = |level: &&str| levels.iter().any(|offered| offered == level);
    let wanted = [model.effort.as_deref(), Some("medium"), efforts.first().map(String::as_str)];
    let start = wanted.into_iter().flatten().find(is_offered).unwrap_or(DEFAULT).to_owned();
    Levels { levels, control, start }
}

/// What a request carries for a level. One that the model does not offer is read as its start level.
pub fn request(model: &Metadata, level: &str) -> Fields {
    let Levels { levels, start, .. } = levels(model);
    let level = levels.into_iter().find(|offered| offered == level).unwrap_or(start);
    let mut fields = Fields::default();
    match level.as_str() {
        OFF => fields.chat_template_kwargs.enable_thinking = Some(false),
        DEFAULT => {}
        _ => {
            let (top, kwargs) = match model.effort_style {
                EffortStyle::Top => (Some(level), None),
                EffortStyle::Kwargs => (None, Some(level)),
                EffortStyle::Both => (Some(level.clone()), Some(level)),
            };
            fields.reasoning_effort = top;
            fields.chat_template_kwargs.reasoning_effort = kwargs;
        }
    }
    fields
}
