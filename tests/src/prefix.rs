//! Whether one request extends the one before it in its lane (`C-PFX-1`).
//!
//! Owns the byte-wise comparison of two captured bodies. Refuses to know causes: whether a break was declared is for
//! the ledger to say. Reasoning is the only thing that a later request may leave out.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The member that may vanish from a message once its turn is over.
pub const REASONING: &str = "reasoning_content";

/// How a request extends the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// Messages that the later request has beyond the earlier one; 0 for a repetition.
    pub appended: usize,
    /// Indices of the messages that lost their reasoning, ascending.
    pub stripped: Vec<usize>,
    /// Where the first of them begins in the later body, in bytes: a provider's cache ends here.
    pub boundary: Option<usize>,
}

/// Why a request does not extend the one before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// One of the two is not a chat completion request.
    #[error("the {which} request cannot be read: {reason}")]
    Unreadable {
        /// `earlier` or `later`.
        which: &'static str,
        /// What the parser says.
        reason: String,
    },
    /// The two belong to different lanes, or the lane's model changed.
    #[error("the model changed from {before} to {after}")]
    Model {
        /// The earlier name, as JSON.
        before: String,
        /// The later name, as JSON.
        after: String,
    },
    /// The tool list differs.
    #[error("the tool list differs from its byte {offset} on")]
    Tools {
        /// First differing byte within the tool list.
        offset: usize,
    },
    /// A parameter that a chat template reads differs.
    #[error("the parameter {name}, which the template reads, differs")]
    Template {
        /// The parameter's name.
        name: &'static str,
    },
    /// A message differs in more than its reasoning.
    #[error("message {index} differs from its byte {offset} on (byte {at} of the body)")]
    Message {
        /// The message's index.
        index: usize,
        /// First differing byte within the message.
        offset: usize,
        /// The same place within the later body.
        at: usize,
    },
    /// The later request has fewer messages.
    #[error("the later request ends before message {index}")]
    Shorter {
        /// The first message that is missing.
        index: usize,
    },
    /// Reasoning left a message of the turn that is still open.
    #[error("message {index} lost its reasoning, though no user message follows it")]
    ReasoningLostEarly {
        /// The message's index.
        index: usize,
    },
}

/// Decides whether `after` extends `before`, message by message and byte by byte.
///
/// A message may lose its [`REASONING`] member if a user message follows it in `after`; the other bytes must stay.
pub fn extension(before: &[u8], after: &[u8]) -> Result<Extension, Break> {
    let earlier = Body::read(before, "earlier")?;
    let later = Body::read(after, "later")?;
    if text(earlier.model) != text(later.model) {
        return Err(Break::Model { before: text(earlier.model).into(), after: text(later.model).into() });
    }
    if let Some(offset) = first_difference(text(earlier.tools), text(later.tools)) {
        return Err(Break::Tools { offset });
    }
    for (name, old, new) in [
        ("reasoning_effort", earlier.reasoning_effort, later.reasoning_effort),
        ("chat_template_kwargs", earlier.chat_template_kwargs, later.chat_template_kwargs),
    ] {
        if text(old) != text(new) {
            return Err(Break::Template { name });
        }
    }
    let mut extension = Extension::default();
    for (index, old) in earlier.messages.iter().enumerate() {
        let Some(new) = later.messages.get(index) else { return Err(Break::Shorter { index }) };
        if old.get() == new.get() {
            continue;
        }
        let bare = without_member(old.get(), REASONING);
        let expected = bare.as_deref().unwrap_or(old.get());
        let start = new.get().as_ptr() as usize - after.as_ptr() as usize;
        if let Some(offset) = first_difference(expected, new.get()) {
            return Err(Break::Message { index, offset, at: start + offset });
        }
        if !later.messages[index + 1..].iter().any(|message| role(message) == Some("user")) {
            return Err(Break::ReasoningLostEarly { index });
        }
        extension.stripped.push(index);
        extension.boundary.get_or_insert(start);
    }
    extension.appended = later.messages.len() - earlier.messages.len();
    Ok(extension)
}

