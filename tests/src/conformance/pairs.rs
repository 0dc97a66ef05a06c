//! Objects whose order counts.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// The entries of an object of texts, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }

            // A value that a case sets to nothing may be the empty text.
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pairs, E> {
                match text {
                    "" => Ok(Pairs::default()),
                    text => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Entries)
    }
}
