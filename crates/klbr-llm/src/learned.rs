//! What a server turned out not to take.
//!
//! Owns recognising a refusal that another form of the same request avoids, and remembering it. Refuses to
//! remember what a retry has not confirmed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::levels::{EffortStyle, FALLBACK, Metadata};

/// What one server turned out not to take: plain data, to be kept and handed in again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learned {
    /// It refuses `stream_options`.
    pub no_stream_options: bool,
    /// What it refuses for one model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, LearnedModel>,
}

/// What a server turned out not to take for one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LearnedModel {
    /// The efforts that are left after a refusal; absent when none was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// It refuses `chat_template_kwargs`.
    pub no_template_kwargs: bool,
    /// It wants `max_completion_tokens` for `max_tokens`.
    pub max_completion_tokens: bool,
    /// It refuses to be made to call a tool.
    pub no_required_calls: bool,
    /// It refuses reasoning in the transcript.
    pub no_reasoning_back: bool,
}

impl LearnedModel {
    /// A model's metadata as far as the server bears them out.
    pub fn narrow(&self, metadata: &Metadata) -> Metadata {
        let mut metadata = metadata.clone();
        if self.efforts.is_some() {
            metadata.efforts.clone_from(&self.efforts);
        }
        if self.no_template_kwargs {
            metadata.effort_style = EffortStyle::Top;
            metadata.thinking_switch = false;
        }
        metadata
    }
}

/// A part of a request that its server may not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    StreamOptions,
    Effort,
    TemplateKwargs,
    MaxTokens,
    RequiredCalls,
    ReasoningBack,
}

/// Which of the parts that a request had its server names as the one it refuses; its words are lower-case.
pub(crate) fn refused_part(status: u16, words: &str, sent: &[Part]) -> Option<Part> {
    let refuses = matches!(status, 400 | 422);
    let named = |part: Part| match part {
        Part::TemplateKwargs => refuses && words.contains("chat_template_kwargs"),
        // llama.cpp answers 500 to an exception in a chat template.
        Part::Effort => (refuses || status == 500) && names_effort(words),
        Part::MaxTokens => refuses && words.contains("max_completion_tokens"),
        Part::RequiredCalls => refuses && words.contains("tool_choice"),
        Part::ReasoningBack => refuses && words.contains("reasoning_content"),
        Part::StreamOptions => refuses && words.contains("stream_options"),
    };
    let parts = [
        Part::StreamOptions,
        Part::TemplateKwargs,
        Part::ReasoningBack,
        Part::MaxTokens,
        Part::RequiredCalls,
        Part::Effort,
    ];
    parts.into_iter().find(|part| sent.contains(part) && named(*part))
}

fn names_effort(words: &str) -> bool {
    let names = ["effort", "enable_thinking"].iter().any(|name| words.contains(name));
    let refuses = ["unexpected", "support", "unrecognized", "unknown", "invalid", "not permitted", "must be"];
    names && refuses.iter().any(|word| words.contains(word))
}

/// The efforts that are left of a model's once its server refused one with these words.
pub(crate) fn narrowed_efforts(metadata: &Metadata, refused: Option<&str>, said: &str) -> Vec<String> {
    const KNOWN: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];
    let words: Vec<&str> = said.split(|char: char| !char.is_ascii_alphanumeric()).collect();
    let advertised: Vec<&str> =
        KNOWN.into_iter().filter(|effort| Some(*effort) != refused && words.contains(effort)).collect();
    let own = metadata.efforts.clone().unwrap_or_else(|| FALLBACK.map(str::to_owned).to_vec());
    let unknown = ["unrecognized", "unknown", "not permitted", "does not support reasoning"];
    if advertised.is_empty() {
        let takes_none = unknown.iter().any(|word| said.contains(word));
        return own.into_iter().filter(|effort| !takes_none && Some(effort.as_str()) != refused).collect();
    }
    let kept: Vec<String> = own.into_iter().filter(|effort| advertised.contains(&effort.as_str())).collect();
    if kept.is_empty() { advertised.into_iter().map(str::to_owned).collect() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_part_that_it_means() {
        let all = [
            Part::StreamOptions,
            Part::Effort,
            Part::TemplateKwargs,
            Part::MaxTokens,
            Part::RequiredCalls,
            Part::ReasoningBack,
        ];
        for (status, body, part) in [
            (
                400,
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                Part::MaxTokens,
            ),
            (400, "Unknown parameter: 'chat_template_kwargs'", Part::TemplateKwargs),
            (400, "property 'messages.1.reasoning_content' is unsupported", Part::ReasoningBack),
            (400, "deepseek-reasoner does not support this tool_choice", Part::RequiredCalls),
            (500, "Unexpected effort 'high', supported: low, medium", Part::Effort),
            (422, "{\"detail\":\"extra fields not permitted: stream_options\"}", Part::StreamOptions),
        ] {
            assert_eq!(refused_part(status, &body.to_lowercase(), &all), Some(part), "{body}");
        }
        assert_eq!(refused_part(400, "bad request", &all), None);
        assert_eq!(refused_part(400, "stream_options", &[Part::Effort]), None);
        assert_eq!(refused_part(500, "stream_options", &all), None);
        assert_eq!(refused_part(401, "stream_options", &all), None);
    }

    #[test]
    fn efforts_are_narrowed_to_those_that_the_message_advertises() {
        let narrowed = |efforts: &[&str], body| {
            let efforts = Some(efforts.iter().map(|effort| (*effort).to_owned()).collect());
            narrowed_efforts(&Metadata { efforts, ..Metadata::default() }, Some("high"), body)
        };
        let all = ["low", "medium", "high"];
        assert_eq!(narrowed(&all, "unexpected effort high, supported are low and medium"), ["low", "medium"]);
        assert_eq!(narrowed(&all, "effort: supported values are 'minimal' and 'low'"), ["low"]);
        assert_eq!(narrowed(&["high"], "effort: supported value is 'xhigh'"), ["xhigh"]);
        assert_eq!(narrowed(&all, "this effort is not supported"), ["low", "medium"]);
        assert!(narrowed(&all, "unrecognized request argument: reasoning_effort").is_empty());
    }

    #[test]
    fn what_was_learned_survives_being_kept() {
        let mut learned = Learned { no_stream_options: true, ..Learned::default() };
        let model = LearnedModel { efforts: Some(vec!["low".into()]), ..LearnedModel::default() };
        learned.models.insert("m".into(), model);
        let kept = serde_json::to_string(&learned).unwrap();
        assert_eq!(serde_json::from_str::<Learned>(&kept).unwrap(), learned);
        assert_eq!(serde_json::from_str::<Learned>("{}").unwrap(), Learned::default());
    }
}