/// Judges the requests of one lane in order; the index of a break is that of the later request.
pub fn check_lane<'a>(bodies: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Extension>, (usize, Break)> {
    let mut extensions = Vec::new();
    let mut before = None;
    for (index, body) in bodies.into_iter().enumerate() {
        if let Some(before) = before {
            extensions.push(extension(before, body).map_err(|broken| (index, broken))?);
        }
        before = Some(body);
    }
    Ok(extensions)
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_effort: Option<&'a RawValue>,
    #[serde(borrow)]
    chat_template_kwargs: Option<&'a RawValue>,
}

impl<'a> Body<'a> {
    fn read(bytes: &'a [u8], which: &'static str) -> Result<Body<'a>, Break> {
        serde_json::from_slice(bytes).map_err(|error| Break::Unreadable { which, reason: error.to_string() })
    }
}

fn text(value: Option<&RawValue>) -> &str {
    value.map_or("", RawValue::get)
}

fn role(message: &RawValue) -> Option<&str> {
    #[derive(Deserialize)]
    struct Role<'a> {
        role: &'a str,
    }
    serde_json::from_str::<Role<'_>>(message.get()).ok().map(|message| message.role)
}

fn first_difference(a: &str, b: &str) -> Option<usize> {
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (common < a.len().max(b.len())).then_some(common)
}

