//! Fields of a JSON object, taken leniently.

use std::str::FromStr;

use serde_json::Value;

/// Takes fields out of a JSON value; a field of another type counts as missing.
pub(crate) trait Read {
    /// A text.
    fn text(&self, key: &str) -> Option<&str>;
    /// A text, empty when it is missing.
    fn words(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().to_owned()
    }
    /// A text that is not blank.
    fn name(&self, key: &str) -> Option<String> {
        self.text(key).filter(|text| !text.trim().is_empty()).map(str::to_owned)
    }
    /// An id, written as a text or as a number.
    fn id<T: FromStr>(&self, key: &str) -> Option<T>;
    /// A truth, false when it is missing.
    fn truth(&self, key: &str) -> bool;
    /// A whole number.
    fn number(&self, key: &str) -> Option<u64>;
    /// The elements of a list, none when it is missing.
    fn list(&self, key: &str) -> &[Value];
    /// A nested object.
    fn object(&self, key: &str) -> Option<&Value>;
    /// What each element of a list reads as; those that cannot be read are left out.
    fn each<T>(&self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        self.list(key).iter().filter_map(read).collect()
    }
}

impl Read for Value {
    fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    fn id<T: FromStr>(&self, key: &str) -> Option<T> {
        id(self.get(key)?)
    }

    fn truth(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn object(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| value.is_object())
    }
}

/// An id, written as a text or as a number.
pub(crate) fn id<T: FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}
