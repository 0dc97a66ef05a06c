//! What went wrong at a provider, sorted by what may be done about it.
//!
//! Owns the sorting of providers' errors, as responses and as frames inside a stream. Refuses to decide
//! what follows: that is the core's policy.

mod overflow;
mod problem;
pub(crate) mod retry_after;

use std::time::Duration;

use klbr_core::model::Failure;

use self::problem::Problem;

/// Where an error came.
enum Place {
    Response { status: u16, retry_after: Option<Duration> },
    Stream { begun: bool },
}

/// Sorts a response that is no success.
pub(crate) fn from_response(status: u16, retry_after: Option<Duration>, body: &str) -> Failure {
    sort(Problem::of_body(body), Place::Response { status, retry_after })
}

/// Sorts an event of a stream if it is an error: by its name, or by what its data say.
///
/// `begun` says that the model had already answered something: the request was not refused, then.
pub(crate) fn from_event(name: &str, data: &str, begun: bool) -> Option<Failure> {
    let problem = if names_error(name) { Some(Problem::of_body(data)) } else { Problem::of_frame(data) };
    Some(sort(problem?, Place::Stream { begun }))
}

/// The words of an error's body, lower-case, without what it repeats of the request.
pub(crate) fn words(body: &str) -> String {
    Problem::of_body(body).words
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

fn sort(problem: Problem, place: Place) -> Failure {
    let Problem { status, message, words, limit } = problem;
    let mentions = |any: &[&str]| any.iter().any(|word| words.contains(word));
    let (status, asked, begun) = match place {
        Place::Response { status, retry_after } => (Some(status), retry_after, false),
        Place::Stream { begun } => (status, None, begun),
    };
    let retry_after = asked.or_else(|| retry_after::in_words(&words));

    if overflow::is_in(status, &words) {
        return Failure::ContextOverflow { limit: limit.or_else(|| overflow::limit_in(&words)), message };
    }
    // A swapped model is loaded again, and a failed call is sampled again.
    if mentions(&[problem::UNLOADED, "tool_use_failed"]) {
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
        None => mentions(&["invalid_request", "not_found"]),
    };
    if refused {
        Failure::Refused { status, message }
    } else {
        Failure::Provider { status, retry_after, message }
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
        check(
            400,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"not permitted","input":"rate limit"}]}}"#,
            expect![[r#"Refused { status: Some(400), message: "not permitted" }"#]],
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":4096}}"#,
            expect![[r#"ContextOverflow { limit: Some(4096), message: "too long" }"#]],
        );
        check(
            400,
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"prompt is too long: 9 tokens > 8 maximum"}}}"#,
            expect![[r#"ContextOverflow { limit: Some(8), message: "Provider returned error" }"#]],
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
