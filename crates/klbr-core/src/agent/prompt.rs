//! The prefix: what every request of a generation begins with, byte for byte (`C-PFX-1`, `B-ID-1`).

use std::sync::Arc;

use super::{Agent, cells};
use crate::config::Config;
use crate::context::prefix::Facts;
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
            .prefix
            .due()
            .or_else(|| self.live.tools_changed.then_some(BreakCause::Tools))
            .or_else(|| other_model().then_some(BreakCause::Model))
            .or_else(|| other_effort().then_some(BreakCause::Effort))
    }

    /// What a prefix that is made now begins with.
    pub(super) fn system_prompt(&self, facts: &Facts) -> String {
        let soul = self.state.soul.as_ref().unwrap_or(&self.config.soul);
        system_prompt(self.config.agent.as_str(), soul, &cells::guide(&self.config), facts)
    }

    pub(super) fn make_prefix(&mut self, cause: BreakCause, system: Arc<str>, facts: &Facts) {
        self.record(Record::PrefixMade {
            generation: self.state.prefix.generation().next(),
            cause,
            system,
            tools: tool_list(&self.config).into(),
            functions: cells::functions(&self.config),
            facts: Box::new(Facts { date: String::new(), ..facts.clone() }),
        });
        self.live.tools_changed = false;
    }

    /// Finds out whether this process has other actions than the prefix in force offers, as tools or in cells.
    /// Descriptions alone break nothing: the old bytes are sent until something else does.
    pub(super) fn check_tools(&mut self) {
        if self.state.prefix.due().is_some() {
            return;
        }
        let offered: Vec<ToolDefinition> =
            serde_json::from_str(&self.state.transcript.tools).unwrap_or_default();
        let names = |n: &ToolDefinition| n.name.clone();
        let mut offered: Vec<String> = offered.iter().map(names).collect();
        let mut registered: Vec<String> = self.config.tools().map(|spec| names(&spec.tool)).collect();
        offered.sort_unstable();
        registered.sort_unstable();
        if offered != registered || self.state.transcript.functions != cells::functions(&self.config) {
            self.live.tools_changed = true;
        }
    }
}

/// The system prompt: the soul, how to live here, and the facts but for the date. No clock is in it.
fn system_prompt(name: &str, soul: &str, cells: &str, facts: &Facts) -> String {
    let mut text = format!("{}\n\n{}", soul.trim_end(), INSTRUCTIONS.replace("{{name}}", name));
    for (_, memory) in &facts.memory {
        text.push_str("\n- ");
        text.push_str(&memory.replace('\n', "\n  "));
    }
    let mut section = |heading: &str, body: &str| {
        if !body.is_empty() {
            text.push_str(&format!("\n\n# {heading}\n\n{}", body.trim_end()));
        }
    };
    section("Cells", cells);
    section("Mode", &facts.mode_text);
    section("Plan", &facts.plan);
    section("Personality", &facts.personality);
    section("Environment", &facts.environment);
    for (path, body) in &facts.instructions {
        section(path, body);
    }
    for (server, body) in &facts.mcp {
        section(server, body);
    }
    text
}

fn tool_list(config: &Config) -> String {
    let tools: Vec<&ToolDefinition> = config.tools().map(|spec| &spec.tool).collect();
    serde_json::to_string(&tools).expect("a tool has only string keys")
}
