//! Calls: from what the model asked for to the one result that each call gets (`C-EFF-1`, `C-REC-1`).

use std::sync::Arc;

use super::Agent;
use super::inner::Cut;
use super::live::{Judged, Then};
use crate::action::{
    ActionSpec, Answered, Attempt, Class, Delivery, End, FailureKind, FrameContext, Outcome, Role, Sent,
};
use crate::context::{Answer, Dedupe, Output};
use crate::event::{Body, NewEvent, Priority, Source, SourceKind};
use crate::ids::{ActionId, Fence};
use crate::input::Command;
use crate::policy::{Question, Review, Slot, Verdict};
use crate::record::{CallResult, Delivered, Record};
use crate::state::{CallState, Effect, EffectStatus, Progress, Stage};

/// What one call needs next.
enum Next {
    /// To be judged, or refused.
    Consider(ActionId),
    /// To be attempted.
    Attempt(ActionId),
    /// Its result is to be worded.
    Shape(ActionId),
    /// To be found out about: an earlier process attempted it.
    Recover(ActionId),
    /// To be let go of: its caller is gone with an earlier process.
    CutOff(ActionId),
}

impl Agent {
    /// Moves the calls of a reply on, and ends the step or the turn when all have been answered.
    pub(super) fn advance_calls(&mut self) -> bool {
        let Some(turn) = self.state.turn() else { return false };
        if turn.calls().is_empty() {
            return self.yield_turn(None);
        }
        if let Some(next) = self.next_call() {
            match next {
                Next::Consider(action) => self.consider(action),
                Next::Attempt(action) => self.attempt(action),
                Next::Shape(action) => self.ask_shape(action),
                Next::Recover(action) => self.recover(action),
                Next::CutOff(action) => self.close_call(action, &Cut::lost()),
            }
            return true;
        }
        let is_done = |call: &CallState| call.is_answered() || call.yields() || self.is_wait(&call.name);
        if !self.state.turn().is_some_and(|turn| turn.calls().iter().all(is_done)) {
            return false;
        }
        self.consider_waits()
    }

    pub(super) fn is_wait(&self, name: &str) -> bool {
        self.config.action(name).is_some_and(|spec| spec.role == Role::Wait)
    }

    fn next_call(&self) -> Option<Next> {
        let calls = self.state.turn()?.calls();
        calls.iter().find_map(|call| {
            let action = call.action;
            match call.progress {
                Progress::Proposed if !action.is_inner() && self.is_wait(&call.name) => None,
                Progress::Proposed | Progress::Intended { .. } if self.is_orphan(action) => {
                    Some(Next::CutOff(action))
                }
                Progress::Proposed => {
                    let asked = [Then::Review(action), Then::Format(action)];
                    let is_asked = asked.into_iter().any(|one| self.live.is_asking(one));
                    (!is_asked).then_some(Next::Consider(action))
                }
                Progress::Ended { .. } => {
                    (!self.live.is_asking(Then::Shape(action))).then_some(Next::Shape(action))
                }
                Progress::Attempted { .. } if !self.live.actions.contains_key(&action) => {
                    // What it had under way is found out about first.
                    (!is_calling(calls, action)).then_some(Next::Recover(action))
                }
                Progress::Intended { .. } => self.may_begin(calls, call).then_some(Next::Attempt(action)),
                Progress::Attempted { .. }
                | Progress::Yields { .. }
                | Progress::Answered { .. }
                | Progress::Entered => None,
            }
        })
    }

    /// Whether an attempt may begin beside what runs. Calls that touch one thing run in their order. A call that
    /// waits for one that it has made itself keeps no call of any caller's from running, or the two would wait for
    /// each other.
    fn may_begin(&self, calls: &[CallState], call: &CallState) -> bool {
        let is_running = |other: &CallState| matches!(other.progress, Progress::Attempted { .. });
        let works = |other: &CallState| is_running(other) && !is_calling(calls, other.action);
        if calls.iter().filter(|other| works(other)).count() >= self.config.limits.parallel {
            return false;
        }
        let Some(resource) = self.resource(call) else { return true };
        let holds = |other: &CallState| {
            let is_before = other.action < call.action && !other.is_answered() && !other.yields();
            let is_passed = call.action.is_inner() && is_calling(calls, other.action);
            (is_before || is_running(other)) && !is_passed
        };
        !calls.iter().any(|other| holds(other) && self.resource(other).as_ref() == Some(&resource))
    }

