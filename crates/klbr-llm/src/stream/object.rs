//! A JSON object read field by field, so that one strange field costs nothing but itself.
//!
//! Owns access to raw fields. Refuses to build a tree: values stay the bytes that the server wrote until a
//! reader asks for them in one type, and a value of another type reads as absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// The fields of one object, in their order. Of equal names the last counts.
#[derive(Debug, Default)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Reads an object; `None` when the text is not one.
    pub(crate) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The value of a field as it was written; absent when missing or null.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        let text = value.get();
        (text != "null").then_some(text)
    }

    /// A field that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Object<'a>> {
        Object::read(self.raw(name)?)
    }

    /// The items of a field that is an array, raw.
    pub(crate) fn array(&self, name: &str) -> Option<Vec<&'a str>> {
        array(self.raw(name)?)
    }

    /// A field that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        string(self.raw(name)?)
    }

    /// A field that is a string and not empty.
    pub(crate) fn filled(&self, name: &str) -> Option<String> {
        self.string(name).filter(|text| !text.is_empty())
    }

    /// A field that is a whole number, however it is spelt: `7`, `7.0`, `"7"`.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let raw = self.raw(name)?;
        let text = raw.trim_matches('"');
        text.parse().ok().or_else(|| {
            let number: f64 = text.parse().ok()?;
            // Exact: every such number is below 2^53.
            (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
        })
    }

    /// Every field with its raw value.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.get()))
    }
}

/// The items of an array, raw; `None` when the text is not an array.
pub(crate) fn array(json: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// A JSON string's text. Half of a surrogate pair reads as the replacement character.
pub(crate) fn string(json: &str) -> Option<String> {
    if !json.starts_with('"') {
        return None;
    }
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return Some(text);
    }
    let Bytes(bytes) = serde_json::from_str(json).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BytesVisitor;
        impl Visitor<'_> for BytesVisitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(BytesVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    fields.push((key, map.next_value()?));
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_fields_read_as_absent() {
        let object = Object::read(r#"{"a":null,"b":[1],"c":"x","n":7.0,"m":"8","k":-1,"c":"y"}"#).unwrap();
        assert_eq!(object.raw("a"), None);
        assert_eq!(object.string("b"), None);
        assert_eq!(object.string("c").as_deref(), Some("y"));
        assert_eq!((object.count("n"), object.count("m"), object.count("k")), (Some(7), Some(8), None));
        assert!(Object::read("[]").is_none());
        assert!(Object::read(r#"{"a":"#).is_none());
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(string(r#""a\ud83d""#).as_deref(), Some("a\u{fffd}\u{fffd}\u{fffd}"));
        assert_eq!(string(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
    }
}
