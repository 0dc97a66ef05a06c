//! Sampling: requests to the model, what streams back, and what is done when it fails (`B-EVENT-6`).

use std::sync::Arc;
use std::time::Duration;

use super::Agent;
use super::live::{Purpose, Sampling, Then};
use super::render;
use crate::context::proof::{self, Difference, Verdict};
use crate::hash::Hash;
use crate::ids::{Fence, StepId};
use crate::input::Command;
use crate::model::{AssistantMessage, Call, Delta, Failure, Message, Parameters, RawCall, Request, Sampled};
use crate::policy::{NudgeKind, Question, nudge_text};
use crate::record::{Record, TurnCause, TurnEnd};
use crate::state::{Stage, Turn};
use crate::time::Human;

impl Agent {
    /// At a step boundary: what comes before the next request, and then the request.
    pub(super) fn advance_due(&mut self) -> bool {
        if self.live.loading.is_some() {
            return false;
        }
        if self.advance_summary() {
            return true;
        }
        let asking = [Then::Compact, Then::Keep, Then::AskForSummary, Then::Limit]
            .into_iter()
            .any(|one| self.live.is_asking(one));
        let nudging = self.live.deciding.values().any(|pending| matches!(pending.then, Then::Nudge(_)));
        if asking || nudging || self.state.compaction.requested.is_some() {
            return false;
        }
        let Some(turn) = self.state.turn() else { return false };
        let (id, steps, limit) = (turn.id, turn.steps, self.step_limit());
        if steps >= limit && self.live.limit_asked != Some(steps) && !turn.nudged.contains(&NudgeKind::WrapUp)
        {
            self.live.limit_asked = Some(steps);
            self.ask(Question::Limits { turn: id, steps, limit }, Then::Limit);
            return true;
        }
        let nudge = self.nudge_due(turn);
        if let Some((kind, text)) = nudge {
            self.ask(Question::Nudge { kind, text: text.into() }, Then::Nudge(kind));
            return true;
        }
        let after_results = matches!(self.state.transcript.messages().last(), Some(Message::Tool { .. }));
        if after_results
            && !turn.nudged.contains(&NudgeKind::WrapUp)
            && !self.select_addition().events.is_empty()
        {
            self.load(Purpose::Add);
            return true;
        }
        if self.prefix_cause(&turn.model).is_some() {
            self.load(Purpose::Prefix);
            return true;
        }
        self.request_step();
        true
    }

    /// A nudge that has to stand in front of the next request.
    fn nudge_due(&self, turn: &Turn) -> Option<(NudgeKind, String)> {
        let asked = |kind| turn.nudged.contains(&kind) || self.live.declined.contains(&kind);
        if turn.cause == TurnCause::Idle && turn.steps == 0 && !asked(NudgeKind::Idle) {
            let quiet = self.now().since(self.state.last_happening);
            return Some((NudgeKind::Idle, nudge_text(NudgeKind::Idle, &Human(quiet).to_string())));
        }
        match self.state.transcript.messages().last() {
            None | Some(Message::Assistant(_)) => {
                return Some((NudgeKind::Continue, nudge_text(NudgeKind::Continue, "")));
            }
            Some(Message::Tool { .. }) if !asked(NudgeKind::WrapUp) => {}
            // One message of the harness's stands in front of a request at most.
            Some(Message::Tool { .. } | Message::User { .. }) => return None,
        }
        let limits = &self.config.limits;
        let limit = match &turn.failing {
            Some(failing) if failing.times >= limits.identical_failures => {
                format!("{} failed {} times in the same way.", failing.name, failing.times)
            }
            _ if let Some(veto) = turn.vetoes.iter().find(|veto| veto.times >= limits.identical_vetoes) => {
                format!("{} was refused {} times in a row with the same arguments.", veto.name, veto.times)
            }
            _ if turn.steps >= self.step_limit() => {
                format!("The limit of {} steps is reached.", self.step_limit())
            }
            _ => return None,
        };
        Some((NudgeKind::WrapUp, nudge_text(NudgeKind::WrapUp, &limit)))
    }

    /// The steps that the running turn may have.
    fn step_limit(&self) -> u32 {
        self.live.step_limit.unwrap_or(self.config.limits.steps)
    }

