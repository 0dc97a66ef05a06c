//! The identities that the core gives out: per-agent counters, never reused (`C-ID-1`).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The id after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

counter!(
    /// The position of a record in its agent's history; the first is 1.
    Seq,
    ""
);
counter!(
    /// One admitted event.
    EventId,
    "E"
);
counter!(
    /// One frame.
    FrameId,
    "F"
);
counter!(
    /// One turn.
    TurnId,
    "T"
);
counter!(
    /// One made prefix: a system prompt and a tool list.
    Generation,
    "G"
);
counter!(
    /// One activation of policy and instructions.
    Epoch,
    "epoch "
);
counter!(
    /// Ties an answer to the command that asked for it; lives only as long as the process.
    Fence,
    "fence "
);

/// One sampling within a turn, written `turn.step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// The turn.
    pub turn: TurnId,
    /// The step's number within the turn, from 1.
    pub number: u32,
}

/// One action, written `turn.step.n`; a call made inside a cell is `turn.step.n.m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId {
    /// The step whose reply asked for it.
    pub step: StepId,
    /// Its number among the step's calls, from 1.
    pub number: u32,
    /// Its number within the cell that made it, from 1; zero for a call of the reply itself.
    pub inner: u32,
}

impl StepId {
    /// The action that the step's `number`-th call is, from 1.
    pub fn action(self, number: u32) -> ActionId {
        ActionId { step: self, number, inner: 0 }
    }
}

impl ActionId {
    /// Whether another action made it.
    pub fn is_inner(self) -> bool {
        self.inner > 0
    }

    /// The action of the reply that it belongs to: the one that made it, or itself.
    pub fn outer(self) -> ActionId {
        ActionId { inner: 0, ..self }
    }

    /// The `number`-th call that it makes, from 1.
    pub fn call(self, number: u32) -> ActionId {
        ActionId { inner: number, ..self }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn.0, self.number)
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.step, self.number)?;
        if self.inner > 0 {
            write!(f, ".{}", self.inner)?;
        }
        Ok(())
    }
}

/// A text that is not the id it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct IdError {
    text: String,
    expected: &'static str,
}

impl FromStr for StepId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError { text: text.to_owned(), expected: "a step's id like 4.2" };
        let (turn, number) = text.split_once('.').ok_or_else(error)?;
        Ok(StepId {
            turn: TurnId(turn.parse().map_err(|_| error())?),
            number: number.parse().map_err(|_| error())?,
        })
    }
}

impl FromStr for ActionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError { text: text.to_owned(), expected: "an action's id like 4.2.1" };
        let parts: Vec<u64> =
            text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| error())?;
        let small = |n: u64| u32::try_from(n).map_err(|_| error());
        match parts[..] {
            [turn, step, number] => {
                Ok(StepId { turn: TurnId(turn), number: small(step)? }.action(small(number)?))
            }
            [turn, step, number, inner] => Ok(ActionId {
                inner: small(inner)?,
                ..StepId { turn: TurnId(turn), number: small(step)? }.action(small(number)?)
            }),
            _ => Err(error()),
        }
    }
}

macro_rules! serde_as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

serde_as_text!(StepId);
serde_as_text!(ActionId);

/// An agent's name: its identity in the store, the API and the home.
///
/// Lowercase ASCII letters, digits, `-` and `_`, beginning with a letter, at most 64 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AgentName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let legal = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
        if text.len() <= 64 && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(legal) {
            Ok(AgentName(text.into()))
        } else {
            Err(IdError {
                text: text.to_owned(),
                expected: "an agent's name (a-z, 0-9, - and _, beginning with a letter, at most 64)",
            })
        }
    }
}

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_ids_read_back_as_written() {
        for text in ["1.1.1", "4.2.17", "4.2.1.3"] {
            assert_eq!(text.parse::<ActionId>().unwrap().to_string(), text);
        }
        for text in ["", "1", "1.2", "1.2.x", "1.2.3.4.5", "1.2.-3", "1..3"] {
            assert!(text.parse::<ActionId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn agent_names_are_refused_with_the_rule() {
        assert!("ada-2".parse::<AgentName>().is_ok());
        for text in ["", "Ada", "2a", "a/b", "..", "ä", &"a".repeat(65)] {
            let error = text.parse::<AgentName>().unwrap_err().to_string();
            assert!(error.contains("beginning with a letter"), "{error}");
        }
    }
}
