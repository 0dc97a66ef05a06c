//! What went wrong at a provider, sorted by what may be done about it.
//!
//! Owns the shapes and wordings of providers' errors, as responses and as frames inside a stream. Refuses
//! to decide what follows: that is the core's policy.

mod overflow;
pub(crate) mod retry_after;

use std::time::Duration;

use klbr_core::model::Failure;

use crate::stream::object::{self, Object};

/// An error as a provider described it.
#[derive(Debug, Default)]
struct Problem {
    status: Option<u16>,
    /// Its type and code, lower-case.
    code: String,
    message: String,
    /// All of it, lower-case, to look for wordings in.
    haystack: String,
    limit: Option<u64>,
}

/// Where an error came.
enum Place {
    Response { retry_after: Option<Duration> },
    Stream { begun: bool },
}

/// Sorts a response that is no success.
pub(crate) fn from_response(status: u16, retry_after: Option<Duration>, body: &str) -> Failure {
    let mut problem = Object::read(body).and_then(|object| Problem::read(&object)).unwrap_or_default();
    if problem.message.is_empty() {
        problem.message = excerpt(body);
    }
    problem.haystack = body.to_lowercase();
    problem.status = Some(status);
    problem.sort(Place::Response { retry_after })
}

/// Sorts an event of a stream if it is an error: by its name, or by what its data say.
///
/// `begun` says that the model had already answered something: the request was not refused, then.
pub(crate) fn from_event(name: &str, data: &str, begun: bool) -> Option<Failure> {
    let first = if data.starts_with('[') { object::array(data)?.first().copied() } else { Some(data) };
    let object = first.and_then(Object::read);
    let mut problem = object.as_ref().and_then(Problem::of_frame);
    if problem.is_none() && (names_error(name) || object.is_none() && says_unloaded(&data.to_lowercase())) {
        problem = Some(object.as_ref().and_then(Problem::read).unwrap_or_default());
    }
    let mut problem = problem?;
    if problem.message.is_empty() {
        problem.message = excerpt(data);
    }
    problem.haystack = data.to_lowercase();
    Some(problem.sort(Place::Stream { begun }))
}

/// Whether an event of this name says that the reply has failed.
pub(crate) fn names_error(name: &str) -> bool {
    matches!(name, "error" | "failed" | "response.failed" | "response.error")
}

/// The beginning of a text that is not ours, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 300;
    let mut short: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = short.char_indices().nth(MOST) {
        short.truncate(end);
        short.push('…');
    }
    short
}

fn says_unloaded(haystack: &str) -> bool {
    haystack.contains("model unloaded")
}

impl Problem {
    /// The error that a frame of a stream is, if it is one.
    fn of_frame(frame: &Object<'_>) -> Option<Self> {
        let kind = frame.string("type").unwrap_or_default();
        let is_error = names_error(&kind) || frame.string("object").as_deref() == Some("error");
        let in_choice = || {
            let choices = frame.array("choices")?;
            let choice = Object::read(choices.first()?)?;
            choice.raw("error").and_then(Self::of_value)
        };
        let in_response = || frame.object("response")?.raw("error").and_then(Self::of_value);
        frame
            .raw("error")
            .and_then(Self::of_value)
            .or_else(in_choice)
            .or_else(|| is_error.then(|| in_response().or_else(|| Self::read(frame)).unwrap_or_default()))
    }

    /// The error that an object describes, under one of the names that servers give it.
    fn read(object: &Object<'_>) -> Option<Self> {
        let named = ["error", "detail", "errors"].into_iter().find_map(|name| object.raw(name));
        named.and_then(Self::of_value).or_else(|| Self::of_object(object))
    }

    /// An error as a text, an object, or a list of them; an empty one is none.
    fn of_value(raw: &str) -> Option<Self> {
        if let Some(message) = object::string(raw) {
            return (!message.is_empty()).then(|| Problem { message, ..Problem::default() });
        }
        if let Some(items) = object::array(raw) {
            return items.first().and_then(|item| Self::of_value(item));
        }
        match raw {
            "true" => Some(Problem::default()),
            _ => Self::of_object(&Object::read(raw)?),
        }
    }

    fn of_object(error: &Object<'_>) -> Option<Self> {
        error.fields().next()?;
        let message = ["message", "msg", "detail", "error"].into_iter().find_map(|name| error.filled(name));
        let words = ["type", "code", "status"].into_iter().filter_map(|name| error.string(name));
        let status = ["status_code", "status", "code", "http_status"]
            .into_iter()
            .filter_map(|name| error.count(name))
            .find_map(|status| u16::try_from(status).ok().filter(|status| (400..600).contains(status)));
        Some(Problem {
            status,
            code: words.collect::<Vec<_>>().join(" ").to_lowercase(),
            message: message.unwrap_or_default(),
            haystack: String::new(),
            limit: error.count("n_ctx"),
        })
    }