    fn resource(&self, call: &CallState) -> Option<String> {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        self.config.action(&call.name)?.resource_of(&arguments)
    }

    /// Refuses a call that cannot be run, or has policy look at it.
    fn consider(&mut self, action: ActionId) {
        let Some((call, is_cut)) = self.proposed(action) else { return };
        let spec = match self.callable(&call) {
            Ok(spec) => spec,
            Err(text) => return self.settle(action, End::failed(FailureKind::Invalid), text, None),
        };
        let role = spec.role.clone();
        if let Some(text) = self.config.unavailable.get(&call.name).cloned() {
            return self.settle(action, End::failed(FailureKind::NotRun), &*text, None);
        }
        let arguments = match self.live.judged.get(&action) {
            Some(judged) => judged.arguments.clone(),
            None => {
                match object(&call.arguments) {
                    Ok(arguments) => arguments,
                    Err(why) => {
                        let text = match is_cut {
                        true => "Not run: the reply reached its token limit inside the arguments of this call. \
                                 Send less in one call."
                            .to_owned(),
                        false => format!("Not run: the arguments are not a JSON object: {why}."),
                    };
                        return self.settle(action, End::failed(FailureKind::Invalid), text, None);
                    }
                }
            }
        };
        if self.is_past_the_limit(&role) {
            let text = "Not run: the turn has reached its limit; only sending and waiting are left.";
            return self.settle(action, End::failed(FailureKind::NotRun), text, None);
        }
        if self.state.turn().is_some_and(|turn| turn.vetoed(&call) >= self.config.limits.identical_vetoes) {
            return self.end_loop(&call);
        }
        let is_delivery = matches!(role, Role::Delivery { .. });
        let formatted = self.live.judged.get(&action).is_some_and(|judged| judged.formatted);
        let review = Review::new(action, call.name, arguments.clone());
        self.live.judged.insert(action, Judged { arguments, formatted });
        if is_delivery && !formatted {
            let question = Question::DeliveryFormat(review.clone());
            if self.is_bound(Slot::DeliveryFormat) {
                return self.ask(question, Then::Format(action));
            }
            self.note_default(&question);
        }
        let question =
            if is_delivery { Question::DeliveryReview(review) } else { Question::ActionReview(review) };
        self.ask(question, Then::Review(action));
    }

    /// A call that waits to be judged, and whether the token limit may have cut it.
    fn proposed(&self, action: ActionId) -> Option<(CallState, bool)> {
        let Stage::Acting { calls, cut, .. } = &self.state.turn()?.stage else { return None };
        let call = calls.iter().find(|call| call.action == action)?;
        let is_last =
            calls.iter().rfind(|call| !call.action.is_inner()).is_some_and(|last| last.action == action);
        matches!(call.progress, Progress::Proposed).then(|| (call.clone(), *cut && is_last))
    }

    /// Takes policy's word on one call.
    pub(super) fn judge(&mut self, action: ActionId, verdict: Verdict) {
        let Some((call, _)) = self.proposed(action) else { return };
        let Some(spec) = self.config.action(&call.name) else { return };
        let class = spec.class;
        let (channel, role) = (channel(spec), spec.role.clone());
        let epoch = self.state.turn().map_or(self.state.epoch, |turn| turn.epoch);
        let judged = self.live.judged.get(&action);
        let arguments = judged.map_or(call.arguments, |judged| judged.arguments.clone());
        match (verdict, role) {
            (Verdict::Allow, Role::Mark { channel }) => {
                let (end, text) = self.mark_as_model(action, &channel, &arguments);
                self.settle(action, end, text, None);
            }
            (Verdict::Allow, _) => {
                self.record(Record::Intended { action, name: call.name, arguments, class, channel, epoch })
            }
            (Verdict::Deny { reason }, _) => {
                let text = format!("Denied: {reason}");
                self.settle(action, End::failed(FailureKind::Denied), text, None);
            }
            (Verdict::Hold { reason }, _) => {
                let text = format!("Held for review, {action}: {reason}");
                let result = self.result_of(action, &Answer::text(text));
                let told = result.full.clone();
                self.record(Record::Held { action, name: call.name, arguments, channel, reason, result });
                self.tell_caller(Answered::of(action, None, told));
            }
        }
    }

