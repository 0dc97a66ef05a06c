//! Ids and moments as Discord writes them.
//!
//! Owns the making of ids in the order of creation and the exact form of a timestamp. Refuses other spellings: an id is a
//! string of digits on the wire.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first millisecond of 2015, from which Discord counts.
const EPOCH_MS: u64 = 1_420_070_400_000;

/// An id: milliseconds since 2015, then a worker, a process and a count. Greater is younger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snowflake(pub u64);

impl Snowflake {
    /// When it was made, in milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        (self.0 >> 22) + EPOCH_MS
    }

    /// When it was made, as Discord writes moments.
    pub fn timestamp(self) -> String {
        timestamp(self.unix_ms())
    }

    /// The least id that could be made at this moment, in milliseconds since 1970.
    pub fn at(unix_ms: u64) -> Snowflake {
        Snowflake(unix_ms.saturating_sub(EPOCH_MS) << 22)
    }
}

impl fmt::Display for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Snowflake {
    type Err = String;

    fn from_str(text: &str) -> Result<Snowflake, String> {
        text.parse().map(Snowflake).map_err(|_| format!("{text:?} is no snowflake"))
    }
}

impl Serialize for Snowflake {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Snowflake {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Snowflake, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Spelling {
            Text(String),
            Number(u64),
        }
        match Spelling::deserialize(deserializer)? {
            Spelling::Text(text) => text.parse().map_err(serde::de::Error::custom),
            Spelling::Number(number) => Ok(Snowflake(number)),
        }
    }
}

/// Milliseconds since 1970, now.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// A moment in the only form that Discord sends: `2026-02-27T23:56:48.287000+00:00`.
pub(super) fn timestamp(unix_ms: u64) -> String {
    let at = Timestamp::from_millisecond(unix_ms as i64).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

/// What hands out ids, each greater than the one before it.
#[derive(Debug, Default)]
pub(super) struct Source {
    last: u64,
}

impl Source {
    /// The next id.
    pub(super) fn next(&mut self) -> Snowflake {
        const WORKER: u64 = 1 << 17;
        let fresh = Snowflake::at(now_ms()).0 | WORKER;
        // Within a millisecond, or after a clock that went back, the count goes on from the last one.
        self.last = fresh.max(self.last + 1);
        Snowflake(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_six_digits_and_an_offset() {
        assert_eq!(timestamp(1_772_236_608_287), "2026-02-27T23:56:48.287000+00:00");
        // The example of Discord's reference.
        assert_eq!(Snowflake(175_928_847_299_117_063).timestamp(), "2016-04-30T11:18:25.796000+00:00");
    }

    #[test]
    fn ids_only_grow() {
        let mut source = Source::default();
        let ids: Vec<Snowflake> = (0..10_000).map(|_| source.next()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
