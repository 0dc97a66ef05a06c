//! Ids as Discord has them.
//!
//! Owns the newtypes that stand in this crate's public surface, and the instant that an id carries.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use klbr_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use twilight_model::id::Id;
use twilight_model::id::marker::GenericMarker;
use twilight_util::snowflake::Snowflake as _;

/// The bits of an id below its instant.
const INSTANT_SHIFT: u32 = 22;

/// Something that is not an id: not a whole number above zero.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a Discord id")]
pub struct IdError(String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(NonZeroU64);

        impl $name {
            /// The number.
            pub fn get(self) -> u64 {
                self.0.get()
            }

            /// The id of this number; none for zero.
            pub fn new(number: u64) -> Option<Self> {
                NonZeroU64::new(number).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                // A sign is no part of an id.
                let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                digits
                    .and_then(|digits| digits.parse().ok())
                    .map($name)
                    .ok_or_else(|| IdError(text.chars().take(40).collect()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

id! {
    /// The id of a channel: a text channel, a thread, a direct message.
    ChannelId
}
id! {
    /// The id of a message.
    MessageId
}
id! {
    /// The id of a user.
    UserId
}
id! {
    /// The id of a guild, which is what a server is called.
    GuildId
}
id! {
    /// The id of a role.
    RoleId
}

impl MessageId {
    /// When the message was made, by Discord's clock.
    pub fn at(self) -> Timestamp {
        Timestamp(Id::<GenericMarker>::from(self.0).timestamp())
    }

    /// The least id that a message of this instant can have, by Discord's clock.
    pub fn first_of(at: Timestamp) -> Self {
        let epoch = Id::<GenericMarker>::from(NonZeroU64::MIN).timestamp();
        let since = u64::try_from(at.0.saturating_sub(epoch)).unwrap_or(0);
        MessageId(NonZeroU64::new(since << INSTANT_SHIFT).unwrap_or(NonZeroU64::MIN))
    }

    /// The name of the message's happening, `msg:ID` (`C-EVT-1`).
    pub fn external(self) -> String {
        format!("msg:{self}")
    }

    /// Reads `msg:ID` or the bare id, as a model writes it.
    ///
    /// # Errors
    ///
    /// Fails for anything else.
    pub fn read(text: &str) -> Result<Self, IdError> {
        let text = text.trim();
        text.strip_prefix("msg:").unwrap_or(text).parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_numbers_above_zero_and_nothing_else() {
        assert_eq!("175928847299117063".parse::<MessageId>().unwrap().get(), 175_928_847_299_117_063);
        for wrong in ["", "0", "-1", "+1", "1 ", "abc", "99999999999999999999", "../../etc"] {
            assert!(wrong.parse::<ChannelId>().is_err(), "{wrong:?}");
        }
        assert_eq!(MessageId::read("msg:12"), MessageId::read(" 12 "));
        assert!(MessageId::read("item:12").is_err());
    }

    #[test]
    fn a_message_knows_its_instant() {
        let id = MessageId::new(175_928_847_299_117_063).unwrap();
        assert_eq!(id.at(), Timestamp(1_462_015_105_796));
        let first = MessageId::first_of(id.at());
        assert!(first <= id && first.at() == id.at());
        assert!(MessageId::first_of(Timestamp(0)).get() == 1);
    }
}
