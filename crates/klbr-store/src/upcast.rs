//! How records stay readable for ever: (kind, version, bytes) in, today's record out (`C-REC-5`).
//!
//! When a record's shape changes in a way that a default cannot bridge, its version rises and a function
//! that lifts the old JSON by one version is added to the table.

use klbr_core::record::Record;
use serde_json::Value;

use crate::error::{Outcome, damaged};

/// Lifts the JSON of one kind from one version to the next, or says what is wrong with it.
pub(crate) type Lift = fn(Value) -> Result<Value, String>;

/// The lifts of every kind, by the version that they start from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upcasters(pub(crate) &'static [(&'static str, u32, Lift)]);

/// The lifts of this release.
pub(crate) const UPCASTERS: Upcasters = Upcasters(&[]);

impl Upcasters {
    /// The version that records of this kind are written in.
    pub(crate) fn version(self, kind: &str) -> u32 {
        self.0.iter().filter(|(of, ..)| *of == kind).map(|(_, from, _)| from + 1).max().unwrap_or(1)
    }

    /// Reads a record of any version up to today's.
    pub(crate) fn read(self, kind: &str, version: u32, bytes: &[u8]) -> Outcome<Record> {
        let today = self.version(kind);
        if version > today {
            return damaged(format!(
                "a record of kind {kind:?} has version {version}, this release reads up to {today}: \
                 it was written by a newer release"
            ));
        }
        let unread = |error: serde_json::Error| damaged(format!("a record of kind {kind:?}: {error}"));
        if version == today {
            return serde_json::from_slice(bytes).or_else(unread);
        }
        let mut value = match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => value,
            Err(error) => return unread(error),
        };
        for step in version..today {
            let Some((_, _, lift)) = self.0.iter().find(|(of, from, _)| *of == kind && *from == step) else {
                return damaged(format!("nothing lifts a record of kind {kind:?} from version {step}"));
            };
            value = match lift(value) {
                Ok(value) => value,
                Err(error) => return damaged(format!("a record of kind {kind:?}, version {step}: {error}")),
            };
        }
        serde_json::from_value(value).or_else(unread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klbr_core::ids::EventId;

    const FAKE: Upcasters = Upcasters(&[
        ("consumed", 1, |value| {
            let id = value.get("id").cloned().ok_or("it has no id")?;
            Ok(serde_json::json!({ "kind": "consumed", "number": id }))
        }),
        ("consumed", 2, |mut value| {
            value["event"] = value["number"].take();
            Ok(value)
        }),
    ]);

    #[test]
    fn old_versions_are_lifted_step_by_step() {
        assert_eq!((FAKE.version("consumed"), FAKE.version("reset")), (3, 1));
        let bodies = [r#"{"kind":"consumed","id":7}"#, r#"{"kind":"consumed","number":7}"#];
        for (version, body) in (1..).zip(bodies) {
            let record = FAKE.read("consumed", version, body.as_bytes()).unwrap();
            assert_eq!(record, Record::Consumed { event: EventId(7) });
        }
        assert_eq!(FAKE.read("reset", 1, br#"{"kind":"reset"}"#).unwrap(), Record::Reset);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let why = |version, body: &str| {
            let fail = FAKE.read("consumed", version, body.as_bytes()).unwrap_err();
            klbr_core::runtime::store::StoreError::from(fail).to_string()
        };
        assert!(why(4, "{}").contains("has version 4, this release reads up to 3"));
        assert!(why(1, "{}").contains("version 1: it has no id"));
        assert!(why(3, "[").contains("a record of kind \"consumed\": EOF"));
        assert!(why(3, r#"{"kind":"consumed"}"#).contains("missing field `event`"));
    }
}
