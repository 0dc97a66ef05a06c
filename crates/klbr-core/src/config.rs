//! What an agent is configured with: plain data, fixed for as long as the process lives but for what its host
//! finds out about the model.

pub(crate) mod toolset;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::action::{ActionSpec, Role};
use crate::context;
use crate::ids::AgentName;
use crate::model::ToolChoice;
use crate::policy::Slot;

pub use toolset::{Toolset, ToolsetError};

/// The smallest context that is believed, in tokens: less would not hold the prompt.
pub(crate) const LEAST_CONTEXT: u64 = 1_024;

/// Everything that the core is told about its agent.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agent.
    pub agent: AgentName,
    /// The soul that a new agent begins with; later it is what `soul edit` says (`C-SOUL`).
    pub soul: Arc<str>,
    /// The model's name at its provider.
    pub model: Arc<str>,
    /// The effort level, for models that offer some.
    pub effort: Option<Arc<str>>,
    /// The most tokens one reply may have.
    pub max_output_tokens: Option<u32>,
    /// Whether each reply has to call something; small models speak only when they have to.
    pub tool_choice: ToolChoice,
    /// The model's context in tokens, reply included.
    pub context_tokens: u64,
    /// The registry, in the order in which the model is told of it.
    pub actions: Vec<ActionSpec>,
    /// Which of it are tools of the model, and whether there are cells.
    pub toolset: Toolset,
    /// What each channel tells of itself, by instance name.
    pub channels: BTreeMap<Arc<str>, ChannelSettings>,
    /// The slots that have an owner, with the time each may take.
    pub bound: BTreeMap<Slot, Duration>,
    /// Actions that are listed though they cannot be used now, with what a call of one is answered.
    pub unavailable: BTreeMap<Arc<str>, Arc<str>>,
    /// How many decided questions of each slot are kept in memory, for whoever tries a candidate for policy.
    pub questions_kept: usize,
    /// How much of a result the model is shown.
    pub results: context::Limits,
    /// Limits and distances.
    pub limits: Limits,
}

impl Config {
    /// An agent with the built-in soul, no actions, and the default limits.
    pub fn new(agent: AgentName, model: impl Into<Arc<str>>) -> Self {
        Config {
            agent,
            soul: DEFAULT_SOUL.into(),
            model: model.into(),
            effort: None,
            max_output_tokens: None,
            tool_choice: ToolChoice::Auto,
            context_tokens: 32_768,
            actions: Vec::new(),
            toolset: Toolset::default(),
            channels: BTreeMap::new(),
            bound: BTreeMap::new(),
            unavailable: BTreeMap::new(),
            questions_kept: 0,
            results: context::Limits::default(),
            limits: Limits::default(),
        }
    }

    /// Takes in which model it is that answers, and how large its context is where that is known. Absurd sizes
    /// teach nothing.
    pub(crate) fn model_found(&mut self, model: &Arc<str>, context_tokens: Option<u64>) {
        self.model = model.clone();
        self.context_tokens =
            context_tokens.filter(|tokens| *tokens >= LEAST_CONTEXT).unwrap_or(self.context_tokens);
    }

    /// The action of this name.
    pub fn action(&self, name: &str) -> Option<&ActionSpec> {
        self.actions.iter().find(|spec| spec.name() == name)
    }

    /// The name of the action that speaks through this channel.
    pub fn delivery_action(&self, channel: &str) -> Option<&str> {
        self.actions.iter().find_map(|spec| match &spec.role {
            Role::Delivery { channel: instance } if &**instance == channel => Some(spec.name()),
            Role::Delivery { .. } | Role::Ordinary | Role::Wait | Role::Mark { .. } | Role::Cell => None,
        })
    }
}

/// What a channel tells the core of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSettings {
    /// The prefix of its conversations' aliases, such as `d` (`C-EVT-2`).
    pub alias_prefix: Arc<str>,
    /// How it wants to be used; goes with the 1st, 7th, 13th … frame of its messages, and with any of five or
    /// more (`B-DIS-4`).
    pub instructions: Option<Arc<str>>,
    /// How long its chatter is gathered before it may wake the agent.
    pub batch_delay: Duration,
    /// Whether its chatter wakes the agent at all; otherwise it is shown with what does.
    pub wakes_on_ambient: bool,
    /// How long an attention item that was shown stays undecided before it ages; for ever when there is none
    /// (`B-ATT-2`).
    pub pending_timeout: Option<Duration>,
}

impl Default for ChannelSettings {
    fn default() -> Self {
        ChannelSettings {
            alias_prefix: "c".into(),
            instructions: None,
            batch_delay: Duration::from_secs(8),
            wakes_on_ambient: true,
            pending_timeout: Some(Duration::from_secs(600)),
        }
    }
}

/// Who the agent is until its owner says otherwise.
pub const DEFAULT_SOUL: &str = "You are a thoughtful, curious participant. You have your own judgement and your own \
                                pace; you say little, mean what you say, and finish what you begin.";

/// Limits and distances of the loop. Durations are wall-clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of one turn before it is asked to wrap up.
    pub steps: u32,
    /// Consecutive identical failing actions before it is asked to wrap up (`B-EVENT-7`).
    pub identical_failures: u32,
    /// Consecutive denials or holds of one identical call before it is not asked for again and the turn is asked to
    /// wrap up.
    pub identical_vetoes: u32,
    /// Actions of one step that run at once. One that waits for a call of its own does not count.
    pub parallel: usize,
    /// Calls that one action may make.
    pub inner_calls: u32,
    /// Age at which an intended effect fails as stale instead of being made (`C-EFF-3`).
    pub effect_expiry: Duration,
    /// How long ambient events of no channel are gathered.
    pub batch_delay: Duration,
    /// Events of one frame, at most (`C-FRM-1`).
    pub frame_events: usize,
    /// Age at which ambient chatter is folded.
    pub fold_age: Duration,
    /// Waiting ambient events of one conversation past which the oldest are folded.
    pub fold_count: usize,
    /// The first distance between tries of a failing provider.
    pub backoff_first: Duration,
    /// The largest distance between tries.
    pub backoff_max: Duration,
    /// Permanent refusals after which a frame is dead-lettered (`C-FRM-3`).
    pub refusals: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps: 50,
            identical_failures: 3,
            identical_vetoes: 3,
            parallel: 4,
            inner_calls: 1_000,
            effect_expiry: Duration::from_secs(3600),
            batch_delay: Duration::from_secs(8),
            frame_events: 100,
            fold_age: Duration::from_secs(86_400),
            fold_count: 2_000,
            backoff_first: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            refusals: 3,
        }
    }
}
