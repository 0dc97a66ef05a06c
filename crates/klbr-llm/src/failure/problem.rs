//! An error as a provider describes it.
//!
//! Owns the shapes: a text, an object, a list, one inside another, a frame of a stream. Refuses what an
//! error repeats of the request, since a user's words would then be read as the provider's.

use crate::stream::object::{self, Object};

use super::{excerpt, names_error};

/// What llama-swap says when another client's request has unloaded the model.
pub(super) const UNLOADED: &str = "model unloaded";

/// Words of which every frame that is an error has one.
const HINTS: [&str; 3] = ["error", "failed", "unloaded"];
/// How deep an error is looked into.
const DEPTH: usize = 6;
/// Fields that repeat the request, or hold what the model wrote.
const REPEATED: [&str; 5] = ["input", "failed_generation", "messages", "request", "body"];
/// Fields that hold an error's message, or an error that does.
const MESSAGES: [&str; 5] = ["message", "msg", "error", "detail", "errors"];

/// What a provider says went wrong.
#[derive(Debug, Default)]
pub(super) struct Problem {
    /// The HTTP status that it names.
    pub(super) status: Option<u16>,
    /// Its message; an excerpt of the whole where it has none.
    pub(super) message: String,
    /// Its message, type, code and whatever else it says, lower-case.
    pub(super) words: String,
    /// The context's size, where it is a field of its own.
    pub(super) limit: Option<u64>,
}

impl Problem {
    /// What is known to be an error.
    pub(super) fn of_body(body: &str) -> Self {
        let is_json = Object::read(body).is_some() || object::array(body).is_some();
        let mut problem = Problem { message: message_in(body, 0).unwrap_or_default(), ..Problem::default() };
        if is_json {
            problem.collect(body, 0);
            problem.words = problem.words.to_lowercase();
        } else {
            problem.words = body.to_lowercase();
        }
        if problem.message.is_empty() {
            problem.message = excerpt(body);
        }
        problem
    }

    /// A frame of a stream, if it is an error.
    pub(super) fn of_frame(frame: &str) -> Option<Self> {
        // Nearly all frames are none, and need no second reading.
        if !HINTS.iter().any(|hint| frame.contains(hint)) {
            return None;
        }
        if frame.starts_with('[') {
            let items = object::array(frame)?;
            let first = items.first()?;
            return first.starts_with('{').then(|| Self::of_frame(first)).flatten();
        }
        let Some(object) = Object::read(frame) else {
            return frame.to_lowercase().contains(UNLOADED).then(|| Self::of_body(frame));
        };
        let kind = object.string("type").unwrap_or_default();
        let is_error = names_error(&kind) || object.string("object").as_deref() == Some("error");
        let in_choice = || {
            let choices = object.array("choices")?;
            Object::read(choices.first()?)?.raw("error")
        };
        let error = object.raw("error").or_else(in_choice).filter(|error| says_something(error));
        let in_response = || object.object("response")?.raw("error").filter(|error| says_something(error));
        error.or_else(|| is_error.then(|| in_response().unwrap_or(frame))).map(Self::of_body)
    }

    /// Takes what a value says, but for what it repeats.
    fn collect(&mut self, raw: &str, depth: usize) {
        if depth > DEPTH {
            return;
        }
        if let Some(text) = object::string(raw) {
            self.words.push_str(&text);
            self.words.push('\n');
        } else if let Some(object) = Object::read(raw) {
            self.status = self.status.or_else(|| status_in(&object));
            self.limit = self.limit.or_else(|| object.count("n_ctx"));
            for (_, value) in object.fields().filter(|(name, _)| !REPEATED.contains(name)) {
                self.collect(value, depth + 1);
            }
        } else {
            for item in object::array(raw).unwrap_or_default() {
                self.collect(item, depth + 1);
            }
        }
    }
}

/// Whether the value of an `error` field is an error: null, false and what is empty are none.
fn says_something(error: &str) -> bool {
    match error.as_bytes() {
        [b'"', ..] => object::string(error).is_some_and(|text| !text.is_empty()),
        [b'{', ..] => Object::read(error).is_some_and(|object| object.fields().next().is_some()),
        [b'[', ..] => object::array(error).is_some_and(|items| !items.is_empty()),
        other => other == b"true",
    }
}

fn message_in(raw: &str, depth: usize) -> Option<String> {
    if depth > DEPTH {
        return None;
    }
    if let Some(text) = object::string(raw) {
        return (!text.is_empty()).then_some(text);
    }
    if let Some(object) = Object::read(raw) {
        let values = MESSAGES.into_iter().filter_map(|name| object.raw(name));
        return values.filter_map(|value| message_in(value, depth + 1)).next();
    }
    object::array(raw)?.into_iter().find_map(|item| message_in(item, depth + 1))
}

fn status_in(error: &Object<'_>) -> Option<u16> {
    ["status_code", "status", "code", "http_status"]
        .into_iter()
        .filter_map(|name| error.count(name))
        .find_map(|status| u16::try_from(status).ok().filter(|status| (400..600).contains(status)))
}