    fn request_step(&mut self) {
        let Some(turn) = self.state.turn() else { return };
        let step = StepId { turn: turn.id, number: turn.steps + 1 };
        let parameters = Parameters {
            effort: turn.effort.clone(),
            max_output_tokens: self.config.max_output_tokens,
            tool_choice: self.config.tool_choice,
        };
        let (model, epoch) = (turn.model.clone(), turn.epoch);
        let request = self.request(model.clone(), parameters.clone(), None);
        let dropped = self.prove(&request, false);
        let transcript = &self.state.transcript;
        self.record(Record::StepRequested {
            step,
            generation: self.state.prefix.generation(),
            messages: transcript.messages().len(),
            chain: transcript.chain(),
            model,
            parameters,
            epoch,
            tokens: transcript.tokens(0),
            dropped,
        });
        self.send(request, false);
    }

    /// Repeats a request whose time has come, or that an earlier process had sent (`C-REC-2`).
    pub(super) fn advance_sampling(&mut self) -> bool {
        if self.live.sampling.is_some() {
            return false;
        }
        let Some(Stage::Sampling { step, retry_at, .. }) = self.state.turn().map(|turn| &turn.stage) else {
            return false;
        };
        if retry_at.is_some_and(|due| due > self.now()) {
            return false;
        }
        let step = *step;
        self.record(Record::StepRetried { step });
        self.sample_step();
        true
    }

    /// Sends the request of the running step: the same bytes each time.
    fn sample_step(&mut self) {
        let Some(turn) = self.state.turn() else { return };
        let Stage::Sampling { parameters, .. } = &turn.stage else { return };
        let (model, parameters) = (turn.model.clone(), parameters.clone());
        self.sample(model, parameters, None);
    }

    /// Sends what the transcript holds, or its front and a question about it.
    pub(super) fn sample(
        &mut self,
        model: Arc<str>,
        parameters: Parameters,
        summary: Option<(usize, Arc<str>)>,
    ) {
        let is_summary = summary.is_some();
        let request = self.request(model, parameters, summary);
        self.prove(&request, is_summary);
        self.send(request, is_summary);
    }

    fn request(
        &self,
        model: Arc<str>,
        parameters: Parameters,
        summary: Option<(usize, Arc<str>)>,
    ) -> Request {
        let transcript = &self.state.transcript;
        let messages = match summary {
            None => transcript.to_request(),
            Some((covers, prompt)) => transcript.to_summary_request(covers, prompt),
        };
        let (system, tools) = (transcript.system.clone(), transcript.tools.clone());
        Request { model, system, tools, messages, parameters }
    }

    /// Compares a request with the one before it in its lane; a break that no new prefix declares is recorded
    /// (`C-PFX-1`). Answers where it leaves out reasoning that was sent before.
    fn prove(&mut self, request: &Request, is_summary: bool) -> Option<Difference> {
        let generation = self.state.prefix.generation();
        let mut sent = request.clone();
        if is_summary {
            // What asks for the summary stands in no later request.
            sent.messages.pop();
        }
        let before = self.live.lanes.insert(request.model.clone(), (generation, sent));
        // A prefix that is due has declared the break already.
        let is_declared = self.state.prefix.due().is_some();
        let (_, mut before) = before.filter(|(sent_in, _)| *sent_in == generation && !is_declared)?;
        if is_summary {
            // It covers what was answered; what was not follows the summary.
            before.messages.truncate(request.messages.len() - 1);
        }
        match proof::compare(&before, request) {
            Verdict::Extension => None,
            Verdict::ReasoningDropped(at) => Some(at),
            Verdict::Broken(at) => {
                self.record(Record::PrefixBroken { model: request.model.clone(), generation, at });
                None
            }
        }
    }

    fn send(&mut self, request: Request, is_summary: bool) {
        let fence = self.fence();
        self.command(Command::Sample { fence, request: Box::new(request) });
        self.live.sampling = Some(Sampling { fence, text: String::new(), summary: is_summary });
    }

    pub(super) fn handle_delta(&mut self, fence: Fence, delta: &Delta) {
        let Some(sampling) = self.live.sampling.as_mut().filter(|sampling| sampling.fence == fence) else {
            return;
        };
        match delta {
            Delta::Scratch(text) => sampling.text.push_str(text),
            Delta::Think(_) | Delta::CallStarted { .. } => {}
        }
    }

