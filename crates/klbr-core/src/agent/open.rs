//! Between turns: what wakes the agent, and how a turn begins.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Agent;
use super::frame::{self, Selection};
use super::live::{Batch, Draft, Loading, Part, Plan, Purpose, Then};
use super::render;
use crate::config::ChannelSettings;
use crate::context::prefix::Facts;
use crate::event::{Body, Conversation, Header, Priority, SourceKind};
use crate::ids::Fence;
use crate::input::Command;
use crate::policy::{Question, Slot};
use crate::record::{Record, TurnCause, WaitEnd};
use crate::state::Phase;
use crate::time::Timestamp;

impl Agent {
    pub(super) fn advance_rest(&mut self) -> bool {
        let is_opening = |then| matches!(then, Then::Open(_) | Then::Select(_));
        let opening = self.live.deciding.values().any(|pending| is_opening(pending.then));
        if self.live.loading.is_some() || opening {
            return false;
        }
        if self.state.compaction.requested.is_some() {
            return self.advance_summary();
        }
        if let Some(by) = self.waker() {
            self.wake(&by);
            return true;
        }
        if self.gather_ambient() {
            return true;
        }
        match &self.state.phase {
            Phase::Waiting(wait) if wait.until <= self.now() => {
                self.end_wait(WaitEnd::TimedOut);
                true
            }
            Phase::Waiting(_) => self.advance_summary(),
            Phase::Resting { timed_out: true, .. } => {
                self.open(TurnCause::WaitTimedOut);
                true
            }
            Phase::Resting { quiet, .. } => {
                let quiet = *quiet;
                self.advance_summary() || (!quiet && self.advance_idle())
            }
            Phase::Turn(_) => false,
        }
    }

    /// What ends a wait or a rest at once: words of the operator, or something addressed to the agent.
    fn waker(&self) -> Option<Arc<str>> {
        let first = |priority| self.state.inbox.waiting(priority).values().next();
        let header = first(Priority::Operator).or_else(|| first(Priority::Directed))?;
        Some(source_name(header))
    }

    fn wake(&mut self, by: &str) {
        self.live.batch = Batch::New;
        if matches!(self.state.phase, Phase::Waiting(_)) {
            self.end_wait(WaitEnd::Woken { by: by.into() });
        }
        self.open(TurnCause::Events);
    }

    /// Lets ambient events gather, then asks whether they wake the agent (`C-YLD-1`).
    fn gather_ambient(&mut self) -> bool {
        let waiting = self.state.inbox.waiting(Priority::Ambient).len();
        match self.live.batch {
            Batch::New if waiting > 0 => {
                self.live.batch = Batch::AskingDelay;
                let configured_ms = self.batch_delay().as_millis() as u64;
                self.ask(Question::BatchDelay { waiting, configured_ms }, Then::DelayBatch);
            }
            Batch::Until(due) if due <= self.now() => {
                self.live.batch = Batch::AskingWake;
                let configured = self.ambient_channels().iter().any(|channel| channel.wakes_on_ambient);
                self.ask(Question::Wake { waiting, configured }, Then::Wake);
            }
            Batch::Wakes => {
                let first = self.state.inbox.waiting(Priority::Ambient).values().next().map(source_name);
                self.wake(&first.unwrap_or_default());
            }
            Batch::New | Batch::AskingDelay | Batch::Until(_) | Batch::AskingWake | Batch::LeftAlone => {
                return false;
            }
        }
        true
    }

    /// What the sources of the waiting chatter say of themselves; each source once.
    fn ambient_channels(&self) -> Vec<ChannelSettings> {
        let waiting = self.state.inbox.waiting(Priority::Ambient).values();
        let instances: BTreeSet<&Arc<str>> = waiting.map(|header| &header.source.instance).collect();
        let plain =
            || ChannelSettings { batch_delay: self.config.limits.batch_delay, ..ChannelSettings::default() };
        instances.iter().map(|&one| self.config.channels.get(one).cloned().unwrap_or_else(plain)).collect()
    }

    /// How long the waiting chatter is gathered: as long as the most impatient of its sources says.
    fn batch_delay(&self) -> Duration {
        let delays = self.ambient_channels().into_iter().map(|channel| channel.batch_delay);
        delays.min().unwrap_or(self.config.limits.batch_delay)
    }

    pub(super) fn oldest_ambient(&self) -> Option<Timestamp> {
        self.state.inbox.waiting(Priority::Ambient).values().next().map(|header| header.at)
    }

    /// Wakes an agent that yielded without a wait, at growing distances (`C-YLD-4`).
    fn advance_idle(&mut self) -> bool {
        match self.live.idle_at {
            None if !self.live.is_asking(Then::ScheduleIdle) => {
                self.ask(Question::Idle { yields: self.state.yields }, Then::ScheduleIdle);
                true
            }
            Some(due) if due <= self.now() => {
                self.live.idle_at = None;
                self.open(TurnCause::Idle);
                true
            }
            None | Some(_) => false,
        }
    }

