//! What a request comes to that has no success to show.

use std::error::Error;
use std::time::Duration;

use klbr_core::time::Human;
use serde_json::Value;

use crate::payload::Read;

/// A request without success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// No connection could be made: it certainly did not go out.
    #[error("Discord cannot be reached: {0}")]
    NotSent(String),
    /// A rate limit lasts longer than there is time: it did not go out.
    #[error("Discord's rate limit lasts another {}", Human(*.0))]
    Limited(Duration),
    /// It may have been carried out.
    #[error("{0}")]
    Unclear(String),
    /// Discord refused it.
    #[error("{}", refusal(*.status, *.code, .message))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Discord's own code, 0 when it gave none.
        code: u64,
        /// Discord's words.
        message: String,
    },
}

/// Discord's code for a message that is not there.
const UNKNOWN_MESSAGE: u64 = 10_008;

/// What something answers that only looks like Discord, where it has not got that far.
const NOT_IMPLEMENTED: u16 = 501;

impl Failure {
    /// What an answer means that is no success.
    pub(super) fn of(status: u16, body: Option<Value>) -> Self {
        // A server that does not know a request at all has not carried it out, and never will.
        if status >= 500 && status != NOT_IMPLEMENTED {
            return Failure::Unclear(format!("Discord failed with status {status}"));
        }
        let body = body.unwrap_or_default();
        let mut message = body.words("message");
        if let Some(errors) = body.object("errors") {
            let details = details(errors);
            if !details.is_empty() {
                message = format!("{message}: {}", details.join("; "));
            }
        }
        let message = message.chars().take(500).collect();
        Failure::Refused { status, code: body.number("code").unwrap_or_default(), message }
    }

    /// What an error of the transport means.
    pub(super) fn of_transport(error: &reqwest::Error) -> Self {
        let mut words = String::new();
        let mut cause = error.source();
        while let Some(error) = cause {
            words = if words.is_empty() { error.to_string() } else { format!("{words}: {error}") };
            cause = error.source();
        }
        // A request that could not even be built did not go out either.
        match error.is_connect() || error.is_builder() {
            true => Failure::NotSent(words),
            false => Failure::Unclear(format!("the connection broke: {words}")),
        }
    }

    /// Whether Discord says that the message is not there.
    pub(crate) fn is_unknown_message(&self) -> bool {
        matches!(self, Failure::Refused { status: 404, code: UNKNOWN_MESSAGE, .. })
    }

    /// Whether asking again later may help.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Failure::NotSent(_) | Failure::Limited(_) | Failure::Unclear(_) => true,
            Failure::Refused { .. } => false,
        }
    }
}

/// The messages inside a form's errors, with the field that each is about.
fn details(errors: &Value) -> Vec<String> {
    fn walk(at: &str, errors: &Value, details: &mut Vec<String>) {
        let Some(fields) = errors.as_object() else { return };
        for (field, value) in fields {
            if field == "_errors" {
                for error in errors.list("_errors") {
                    details.push(format!("{at}: {}", error.words("message")));
                }
            } else {
                let at = if at.is_empty() { field.clone() } else { format!("{at}.{field}") };
                walk(&at, value, details);
            }
        }
    }
    let mut found = Vec::new();
    walk("", errors, &mut found);
    found.truncate(5);
    found
}

fn refusal(status: u16, code: u64, message: &str) -> String {
    let advice = match (status, code) {
        (401, _) => "the token is not valid: take a new one from the developer portal, under Bot",
        (_, 10_003) => "there is no such channel, or it was deleted",
        (_, UNKNOWN_MESSAGE) => "there is no such message, or it was deleted",
        (_, 10_014) => "there is no such emoji",
        (_, 50_001) => "the bot has no access to this channel: it needs the permission View Channel",
        (_, 50_013) => "the bot lacks a permission in this channel, such as Send Messages or Add Reactions",
        (_, 50_007) => "this person does not take direct messages from the bot",
        (_, 50_006) => "the message is empty",
        (_, 50_008) => "this kind of channel holds no messages",
        (_, 50_083) => "the thread is archived",
        (_, 30_010) => "the message has too many reactions",
        (_, 90_001) => "this person has blocked the bot",
        (_, 160_005 | 40_060 | 20_028) => "it was refused for now",
        _ => "",
    };
    let message = if message.is_empty() { "no reason given" } else { message };
    let number = if code == 0 { format!("status {status}") } else { format!("code {code}, status {status}") };
    match advice {
        "" => format!("Discord refused it: {message} ({number})"),
        _ => format!("Discord refused it: {message} ({number}); {advice}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_say_what_is_missing() {
        let refused = |status, body| Failure::of(status, Some(body)).to_string();
        assert_eq!(
            refused(403, json!({"code": 50001, "message": "Missing Access"})),
            "Discord refused it: Missing Access (code 50001, status 403); the bot has no access to this channel: it \
             needs the permission View Channel"
        );
        let form = json!({"code": 50035, "message": "Invalid Form Body", "errors":
            {"message_reference": {"_errors": [{"code": "REPLIES_UNKNOWN_MESSAGE", "message": "Unknown message"}]}}});
        assert_eq!(
            refused(400, form),
            "Discord refused it: Invalid Form Body: message_reference: Unknown message (code 50035, status 400)"
        );
        assert_eq!(Failure::of(418, None).to_string(), "Discord refused it: no reason given (status 418)");
        assert!(Failure::of(503, None).is_passing());
        assert!(!Failure::of(501, None).is_passing());
        assert!(Failure::of(404, Some(json!({"code": 10008}))).is_unknown_message());
    }
}
