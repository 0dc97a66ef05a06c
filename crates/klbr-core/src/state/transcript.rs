//! The transcript: the messages after the prefix, append-only within a generation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::LEAST_CONTEXT;
use crate::context::reasoning;
use crate::hash::Hash;
use crate::model::{Message, Usage};

/// A prefix and what follows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Transcript {
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<str>,
    /// The actions that the system prompt tells of as functions of cells.
    #[serde(default)]
    pub(crate) functions: Vec<Arc<str>>,
    /// The model of the last turn, whose cache the transcript is warm in.
    pub(crate) model: Option<Arc<str>>,
    /// The effort of the last turn, which a template may write in front of everything.
    pub(crate) effort: Option<Arc<str>>,
    messages: Vec<Message>,
    /// How many of the messages a provider has taken: they stood in a request that was answered.
    accepted: usize,
    chain: Hash,
    bytes: usize,
    /// Tokens per 1,000 bytes, as the provider last counted a request.
    pub(crate) tokens_per_kb: Option<u32>,
    /// The context of a model as its provider told it in a refusal.
    limit: Option<(Arc<str>, u64)>,
}

/// What a token is taken for before a provider has counted: 3.5 bytes.
const DEFAULT_TOKENS_PER_KB: u32 = 286;

impl Transcript {
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The hash chain over the messages.
    pub(crate) fn chain(&self) -> Hash {
        self.chain
    }

    /// The bytes of text in messages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.chain = self.chain.then(&message);
        self.bytes += size(&message);
        self.messages.push(message);
    }

    /// How many of the messages a provider has taken.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted
    }

    /// Notes that a provider has taken everything that stands here.
    pub(crate) fn accept(&mut self) {
        self.accepted = self.messages.len();
    }

    /// Replaces the messages: a declared break. The first `accepted` are not to be doubted.
    pub(crate) fn replace(&mut self, messages: Vec<Message>, accepted: usize) {
        self.accepted = accepted;
        self.messages.clear();
        self.chain = Hash::default();
        self.bytes = 0;
        for message in messages {
            self.push(message);
        }
    }

    /// The estimated tokens of a request with everything that stands here, and of `extra` bytes more.
    pub(crate) fn tokens(&self, extra: usize) -> u64 {
        let bytes = self.system.len() + self.tools.len() + self.bytes + extra;
        let per_kb = self.tokens_per_kb.unwrap_or(DEFAULT_TOKENS_PER_KB);
        (bytes as u64 * u64::from(per_kb)).div_ceil(1000)
    }

    /// Learns what a token is from a request that a provider counted. Absurd counts teach nothing: none is so good
    /// that the estimate falls below half of the usual one, past which a context would overflow unforeseen.
    pub(crate) fn calibrate(&mut self, usage: Usage) {
        let bytes = (self.system.len() + self.tools.len() + self.bytes) as u64;
        if bytes < 200 {
            return;
        }
        // Some count what they had cached apart.
        let cached = usage.cached.filter(|cached| *cached > usage.input).unwrap_or(0);
        let per_kb = usage.input.saturating_add(cached).saturating_mul(1000) / bytes;
        if (u64::from(DEFAULT_TOKENS_PER_KB / 2)..=1_000).contains(&per_kb) {
            self.tokens_per_kb = Some(per_kb as u32);
        }
    }

    /// Learns how large the context is from a refusal of the last turn's model. Absurd limits teach nothing.
    pub(crate) fn learn_limit(&mut self, limit: Option<u64>) {
        if let (Some(limit), Some(model)) = (limit.filter(|limit| *limit >= LEAST_CONTEXT), &self.model) {
            self.limit = Some((model.clone(), limit));
        }
    }

    /// The context of a model as far as a refusal has told it.
    pub(crate) fn limit(&self, model: &str) -> Option<u64> {
        self.limit.as_ref().filter(|(of, _)| &**of == model).map(|(_, limit)| *limit)
    }

    /// The messages as a request carries them: reasoning goes back during its turn and not after.
    pub(crate) fn to_request(&self) -> Vec<Message> {
        reasoning::carried(&self.messages)
    }

    /// The request for a summary of the first `covers` messages: as the next turn of the same conversation.
    pub(crate) fn to_summary_request(&self, covers: usize, prompt: Arc<str>) -> Vec<Message> {
        let (covered, rest) = self.messages.split_at(covers.min(self.messages.len()));
        // It starts a turn only where one has begun behind the range: else reasoning stays, and the request
        // extends the one before it.
        let starts_turn = rest.iter().any(|m| matches!(m, Message::User { starts_turn: true, .. }));
        let mut messages = covered.to_vec();
        messages.push(Message::User { text: prompt, starts_turn });
        reasoning::carried(&messages)
    }

    /// How many messages stand in front of the user messages at the end.
    pub(crate) fn answered_len(&self) -> usize {
        let is_answered = |message: &Message| !matches!(message, Message::User { .. });
        self.messages.iter().rposition(is_answered).map_or(0, |last| last + 1)
    }

    /// Where the last message stands that started a turn; 0 when none did.
    pub(crate) fn last_opening(&self) -> usize {
        let opens = |message: &Message| matches!(message, Message::User { starts_turn: true, .. });
        self.messages.iter().rposition(opens).unwrap_or(0)
    }

    /// The hash chain over the first `count` messages.
    pub(crate) fn chain_over(&self, count: usize) -> Hash {
        self.messages.iter().take(count).fold(Hash::default(), Hash::then)
    }

    /// The bytes of text in the first `count` messages.
    pub(crate) fn bytes_of(&self, count: usize) -> usize {
        self.messages.iter().take(count).map(size).sum()
    }

    /// Whether a call of this id stands here.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.messages.iter().any(|message| match message {
            Message::Assistant(said) => said.calls.iter().any(|call| &*call.id == id),
            Message::User { .. } | Message::Tool { .. } => false,
        })
    }
}

fn size(message: &Message) -> usize {
    match message {
        Message::User { text, .. } | Message::Tool { text, .. } => text.len() + 8,
        Message::Assistant(said) => {
            let calls: usize = said.calls.iter().map(|c| c.name.len() + c.arguments.len() + 32).sum();
            said.text.len() + calls + 8
        }
    }
}
