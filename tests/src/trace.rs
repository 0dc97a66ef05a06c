//! A recorded life of two hundred turns, driven through the real machine to measure what a provider caches.
//!
//! Owns the committed trace, the machine's world while it runs, and the counting. Refuses to know who answers:
//! whoever asks for a request's usage may be a real server, or a count of bytes. The trace's own replies are what
//! the machine is told, so that the same requests are made whatever a server says.

mod world;

use std::collections::BTreeMap;

use klbr_core::model::{Failure, Request, Usage};
use klbr_core::record::BreakCause;
use serde::Deserialize;

/// The committed trace.
pub const TRACE: &str = include_str!("../traces/two-hundred-turns.json");
/// A chat template that renders every reasoning that a request carries.
pub const THINKING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/thinking.jinja");

/// What happens in a trace.
#[derive(Clone, Debug, Deserialize)]
pub struct Trace {
    /// Who the agent is.
    pub soul: String,
    /// The files at the beginning, by path, in lines.
    pub files: BTreeMap<String, Vec<String>>,
    /// The turns in order.
    pub turns: Vec<Turn>,
}

/// One turn of a trace.
#[derive(Clone, Debug, Deserialize)]
pub struct Turn {
    /// The mode that the operator changes to before, and what is told of it.
    pub mode: Option<(String, String)>,
    /// What the operator says.
    pub say: String,
    /// What the model replies, step by step.
    pub steps: Vec<Reply>,
    /// Whether the operator interrupts the first reply while it streams.
    #[serde(default)]
    pub interrupt: bool,
    /// The summary of the compaction that the operator asks for after the turn.
    pub compact: Option<String>,
}

/// One reply of the model.
#[derive(Clone, Debug, Deserialize)]
pub struct Reply {
    /// Its reasoning.
    pub think: Option<String>,
    /// Its text.
    pub text: String,
    /// Its calls: names and arguments.
    pub calls: Vec<(String, serde_json::Value)>,
}

impl Trace {
    /// The committed trace.
    ///
    /// # Panics
    ///
    /// Panics when the file is not a trace.
    pub fn committed() -> Self {
        serde_json::from_str(TRACE).expect("the committed trace can be read")
    }
}

/// How a request is made of what the machine sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// As it is.
    AsSent,
    /// As it is often done: a clock in front, older results taken out.
    Naive,
}

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The first of a prefix.
    Fresh,
    /// A step.
    Step,
    /// A summary.
    Summary,
}

/// One request as it was counted.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// What for.
    pub purpose: Purpose,
    /// What was counted.
    pub usage: Usage,
}

/// What one run of a trace came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The requests in order.
    pub sent: Vec<Sent>,
    /// Why each prefix was made.
    pub causes: Vec<BreakCause>,
    /// Breaks that nothing declared.
    pub undeclared: u64,
    /// Turns that were run.
    pub turns: u64,
    /// Notes that told another mode.
    pub modes: u64,
    /// Turns that were interrupted.
    pub interrupts: u64,
}

impl Report {
    /// The cached share of the prompt tokens of some requests.
    pub fn cached(&self, of: impl Fn(usize, &Sent) -> bool) -> f64 {
        let chosen =
            || self.sent.iter().enumerate().filter(|(n, sent)| of(*n, sent)).map(|(_, sent)| sent.usage);
        let cached: u64 = chosen().filter_map(|usage| usage.cached).sum();
        cached as f64 / chosen().map(|usage| usage.input).sum::<u64>().max(1) as f64
    }

    /// The cached share after the first request.
    pub fn after_first(&self) -> f64 {
        self.cached(|n, _| n > 0)
    }

    /// The lowest cached share of a request for a summary.
    pub fn summaries(&self) -> f64 {
        let is_summary = |sent: &&Sent| sent.purpose == Purpose::Summary;
        let share = |sent: &Sent| sent.usage.cached.unwrap_or(0) as f64 / sent.usage.input.max(1) as f64;
        self.sent.iter().filter(is_summary).map(share).fold(1.0, f64::min)
    }
}

/// Drives a trace; `ask` sends a request and answers with what was counted.
///
/// # Errors
///
/// Fails when a request does, or when the machine does not do what the trace says.
pub async fn drive(
    trace: &Trace,
    prompt: Prompt,
    ask: impl AsyncFnMut(Request) -> Result<Usage, Failure>,
) -> Result<Report, String> {
    world::World::new(trace, prompt).run(ask).await
}

/// Counts bytes in a token's place: what is cached is what a request begins with of the one before it.
pub fn counter() -> impl FnMut(&Request) -> Usage {
    let mut before = String::new();
    move |request| {
        let messages = serde_json::to_string(&request.messages).unwrap_or_default();
        let text = format!("{}{}{}", request.system, request.tools, messages.trim_end_matches(']'));
        let common = text.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count() as u64;
        let input = text.len() as u64;
        before = text;
        Usage { input, output: 1, cached: Some(common) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn counted(prompt: Prompt) -> Report {
        let mut count = counter();
        drive(&Trace::committed(), prompt, async |request| Ok(count(&request))).await.unwrap()
    }

    #[tokio::test]
    async fn by_the_byte_only_the_compactions_break_the_trace() {
        let report = counted(Prompt::AsSent).await;
        assert_eq!(report.turns, 200);
        assert_eq!(report.undeclared, 0);
        assert_eq!((report.modes, report.interrupts), (14, 5));
        assert_eq!(report.causes, [BreakCause::First, BreakCause::Compaction, BreakCause::Compaction]);
        assert!(report.after_first() >= 0.97, "{}", report.after_first());
        assert!(report.summaries() >= 0.9, "{}", report.summaries());
        let naive = counted(Prompt::Naive).await;
        assert!(naive.after_first() < 0.5, "{}", naive.after_first());
    }
}