    fn attempt(&mut self, action: ActionId) {
        let Some(call) = self.call(action) else { return };
        let Progress::Intended { at, .. } = call.progress else { return };
        if self.now().since(at) > self.config.limits.effect_expiry {
            let text = format!("Not run: it was decided at {at}, too long ago to be done unasked now.");
            return self.settle(action, End::failed(FailureKind::Stale), text, None);
        }
        self.record(Record::Attempted { action, number: 1 });
        self.dispatch(action);
    }

    /// Goes on with an attempt that an earlier process made: again where that is harmless, else by asking
    /// how it ended (`C-REC-2`).
    fn recover(&mut self, action: ActionId) {
        let Some(call) = self.call(action) else { return };
        let Progress::Attempted { number, class, .. } = call.progress else { return };
        if action.is_inner() && class == Class::Pure {
            // Nobody is there any more to make use of it.
            return self.close_call(action, &Cut::lost());
        }
        let has_called = self.state.turn().is_some_and(|turn| turn.calls_of(action).next().is_some());
        if class.may_repeat() && !has_called {
            self.record(Record::Attempted { action, number: number + 1 });
            return self.dispatch(action);
        }
        let Some((attempt, delivery)) = self.attempt_at_hand(action) else { return };
        self.reconcile(action, attempt, delivery);
    }

    /// Sends an attempt out: of a running call, or of an effect that the operator has allowed.
    pub(super) fn dispatch(&mut self, action: ActionId) {
        let Some((attempt, delivery)) = self.attempt_at_hand(action) else { return };
        if let Some(Role::Mark { channel }) = self.config.action(&attempt.name).map(|spec| spec.role.clone())
        {
            // The operator has allowed what was held.
            let (end, observation) = self.mark_as_model(action, &channel, &attempt.arguments);
            return self.receipt(action, Outcome { end, ..Outcome::confirmed(observation) });
        }
        let fence = self.fence();
        self.live.actions.insert(action, fence);
        self.command(match delivery {
            Some(delivery) => Command::Deliver { fence, delivery },
            None => Command::Act { fence, attempt },
        });
    }

    fn reconcile(&mut self, action: ActionId, attempt: Attempt, delivery: Option<Delivery>) {
        let fence = self.fence();
        self.live.actions.insert(action, fence);
        self.live.reconciling.insert(action);
        self.command(Command::Reconcile { fence, attempt, delivery });
    }

    /// The attempt that the state says is being made, and the delivery it makes.
    fn attempt_at_hand(&self, action: ActionId) -> Option<(Attempt, Option<Delivery>)> {
        let (name, arguments, first, number, frame) = match self.state.open_effects.get(&action) {
            Some(effect) => {
                let EffectStatus::Attempted { first, number } = effect.status else { return None };
                (&effect.name, &effect.arguments, first, number, &effect.context)
            }
            None => {
                let call = self.state.turn()?.calls().iter().find(|call| call.action == action)?;
                let Progress::Attempted { first, number, .. } = call.progress else { return None };
                (&call.name, &call.arguments, first, number, &self.state.turn()?.context)
            }
        };
        let spec = self.config.action(name);
        let attempt = Attempt {
            action,
            name: name.clone(),
            arguments: arguments.clone(),
            number,
            deadline: self.now() + spec.map_or(std::time::Duration::ZERO, |spec| spec.deadline),
            frame: frame.clone(),
            conversations: self.state.aliases.clone(),
            seen: self.state.hygiene.seen().clone(),
        };
        let channel = spec.and_then(channel);
        let delivery = channel.map(|channel| Delivery::new(attempt.clone(), channel, first));
        Some((attempt, delivery))
    }