    fn sort(self, place: Place) -> Failure {
        let Problem { status, code, message, haystack, limit } = self;
        let mentions = |words: &[&str]| words.iter().any(|word| haystack.contains(word));
        let (asked, begun) = match place {
            Place::Response { retry_after } => (retry_after, false),
            Place::Stream { begun } => (None, begun),
        };
        let retry_after = asked.or_else(|| retry_after::in_words(&haystack));

        if overflow::is_in(status, &haystack) {
            return Failure::ContextOverflow {
                limit: limit.or_else(|| overflow::limit_in(&haystack)),
                message,
            };
        }
        if says_unloaded(&haystack) {
            return Failure::Provider { status, retry_after, message };
        }
        if status == Some(429)
            || mentions(&["rate_limit", "rate limit", "too many requests", "resource_exhausted"])
        {
            return Failure::RateLimited { retry_after, message };
        }
        if matches!(status, Some(401..=403)) && !mentions(&["moderation", "flagged"])
            || mentions(&["invalid_api_key", "authentication_error"])
        {
            return Failure::Unauthorized { status: status.unwrap_or(401), message };
        }
        let refused = match status {
            _ if begun => false,
            Some(408 | 409 | 425 | 500..) => false,
            Some(_) => true,
            None => code.contains("invalid_request") || code.contains("not_found"),
        };
        if refused {
            Failure::Refused { status, message }
        } else {
            Failure::Provider { status, retry_after, message }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: Expect) {
        expected.assert_eq(&format!("{:?}", from_response(status, None, body)));
    }

    #[track_caller]
    fn check_event(name: &str, data: &str, begun: bool, expected: Expect) {
        expected.assert_eq(&format!("{:?}", from_event(name, data, begun)));
    }

    #[test]
    fn responses_are_sorted_by_what_may_be_done() {
        check(
            500,
            r#"{"error":{"message":"boom"}}"#,
            expect![[r#"Provider { status: Some(500), retry_after: None, message: "boom" }"#]],
        );
        check(
            503,
            "<html>\n  upstream\n</html>",
            expect![[
                r#"Provider { status: Some(503), retry_after: None, message: "<html> upstream </html>" }"#
            ]],
        );
        check(
            429,
            r#"{"error":{"message":"Rate limit reached. Please try again in 1.5s.","code":"rate_limit_exceeded"}}"#,
            expect![[
                r#"RateLimited { retry_after: Some(1.5s), message: "Rate limit reached. Please try again in 1.5s." }"#
            ]],
        );
        check(
            401,
            r#"{"error":"Invalid key"}"#,
            expect![[r#"Unauthorized { status: 401, message: "Invalid key" }"#]],
        );
        check(
            403,
            r#"{"error":{"message":"input was flagged","code":403}}"#,
            expect![[r#"Refused { status: Some(403), message: "input was flagged" }"#]],
        );
        check(
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","code":404}"#,
            expect![[r#"Refused { status: Some(404), message: "The model `x` does not exist." }"#]],
        );
        check(
            422,
            r#"{"detail":[{"loc":["body","messages"],"msg":"field required"}]}"#,
            expect![[r#"Refused { status: Some(422), message: "field required" }"#]],
        );
        check(502, "", expect![[r#"Provider { status: Some(502), retry_after: None, message: "" }"#]]);
    }

    #[test]
    fn an_event_is_an_error_by_name_or_by_content() {
        check_event("", r#"{"error":null,"choices":[]}"#, false, expect!["None"]);
        check_event("", r#"{"type":"response.created","response":{"error":null}}"#, false, expect!["None"]);
        check_event(
            "",
            r#"{"error":{"code":500,"message":"boom","type":"server_error"}}"#,
            false,
            expect![[r#"Some(Provider { status: Some(500), retry_after: None, message: "boom" })"#]],
        );
        check_event(
            "failed",
            r#"{"code":"x"}"#,
            false,
            expect![[r#"Some(Provider { status: None, retry_after: None, message: "{\"code\":\"x\"}" })"#]],
        );
        check_event(
            "",
            r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
            false,
            expect![[r#"Some(RateLimited { retry_after: None, message: "slow" })"#]],
        );
        check_event(
            "error",
            "out of memory",
            true,
            expect![[r#"Some(Provider { status: None, retry_after: None, message: "out of memory" })"#]],
        );
        check_event(
            "",
            r#"{"choices":[{"error":{"code":502,"message":"upstream"},"finish_reason":"error"}]}"#,
            true,
            expect![[r#"Some(Provider { status: Some(502), retry_after: None, message: "upstream" })"#]],
        );
        check_event(
            "",
            r#"[{"error":{"code":400,"message":"bad tool","status":"INVALID_ARGUMENT"}}]"#,
            false,
            expect![[r#"Some(Refused { status: Some(400), message: "bad tool" })"#]],
        );
        check_event(
            "",
            "group: model unloaded",
            true,
            expect![[
                r#"Some(Provider { status: None, retry_after: None, message: "group: model unloaded" })"#
            ]],
        );
    }

    #[test]
    fn once_the_model_has_answered_the_request_was_not_refused() {
        let data =
            r#"{"error":{"message":"no tool was called","type":"invalid_request_error","status_code":400}}"#;
        assert!(matches!(from_event("error", data, false), Some(Failure::Refused { .. })));
        assert!(matches!(from_event("error", data, true), Some(Failure::Provider { status: Some(400), .. })));
    }
}