    pub(super) fn handle_sampled(&mut self, fence: Fence, sampled: Sampled) {
        let Some(sampling) = self.live.sampling.take_if(|sampling| sampling.fence == fence) else {
            return self.drop_late("a reply");
        };
        if sampling.summary {
            return self.take_summary(&sampled);
        }
        let Some(Stage::Sampling { step, .. }) = self.state.turn().map(|turn| &turn.stage) else { return };
        let step = *step;
        let calls = self.name_calls(step, sampled.calls);
        self.live.judged.clear();
        self.record(Record::StepSampled {
            step,
            message: AssistantMessage {
                text: sampled.text.into(),
                reasoning: sampled.reasoning.filter(|text| !text.is_empty()).map(Into::into),
                calls,
            },
            finish: sampled.finish,
            usage: sampled.usage,
        });
    }

    /// Settles the calls' ids: the provider's where it is usable, else nine alphanumerics, which every
    /// dialect takes (`C-ID-1`).
    fn name_calls(&self, step: StepId, raw: Vec<RawCall>) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        for (n, raw) in raw.into_iter().enumerate() {
            let is_used =
                |id: &str| calls.iter().any(|call| &*call.id == id) || self.state.transcript.has_call(id);
            let given = raw.id.filter(|id| !id.is_empty() && !is_used(id));
            let own = || {
                (0u32..)
                    .map(|salt| call_id(&format!("{} {salt}", step.action(n as u32 + 1))))
                    .find(|id| !is_used(id))
                    .expect("ids do not run out")
            };
            let id = given.unwrap_or_else(own).into();
            calls.push(Call { id, name: raw.name.into(), arguments: raw.arguments.into() });
        }
        calls
    }

    pub(super) fn handle_sampling_failed(&mut self, fence: Fence, failure: Failure) {
        let Some(sampling) = self.live.sampling.take_if(|sampling| sampling.fence == fence) else {
            return self.drop_late("a failure to reply");
        };
        if sampling.summary {
            return self.summary_failed(&failure);
        }
        let Some(Stage::Sampling { step, failures, refusals, .. }) =
            self.state.turn().map(|turn| &turn.stage)
        else {
            return;
        };
        let (step, failures, refusals) = (*step, *failures, *refusals + 1);
        let retry_at = Some(self.now() + self.backoff(step, failures, failure.retry_after()));
        match &failure {
            Failure::ContextOverflow { .. } if self.can_summarise() => {
                self.record(Record::SamplingFailed { step, failure, retry_at: None });
                self.want_compaction();
            }
            Failure::ContextOverflow { .. } | Failure::Refused { .. }
                if refusals >= self.config.limits.refusals =>
            {
                self.record(Record::SamplingFailed { step, failure: failure.clone(), retry_at: None });
                self.dead_letter(step, failure);
            }
            Failure::Disconnected(_)
            | Failure::Stalled(_)
            | Failure::RateLimited { .. }
            | Failure::Provider { .. }
            | Failure::Malformed(_)
            | Failure::ContextOverflow { .. }
            | Failure::Unauthorized { .. }
            | Failure::Refused { .. } => self.record(Record::SamplingFailed { step, failure, retry_at }),
        }
    }

    /// How long to leave a failing provider alone: doubling, bounded, with a jitter that depends on the step.
    fn backoff(&self, step: StepId, failures: u32, asked: Option<Duration>) -> Duration {
        let limits = &self.config.limits;
        let whole = limits.backoff_first.saturating_mul(1 << failures.min(16)).min(limits.backoff_max);
        let jitter = Hash::of(format!("{} {step} {failures}", self.config.agent).as_bytes()).0[0];
        let jittered = whole.mul_f64(0.5 + f64::from(jitter) / 510.0);
        asked.map_or(jittered, |asked| asked.min(Duration::from_secs(3600)).max(jittered))
    }

    /// Gives up what no provider accepted: one line stands in its place (`C-FRM-3`).
    fn dead_letter(&mut self, step: StepId, failure: Failure) {
        let Some(turn) = self.state.turn() else { return };
        let accepted = self.state.transcript.accepted();
        let messages = self.state.transcript.messages().len() - accepted;
        let frame = turn.frame.filter(|_| accepted <= turn.first_message);
        let placeholder = render::instructions(&format!(
            "What stood here was refused by the provider and has been taken out: {failure}"
        ));
        self.record(Record::DeadLettered { frame, messages, placeholder, failure });
        self.abort_sampling(step, "");
        self.end_turn(TurnEnd::Refused, Vec::new());
    }
}

/// Nine alphanumerics that depend on a text alone.
fn call_id(text: &str) -> String {
    const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    Hash::of(text.as_bytes())
        .0
        .iter()
        .take(9)
        .map(|byte| char::from(DIGITS[usize::from(*byte) % 36]))
        .collect()
}
