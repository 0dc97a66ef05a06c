//! The effort levels of a model, and what each puts into a request.
//!
//! Owns the rules over a model's metadata. Refuses to send a level that the model does not offer: it is read as
//! the level that a conversation starts with.

use serde::{Deserialize, Serialize};

/// The level that switches thinking off.
pub const OFF: &str = "off";
/// The level of a model that takes no efforts: its own.
pub const DEFAULT: &str = "default";

/// What a model's metadata says about its effort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EffortMetadata {
    /// Whether its server turns thinking off for `chat_template_kwargs.enable_thinking: false`.
    pub thinking_switch: bool,
    /// The efforts it takes, in offering order; empty when it takes none.
    pub efforts: Vec<String>,
    /// The level a conversation is meant to start with.
    pub effort: Option<String>,
    /// Where an effort goes in a request.
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
    /// The levels in offering order; never empty.
    pub levels: Vec<String>,
    /// How a choice among them is shown.
    pub control: Control,
    /// The level a conversation starts with.
    pub start: String,
}

/// How the choice of a level is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// There is one level, and nothing to choose.
    None,
    /// Thinking is on or off.
    Switch,
    /// A slider, or a list.
    Slider,
}

/// What a request in the OpenAI chat dialect carries for a level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EffortFields {
    /// The top-level field of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// What is merged into the field of this name; absent when there is nothing to merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_template_kwargs: Option<TemplateKwargs>,
}

/// The effort's part of `chat_template_kwargs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateKwargs {
    /// Sent as `false` when thinking is switched off, and never otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_thinking: Option<bool>,
    /// The effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

impl EffortMetadata {
    /// The levels that the model offers.
    pub fn levels(&self) -> Levels {
        let mut levels: Vec<String> = Vec::new();
        let own = [DEFAULT.to_owned()];
        let efforts = if self.efforts.is_empty() { own.as_slice() } else { &self.efforts };
        let off = self.thinking_switch.then(|| OFF.to_owned());
        for level in off.iter().chain(efforts) {
            if !levels.contains(level) {
                levels.push(level.clone());
            }
        }
        let control = match levels.as_slice() {
            [_] => Control::None,
            [first, second] if first == OFF || second == OFF => Control::Switch,
            _ => Control::Slider,
        };
        let start = self.start(&levels);
        Levels { levels, control, start }
    }

    /// The level that is meant by a name: itself when the model offers it, else the start level.
    pub fn level(&self, asked: Option<&str>) -> String {
        let Levels { levels, start, .. } = self.levels();
        asked.filter(|asked| levels.iter().any(|level| level == asked)).map_or(start, str::to_owned)
    }

    /// What a request carries for a level that was asked for.
    pub fn fields(&self, asked: Option<&str>) -> EffortFields {
        let level = self.level(asked);
        if level == OFF {
            let kwargs = TemplateKwargs { enable_thinking: Some(false), reasoning_effort: None };
            return EffortFields { reasoning_effort: None, chat_template_kwargs: Some(kwargs) };
        }
        if level == DEFAULT {
            return EffortFields::default();
        }
        let kwargs = TemplateKwargs { enable_thinking: None, reasoning_effort: Some(level.clone()) };
        let (top, kwargs) = match self.effort_style {
            EffortStyle::Top => (Some(level), None),
            EffortStyle::Kwargs => (None, Some(kwargs)),
            EffortStyle::Both => (Some(level), Some(kwargs)),
        };
        EffortFields { reasoning_effort: top, chat_template_kwargs: kwargs }
    }

    fn start(&self, levels: &[String]) -> String {
        let is_offered = |level: &str| levels.iter().any(|offered| offered == level);
        match &self.effort {
            Some(effort) if is_offered(effort) => effort.clone(),
            _ if is_offered("medium") => "medium".to_owned(),
            _ => self.efforts.first().cloned().unwrap_or_else(|| DEFAULT.to_owned()),
        }
    }
}