    pub(super) fn call(&self, action: ActionId) -> Option<&CallState> {
        self.state.turn()?.call(action)
    }

    pub(super) fn handle_settled(&mut self, fence: Fence, action: ActionId, outcome: Outcome) {
        if self.live.actions.get(&action) != Some(&fence) {
            return self.drop_late(format!("the outcome of {action}: {}", outcome.observation));
        }
        self.live.actions.remove(&action);
        self.live.reconciling.remove(&action);
        if self.state.open_effects.contains_key(&action) {
            return self.receipt(action, outcome);
        }
        let Some(call) = self.call(action).cloned() else { return };
        let context = self.state.turn().map(|turn| turn.context.clone()).unwrap_or_default();
        let Outcome { end, mut observation, mut answer, sent, wait } =
            self.note_sent(action, &context, outcome);
        let delivered = self.delivered(&call.name, &call.arguments, &end, sent);
        self.cut_off_calls_of(action, &Cut::caller_ended());
        if let Some(account) = self.account(action, end.is_confirmed()) {
            observation = format!("{observation}\n\n{account}").into();
            answer = None;
        }
        if let Some(wait) = wait.filter(|_| end.is_confirmed() && !action.is_inner()) {
            return self.record(Record::Yielded { action, told: observation, wait });
        }
        if answer.is_none() && !action.is_inner() {
            if self.is_bound(Slot::ResultShape) {
                return self.record(Record::Ended { action, end, observation, delivered });
            }
            let (name, text) = (call.name.clone(), observation.clone());
            self.note_default(&Question::ResultShape { action, name, text });
        }
        let answer = answer.map_or_else(|| output(&call, &end, &observation), |answer| *answer);
        self.settle_with(action, end, answer, delivered);
    }

    /// Has policy word the result of an action that has ended.
    fn ask_shape(&mut self, action: ActionId) {
        let Some(CallState { name, progress: Progress::Ended { observation, .. }, .. }) = self.call(action)
        else {
            return;
        };
        let question = Question::ResultShape { action, name: name.clone(), text: observation.clone() };
        self.ask(question, Then::Shape(action));
    }

    /// Settles an action that has ended: its result shows the text that policy gave it, and keeps its own.
    pub(super) fn shape(&mut self, action: ActionId, text: Option<Arc<str>>) {
        let Some(call) = self.call(action).cloned() else { return };
        let Progress::Ended { end, observation, delivered } = call.progress.clone() else { return };
        let mut result = self.result(&output(&call, &end, &observation));
        if let Some(text) = text.filter(|text| *text != observation) {
            let shaped = self.result(&Answer::text(&*text));
            result = CallResult { shown: Some(shaped.inserted()), full: observation, ..shaped };
        }
        let delivered = delivered.map(|delivered| *delivered);
        self.record(Record::Settled { action, end, result, delivered });
    }

    /// Marks what a delivery has answered, and says so in its observation.
    fn note_sent(&mut self, action: ActionId, context: &FrameContext, mut outcome: Outcome) -> Outcome {
        let marked = outcome.sent.as_ref().and_then(|sent| self.mark_as_sent(action, sent, context));
        if let Some(marked) = marked {
            outcome.observation = format!("{} {marked}", outcome.observation).into();
        }
        outcome
    }

    fn delivered(
        &self,
        name: &str,
        arguments: &Arc<str>,
        end: &End,
        sent: Option<Box<Sent>>,
    ) -> Option<Delivered> {
        let channel = channel(self.config.action(name)?)?;
        end.is_confirmed().then(|| Delivered { channel, arguments: arguments.clone(), sent })
    }