    pub(super) fn schedule_idle(&mut self, delay: Duration) {
        if let Phase::Resting { since, .. } = self.state.phase {
            self.live.idle_at = Some(since + delay);
        }
    }

    /// Begins a turn: first its plan, then what it shows, then the turn itself.
    pub(super) fn open(&mut self, cause: TurnCause) {
        let turn = self.state.last_turn.next();
        let (model, effort) = (self.config.model.clone(), self.config.effort.clone());
        self.ask(Question::Plan { turn, model, effort }, Then::Open(cause));
    }

    /// Has policy choose what a turn opens with, where that slot has an owner. The operator's words are not chosen.
    pub(super) fn choose(&mut self, cause: TurnCause) {
        let events = match cause {
            TurnCause::Events if self.is_bound(Slot::ContextSelect) => self.candidates(),
            TurnCause::Events | TurnCause::WaitTimedOut | TurnCause::Idle => Vec::new(),
        };
        match events.is_empty() {
            true => self.load(Purpose::Open(cause)),
            false => self.ask(Question::ContextSelect { events }, Then::Select(cause)),
        }
    }

    /// Loads what is needed to go on for a purpose, if anything is.
    pub(super) fn load(&mut self, purpose: Purpose) {
        let selection = match purpose {
            Purpose::Open(TurnCause::Events) => self.select(),
            Purpose::Add => self.select_addition(),
            Purpose::Open(TurnCause::WaitTimedOut | TurnCause::Idle) | Purpose::Prefix => {
                Selection::default()
            }
        };
        self.live.chosen = None;
        if purpose == Purpose::Open(TurnCause::Events) && selection.is_empty() {
            // What was to be shown was withdrawn meanwhile.
            self.live.plan = None;
            return;
        }
        let model = self.model_at_hand();
        let fence = self.fence();
        let loading = Loading { fence, selection, purpose, draft: None };
        if loading.selection.events.is_empty() && self.prefix_cause(&model).is_none() {
            // Where nothing is loaded, nothing is known to have changed.
            let facts = self.state.prefix.known().clone();
            return self.draft(loading, Vec::new(), facts);
        }
        self.command(Command::Load { fence, events: loading.selection.bodies() });
        self.live.loading = Some(loading);
    }

    pub(super) fn handle_loaded(&mut self, fence: Fence, bodies: Vec<Body>, facts: Facts) {
        match self.live.loading.take_if(|loading| loading.fence == fence) {
            Some(loading) => self.draft(loading, bodies, facts),
            None => self.drop_late("bodies for a frame"),
        }
    }

    /// Everything is there to make a prefix and a frame of.
    fn draft(&mut self, loading: Loading, bodies: Vec<Body>, facts: Facts) {
        let facts = Facts { date: render::date(self.now()), ..facts };
        let draft = Draft { bodies, facts, system: None, frame: None, target: None, has_prefix: false };
        self.make(Loading { draft: Some(Box::new(draft)), ..loading });
    }

    /// Policy has worded what is being made; dropped when that is no longer being made.
    pub(super) fn worded(&mut self, fence: Fence, part: Part, text: Option<Arc<str>>) {
        let Some(mut loading) = self.live.loading.take_if(|loading| loading.fence == fence) else { return };
        if let Some(draft) = &mut loading.draft {
            match part {
                Part::System => draft.system = text,
                Part::Frame => draft.frame = text,
                Part::Target => draft.target = Some(text),
            }
        }
        self.make(loading);
    }

    /// Makes the prefix that is due, then the frame; each is worded by policy first, where that owns the slot.
    fn make(&mut self, mut loading: Loading) {
        let Some(mut draft) = loading.draft.take() else { return };
        let cause = self.prefix_cause(&self.model_at_hand()).filter(|_| !draft.has_prefix);
        if let Some(cause) = cause {
            let Some(system) = draft.system.take() else {
                let text = self.system_prompt(&draft.facts).into();
                return self.word(loading, draft, Part::System, Question::ContextBlocks { text });
            };
            self.make_prefix(cause, system, &draft.facts);
            draft.has_prefix = true;
        }
        let notes = match loading.purpose {
            Purpose::Prefix => return,
            Purpose::Add => None,
            Purpose::Open(_) => Some(&draft.facts),
        };
        let frame = match (loading.selection.is_empty(), draft.frame.take()) {
            (true, _) => None,
            (false, Some(frame)) => Some(frame),
            (false, None) => {
                let text = self.render(&loading.selection, &draft.bodies, notes);
                return self.word(loading, draft, Part::Frame, Question::FrameRender { text });
            }
        };
        if let Some(frame) = &frame {
            if draft.target.is_none()
                && let Some(question) = notes.and_then(|_| self.target_question(&loading.selection))
            {
                draft.frame = Some(frame.clone());
                return self.word(loading, draft, Part::Target, question);
            }
            self.make_frame(&loading.selection, frame.clone(), notes, draft.target.take());
        }
        if let Purpose::Open(cause) = loading.purpose {
            self.start_turn(cause, frame.is_some());
        }
    }