/// The object's text without one member and the comma that went with it; every other byte stays.
fn without_member(object: &str, name: &str) -> Option<String> {
    let Members(members) = serde_json::from_str(object).ok()?;
    let position = members.iter().position(|(key, _)| key == name)?;
    let end = |at: usize| {
        members[at].1.get().as_ptr() as usize - object.as_ptr() as usize + members[at].1.get().len()
    };
    let (from, to) = match position {
        0 if members.len() == 1 => (1, object.len() - 1),
        0 => (1, end(0) + object[end(0)..].find(',')? + 1),
        _ => (end(position - 1), end(position)),
    };
    Some(format!("{}{}", &object[..from], &object[to..]))
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Collect).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SYSTEM: &str = r#"{"role":"system","content":"be"}"#;
    const ASK: &str = r#"{"role":"user","content":"ask"}"#;
    const THOUGHT: &str = r#"{"role":"assistant","reasoning_content":"a, b","content":"said"}"#;
    const BARE: &str = r#"{"role":"assistant","content":"said"}"#;

    fn body(messages: &[&str]) -> String {
        format!(r#"{{"model":"m","messages":[{}],"tools":[1]}}"#, messages.join(","))
    }

    fn judge(before: &[&str], after: &[&str]) -> Result<Extension, Break> {
        extension(body(before).as_bytes(), body(after).as_bytes())
    }

    #[test]
    fn appended_messages_extend() {
        assert_eq!(judge(&[SYSTEM, ASK], &[SYSTEM, ASK, BARE, ASK]).unwrap().appended, 2);
        assert_eq!(judge(&[SYSTEM, ASK], &[SYSTEM, ASK]).unwrap(), Extension::default());
    }

    #[test]
    fn reasoning_may_go_once_a_user_message_follows() {
        let extension = judge(&[SYSTEM, ASK, THOUGHT], &[SYSTEM, ASK, BARE, ASK]).unwrap();
        assert_eq!((extension.appended, &extension.stripped[..]), (1, &[2][..]));
        let after = body(&[SYSTEM, ASK, BARE, ASK]);
        assert!(after[extension.boundary.unwrap()..].starts_with(BARE));
        assert_eq!(judge(&[ASK, THOUGHT], &[ASK, BARE]).unwrap_err(), Break::ReasoningLostEarly { index: 1 });
    }

    #[test]
    fn any_other_change_is_found_with_its_place() {
        let changed = r#"{"role":"user","content":"asK"}"#;
        let Err(Break::Message { index, offset, at }) = judge(&[SYSTEM, ASK], &[SYSTEM, changed, ASK]) else {
            panic!("not a break of a message")
        };
        assert_eq!((index, offset), (1, 28));
        assert_eq!(&body(&[SYSTEM, changed, ASK])[at..at + 1], "K");
        assert_eq!(judge(&[SYSTEM, ASK], &[SYSTEM]).unwrap_err(), Break::Shorter { index: 1 });
    }

    #[test]
    fn spaces_keys_and_appearing_reasoning_are_changes() {
        let spaced = r#"{"role": "assistant","content":"said"}"#;
        assert!(matches!(
            judge(&[THOUGHT, ASK], &[spaced, ASK]),
            Err(Break::Message { index: 0, offset: 8, .. })
        ));
        let swapped = r#"{"content":"said","role":"assistant"}"#;
        assert!(matches!(
            judge(&[BARE, ASK], &[swapped, ASK]),
            Err(Break::Message { index: 0, offset: 2, .. })
        ));
        assert!(matches!(judge(&[BARE, ASK], &[THOUGHT, ASK]), Err(Break::Message { index: 0, .. })));
    }

    #[test]
    fn tools_model_and_template_parameters_belong_to_the_prefix() {
        let plain = body(&[ASK]);
        let judge = |after: String| extension(plain.as_bytes(), after.as_bytes()).unwrap_err();
        assert_eq!(judge(plain.replace("[1]", "[2]")), Break::Tools { offset: 1 });
        assert!(matches!(judge(plain.replace("\"m\"", "\"n\"")), Break::Model { .. }));
        assert_eq!(
            judge(plain.replace(r#""tools""#, r#""reasoning_effort":"high","tools""#)),
            Break::Template { name: "reasoning_effort" }
        );
        assert!(matches!(judge("{".into()), Break::Unreadable { which: "later", .. }));
    }

    #[test]
    fn a_member_is_cut_wherever_it_stands() {
        let cut = |object: &str| without_member(object, "b");
        assert_eq!(cut(r#"{"a":1, "b" : "x,y" ,"c":2}"#).unwrap(), r#"{"a":1 ,"c":2}"#);
        assert_eq!(cut(r#"{"b":[1,2] , "c":2}"#).unwrap(), r#"{ "c":2}"#);
        assert_eq!(cut(r#"{"b":1}"#).unwrap(), "{}");
        assert_eq!(cut(r#"{"a":{"b":1}}"#), None);
    }

    #[test]
    fn a_lane_names_the_request_that_breaks_it() {
        let bodies = [body(&[ASK]), body(&[ASK, BARE, ASK]), body(&[BARE, ASK])];
        let (index, broken) = check_lane(bodies.iter().map(|body| body.as_bytes())).unwrap_err();
        assert_eq!(index, 2);
        assert!(matches!(broken, Break::Message { index: 0, .. }));
        assert_eq!(check_lane(bodies[..2].iter().map(|body| body.as_bytes())).unwrap().len(), 1);
    }

    /// An assistant message with its reasoning, and the same bytes without.
    fn thought() -> impl Strategy<Value = (String, String)> {
        (any::<String>(), any::<String>(), 0..3_usize).prop_map(|(reasoning, said, place)| {
            let quoted = |text: &str| serde_json::to_string(text).unwrap();
            let mut members =
                vec![r#""role":"assistant""#.to_owned(), format!(r#""content": {}"#, quoted(&said))];
            let bare = format!("{{{}}}", members.join(","));
            members.insert(place, format!(r#""{REASONING}":{}"#, quoted(&reasoning)));
            (format!("{{{}}}", members.join(",")), bare)
        })
    }

    proptest! {
        #[test]
        fn stripped_reasoning_extends_and_any_changed_byte_does_not(
            thoughts in prop::collection::vec(thought(), 1..4),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let whole: Vec<&str> = thoughts.iter().map(|(whole, _)| whole.as_str()).collect();
            let bare: Vec<&str> = thoughts.iter().map(|(_, bare)| bare.as_str()).collect();
            let (before, kept) = (body(&whole), body(&[&bare[..], &[ASK]].concat()));
            let all = (0..thoughts.len()).collect::<Vec<_>>();
            prop_assert_eq!(extension(before.as_bytes(), kept.as_bytes()).unwrap().stripped, all);

            let (from, length) = (kept.find('[').unwrap() + 1, bare.join(",").len());
            let mut changed = kept.clone().into_bytes();
            let place = from + at.index(length);
            prop_assume!(changed[place] != byte);
            // A space beside a comma between messages belongs to no message.
            prop_assume!(!byte.is_ascii_whitespace());
            changed[place] = byte;
            prop_assert!(extension(before.as_bytes(), &changed).is_err());
        }
    }
}
