//! The prefix: what every request of a generation begins with, byte for byte (`C-PFX-1`, `B-ID-1`).

use std::sync::Arc;

use super::Agent;
use crate::config::Config;
use crate::model::ToolDefinition;
use crate::record::{BreakCause, Record};

const INSTRUCTIONS: &str = include_str!("instructions.md");

impl Agent {
    /// Why the next request needs a prefix of its own, if it does.
    pub(super) fn prefix_cause(&self, model: &str) -> Option<BreakCause> {
        let transcript = &self.state.transcript;
        let last = transcript.model.as_deref();
        let other_model = || last.is_some_and(|last| last != model);
        let other_effort = || last.is_some() && transcript.effort != self.effort_at_hand();
        self.state
            .stale_prefix
            .or_else(|| self.live.tools_changed.then_some(BreakCause::Tools))
            .or_else(|| other_model().then_some(BreakCause::Model))
            .or_else(|| other_effort().then_some(BreakCause::Effort))
    }

    pub(super) fn make_prefix(&mut self, cause: BreakCause, pinned: &[Arc<str>]) {
        let soul = self.state.soul.as_ref().unwrap_or(&self.config.soul);
        let system = system_prompt(self.config.agent.as_str(), soul, pinned);
        self.record(Record::PrefixMade {
            generation: self.state.transcript.generation.next(),
            cause,
            system: system.into(),
            tools: tool_list(&self.config).into(),
        });
        self.live.tools_changed = false;
    }

    /// Finds out whether this process has other actions than the prefix in force offers. Descriptions alone
    /// break nothing: the old bytes are sent until something else does.
    pub(super) fn check_tools(&mut self) {
        if self.state.stale_prefix.is_some() {
            return;
        }
        let offered: Vec<ToolDefinition> =
            serde_json::from_str(&self.state.transcript.tools).unwrap_or_default();
        let names = |n: &ToolDefinition| n.name.clone();
        let mut offered: Vec<String> = offered.iter().map(names).collect();
        let mut registered: Vec<String> = self.config.actions.iter().map(|spec| names(&spec.tool)).collect();
        offered.sort_unstable();
        registered.sort_unstable();
        if offered != registered {
            self.live.tools_changed = true;
        }
    }
}

/// The system prompt: the soul, how to live here, and what is pinned. No clock is in it.
fn system_prompt(name: &str, soul: &str, pinned: &[Arc<str>]) -> String {
    let mut text = format!("{}\n\n{}", soul.trim_end(), INSTRUCTIONS.replace("{{name}}", name));
    for memory in pinned {
        text.push_str("\n- ");
        text.push_str(&memory.replace('\n', "\n  "));
    }
    text
}

fn tool_list(config: &Config) -> String {
    let tools: Vec<&ToolDefinition> = config.actions.iter().map(|spec| &spec.tool).collect();
    serde_json::to_string(&tools).expect("a tool has only string keys")
}