    fn word(&mut self, loading: Loading, draft: Box<Draft>, part: Part, question: Question) {
        let then = Then::Word(loading.fence, part);
        self.live.loading = Some(Loading { draft: Some(draft), ..loading });
        self.ask(question, then);
    }

    fn start_turn(&mut self, cause: TurnCause, has_frame: bool) {
        let plan = self.live.plan.take().unwrap_or_else(|| self.configured_plan());
        self.live.batch = Batch::New;
        self.live.idle_at = None;
        self.record(Record::TurnStarted {
            turn: self.state.last_turn.next(),
            cause,
            frame: has_frame.then_some(self.state.last_frame),
            epoch: self.state.epoch,
            model: plan.model,
            effort: plan.effort,
        });
    }

    /// How a frame reads: an opening one, whose note tells what changed of the facts; without facts, an addition.
    fn render(&self, selection: &Selection, bodies: &[Body], facts: Option<&Facts>) -> Arc<str> {
        let surroundings = render::Surroundings {
            interrupted_by: self.state.interrupted_by.as_deref(),
            note: facts.and_then(|facts| self.state.prefix.note(facts)),
            instructions: if facts.is_none() { Vec::new() } else { self.due_instructions(selection) },
        };
        render::frame(&self.state, selection, bodies, surroundings).into()
    }

    /// Asks where deliveries go that name no destination, where that slot has an owner and there are places.
    fn target_question(&self, selection: &Selection) -> Option<Question> {
        if !self.is_bound(Slot::DeliveryTarget) {
            return None;
        }
        let alias = |conversation: &Conversation| self.state.aliases.alias(conversation).cloned();
        let shown = frame::conversations(&selection.events);
        let conversations: Vec<Arc<str>> = shown.into_iter().filter_map(alias).collect();
        let target = frame::context(&selection.events).destination.as_ref().and_then(alias);
        (!conversations.is_empty()).then_some(Question::DeliveryTarget { conversations, target })
    }

    fn make_frame(
        &mut self,
        selection: &Selection,
        text: Arc<str>,
        facts: Option<&Facts>,
        target: Option<Option<Arc<str>>>,
    ) {
        let mut context = frame::context(&selection.events);
        if let Some(target) = target {
            let is_it =
                |conversation: &&Conversation| self.state.aliases.alias(conversation) == target.as_ref();
            let shown = frame::conversations(&selection.events);
            context.destination = shown.into_iter().filter(|_| target.is_some()).find(is_it).cloned();
        }
        for fold in &selection.folds {
            self.record(Record::Folded { events: fold.events.clone() });
        }
        self.record(Record::FrameMade {
            frame: self.state.last_frame.next(),
            addition: facts.is_none(),
            events: selection.events.iter().map(|header| header.id).collect(),
            context,
            audience: frame::audience(&selection.events),
            text,
            date: None,
            told: facts.and_then(|facts| self.state.prefix.news(facts)).map(Box::new),
        });
    }

    /// How the channels of a frame want to be used, where it is time to say so (`B-DIS-4`).
    fn due_instructions(&self, selection: &Selection) -> Vec<(&str, &str)> {
        let due = |(instance, channel): (&'_ Arc<str>, &'_ ChannelSettings)| {
            let is_its = |header: &&Header| header.source.instance == *instance;
            let count = selection.events.iter().filter(is_its).count();
            let batch = self.state.batches.get(instance).copied().unwrap_or(0);
            count > 0 && (batch.is_multiple_of(6) || count >= 5) && channel.instructions.is_some()
        };
        let channels = self.config.channels.iter().filter(|&(instance, channel)| due((instance, channel)));
        channels
            .filter_map(|(instance, channel)| Some((&**instance, channel.instructions.as_deref()?)))
            .collect()
    }

    fn configured_plan(&self) -> Plan {
        Plan { model: self.config.model.clone(), effort: self.config.effort.clone() }
    }

    /// The model that the next request goes to.
    pub(super) fn model_at_hand(&self) -> Arc<str> {
        let planned = self.live.plan.as_ref().map(|plan| &plan.model);
        let running = self.state.turn().map(|turn| &turn.model);
        running.or(planned).unwrap_or(&self.config.model).clone()
    }

    /// The effort that the next request asks for.
    pub(super) fn effort_at_hand(&self) -> Option<Arc<str>> {
        let planned = self.live.plan.as_ref().map(|plan| &plan.effort);
        let running = self.state.turn().map(|turn| &turn.effort);
        running.or(planned).unwrap_or(&self.config.effort).clone()
    }
}

/// The source of an event as a result names it: `operator`, or the kind with the instance's name.
fn source_name(header: &Header) -> Arc<str> {
    match header.source.kind {
        SourceKind::Operator => "operator".into(),
        kind => format!("{} {}", kind.as_str(), header.source.instance).into(),
    }
}
