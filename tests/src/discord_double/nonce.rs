//! Nonces, and for how long they are known.
//!
//! Owns the memory of which message came with which nonce. Refuses to keep it in the message: Discord's history has
//! no nonces.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::settings::{NonceScope, Settings};
use super::snowflake::Snowflake;

/// The longest nonce, in characters.
pub(super) const LONGEST: usize = 25;

/// The bot's nonces; nobody else has any.
#[derive(Debug, Default)]
pub(super) struct Nonces {
    known: HashMap<(Option<Snowflake>, String), (Instant, Snowflake, Snowflake)>,
}

/// A nonce as text, whether it came as number or string; nothing where it is neither.
pub(super) fn text(nonce: &Value) -> Option<String> {
    match nonce {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

impl Nonces {
    fn key(settings: &Settings, channel: Snowflake, nonce: &str) -> (Option<Snowflake>, String) {
        let scope = (settings.nonce_scope == NonceScope::Channel).then_some(channel);
        (scope, nonce.to_owned())
    }

    /// The message that came with a nonce within the window, as channel and id.
    pub(super) fn get(
        &mut self,
        settings: &Settings,
        channel: Snowflake,
        nonce: &str,
    ) -> Option<(Snowflake, Snowflake)> {
        let window = Duration::from_millis(settings.nonce_ms);
        let (at, channel, id) = self.known.get(&Nonces::key(settings, channel, nonce))?;
        (at.elapsed() < window).then_some((*channel, *id))
    }

    pub(super) fn insert(&mut self, settings: &Settings, channel: Snowflake, nonce: &str, id: Snowflake) {
        let window = Duration::from_millis(settings.nonce_ms);
        if self.known.len() > 10_000 {
            self.known.retain(|_, (at, ..)| at.elapsed() < window);
        }
        self.known.insert(Nonces::key(settings, channel, nonce), (Instant::now(), channel, id));
    }
}
