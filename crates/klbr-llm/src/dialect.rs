//! What servers need of a transcript beyond the common form.
//!
//! Owns the differences by name. Refuses what a server merely may not know: that is learned
//! ([`Learned`](crate::Learned)).

use std::borrow::Cow;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a server needs of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Nothing: messages are sent as they come.
    #[default]
    OpenAi,
    /// Users and assistants take turns: consecutive messages of a user are sent as one.
    Alternating,
    /// As `Alternating`; calls' ids are nine letters or digits, and no user follows a tool's result.
    Mistral,
}

impl Dialect {
    pub(crate) fn of_host(host: &str) -> Self {
        let is_mistral = host == "mistral.ai" || host.ends_with(".mistral.ai");
        if is_mistral { Dialect::Mistral } else { Dialect::OpenAi }
    }

    pub(crate) fn alternates(self) -> bool {
        self != Dialect::OpenAi
    }

    /// The form in which this dialect writes a call's id: the same for the same id.
    pub fn call_id(self, id: &str) -> Cow<'_, str> {
        const LENGTH: usize = 9;
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let fits = id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if self != Dialect::Mistral || fits {
            return Cow::Borrowed(id);
        }
        let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut digit = || {
            let digit = DIGITS[(hash % 62) as usize];
            hash /= 62;
            char::from(digit)
        };
        Cow::Owned((0..LENGTH).map(|_| digit()).collect())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.to_ascii_lowercase().as_str() {
            "openai" => Ok(Dialect::OpenAi),
            "alternating" => Ok(Dialect::Alternating),
            "mistral" => Ok(Dialect::Mistral),
            _ => Err(format!("`{name}` is none of openai, alternating, mistral")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_take_the_form_of_the_dialect() {
        assert_eq!(Dialect::OpenAi.call_id("call_1"), "call_1");
        assert_eq!(Dialect::Mistral.call_id("aB3456789"), "aB3456789");
        let ids: Vec<_> = (0..1000).map(|n| format!("call_{n}")).collect();
        let mut made: Vec<_> = ids.iter().map(|id| Dialect::Mistral.call_id(id)).collect();
        assert!(made.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
        made.sort();
        made.dedup();
        assert_eq!(made.len(), ids.len());
        assert_eq!(Dialect::Mistral.call_id("x"), Dialect::Mistral.call_id("x"));
    }

    #[test]
    fn a_host_tells_its_dialect() {
        assert_eq!(Dialect::of_host("api.mistral.ai"), Dialect::Mistral);
        assert_eq!(Dialect::of_host("notmistral.ai"), Dialect::OpenAi);
    }
}