    /// Ends an action whose call still waits for its result.
    pub(super) fn settle(
        &mut self,
        action: ActionId,
        end: End,
        text: impl Into<String>,
        delivered: Option<Delivered>,
    ) {
        self.settle_with(action, end, Answer::text(text), delivered);
    }

    fn settle_with(&mut self, action: ActionId, end: End, answer: Answer, delivered: Option<Delivered>) {
        let result = self.result_of(action, &answer);
        let sent = delivered.as_ref().and_then(|delivered| delivered.sent.clone());
        let answered = Answered::of(action, Some(end.clone()), result.full.clone());
        self.record(Record::Settled { action, end, result, delivered });
        let answer = (!matches!(answer, Answer::Output(_))).then(|| Box::new(answer));
        self.tell_caller(Answered { answer, sent, ..answered });
    }

    /// Ends an effect whose call was answered before. The model hears of it as an event: a failure or an
    /// unknown end at once, a confirmation with whatever is shown next (`C-REC-3`).
    pub(super) fn receipt(&mut self, action: ActionId, outcome: Outcome) {
        let Some(Effect { name, arguments, context, .. }) = self.state.open_effects.get(&action).cloned()
        else {
            return;
        };
        // A wait that it would end with has no turn any more that it could end.
        let Outcome { end, observation, answer: _, sent, wait: _ } =
            self.note_sent(action, &context, outcome);
        let delivered = self.delivered(&name, &arguments, &end, sent);
        let (word, priority) = match &end {
            End::Confirmed => ("confirmed", Priority::Ambient),
            End::Failed { .. } => ("failed", Priority::Directed),
            End::Unknown => ("unknown", Priority::Directed),
        };
        let text = format!("{action} {name}: {word}: {observation}");
        self.record(Record::Receipt { action, end, observation, delivered });
        self.admit(NewEvent::external(
            Source::new(SourceKind::System, "receipts"),
            format!("receipt:{action}"),
            priority,
            Body::text(text),
        ));
    }

    /// Finds out about effects that an earlier process had under way when its calls were answered.
    pub(super) fn recover_open_effects(&mut self) {
        let attempted = |(action, effect): (&ActionId, &crate::state::Effect)| match effect.status {
            EffectStatus::Attempted { .. } => Some(*action),
            EffectStatus::Held => None,
        };
        let open: Vec<ActionId> = self.state.open_effects.iter().filter_map(attempted).collect();
        for action in open {
            if let Some((attempt, delivery)) = self.attempt_at_hand(action) {
                self.reconcile(action, attempt, delivery);
            }
        }
    }
}

/// The channel that an action speaks through, if it speaks.
fn channel(spec: &ActionSpec) -> Option<Arc<str>> {
    match &spec.role {
        Role::Delivery { channel } => Some(channel.clone()),
        Role::Ordinary | Role::Wait | Role::Mark { .. } | Role::Cell => None,
    }
}

/// Whether an action waits for a call that it has made.
fn is_calling(calls: &[CallState], caller: ActionId) -> bool {
    let is_its = |call: &CallState| call.action.is_inner() && call.action.outer() == caller;
    !caller.is_inner() && calls.iter().any(|call| is_its(call) && !call.is_answered())
}

/// What a text answers a call with: a repeat of the same one may be shown as such.
fn output(call: &CallState, end: &End, text: &str) -> Answer {
    Answer::Output(Output {
        tool: call.name.to_string(),
        args: call.arguments.to_string(),
        text: text.to_owned(),
        dedupe: if end.is_confirmed() { Dedupe::of_tool(&call.name) } else { Dedupe::Never },
    })
}

/// The arguments as a JSON object; nothing at all is an empty one.
fn object(arguments: &Arc<str>) -> Result<Arc<str>, String> {
    if arguments.trim().is_empty() {
        return Ok("{}".into());
    }
    match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(serde_json::Value::Object(_)) => Ok(arguments.clone()),
        Ok(other) => Err(format!("they are {}", kind_of(&other))),
        Err(error) => Err(error.to_string()),
    }
}

fn kind_of(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Array(_) => "an array",
        serde_json::Value::Object(_) => "an object",
    }
}
