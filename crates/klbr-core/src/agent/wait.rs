//! The wait: a yield with a durable wakeup (`B-WAIT-1` to `B-WAIT-6`).

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Agent;
use crate::action::{ActionSpec, Class, Resource, Role};
use crate::context::Answer;
use crate::model::ToolDefinition;
use crate::record::{Record, WaitEnd};
use crate::state::Phase;
use crate::time::Human;

/// The longest a wait may be.
pub const MAX_WAIT: Duration = Duration::from_millis(600_000);

/// How many refused or sub-second waits in a row are let through.
const MAX_SHORT_WAITS: u32 = 2;

/// What the model is told of the wait's arguments. They are read by [`WaitRequest::parse`], which can say
/// more about what is wrong with them.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct WaitArguments {
    /// How long to wait in milliseconds, at most 600000.
    timeout_ms: Option<u64>,
    /// How long to wait in seconds, instead.
    seconds: Option<f64>,
    /// How long to wait as text, instead: "90s", "10m", "1m 30s".
    duration: Option<String>,
    /// What you wait for.
    reason: Option<String>,
}

/// The action that waits, for a registry.
pub fn wait_tool() -> ActionSpec {
    ActionSpec {
        tool: ToolDefinition {
            name: "wait_and_continue".to_owned(),
            description: "Ends your turn and waits. Anything addressed to you ends the wait at once; otherwise \
                          you go on when the time is over. Give one of timeout_ms, seconds or duration, at most \
                          10 minutes."
                .to_owned(),
            parameters: schemars::schema_for!(WaitArguments).to_value(),
        },
        role: Role::Wait,
        class: Class::Pure,
        cancellable: true,
        resource: Resource::None,
        deadline: MAX_WAIT,
    }
}

/// A wait as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitRequest {
    pub(super) duration: Duration,
    /// Whether more was asked for than is allowed.
    pub(super) shortened: bool,
    pub(super) reason: Option<Arc<str>>,
}

impl WaitRequest {
    /// Reads a wait's arguments, or says what is wrong with them.
    pub(super) fn parse(arguments: &str) -> Result<Self, String> {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let value: Value =
            serde_json::from_str(arguments).map_err(|e| format!("the arguments are not JSON: {e}"))?;
        let Value::Object(fields) = value else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let given: Vec<(&str, f64)> = [
            ("timeout_ms", field("timeout_ms").map(|v| number(v, "timeout_ms"))),
            ("seconds", field("seconds").map(|v| number(v, "seconds").map(|seconds| seconds * 1000.0))),
            ("duration", field("duration").map(text_millis)),
        ]
        .into_iter()
        .filter_map(|(name, millis)| millis.map(|millis| millis.map(|millis| (name, millis))))
        .collect::<Result<_, String>>()?;
        let millis = match given[..] {
            [] => return Err("it does not say how long: give timeout_ms, seconds or duration".to_owned()),
            [(_, first), ref others @ ..] => match others.iter().find(|(_, other)| *other != first) {
                Some((name, _)) => return Err(format!("{} and {name} contradict each other", given[0].0)),
                None => first,
            },
        };
        if !millis.is_finite() || millis < 1.0 {
            return Err(format!("{} is not a time to wait: it has to be at least a millisecond", given[0].0));
        }
        let asked = Duration::from_millis(millis.min(1e15) as u64);
        let reason = field("reason").and_then(Value::as_str).filter(|reason| !reason.trim().is_empty());
        Ok(WaitRequest {
            duration: asked.min(MAX_WAIT),
            shortened: asked > MAX_WAIT,
            reason: reason.map(Into::into),
        })
    }
}

fn number(value: &Value, name: &str) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{name} is {value}, not a number"))
}

/// Reads `90s`, `10m`, `1m 30s`, `250ms`, `1h`, and a bare number as seconds.
fn text_millis(value: &Value) -> Result<f64, String> {
    let error = || format!("duration is {value}, not a time like \"90s\" or \"10m\"");
    let text = value.as_str().ok_or_else(error)?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Ok(seconds * 1000.0);
    }
    let (mut millis, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
        let count: f64 = rest[..unit_at].parse().map_err(|_| error())?;
        let after = rest[unit_at..].trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..end] {
            "ms" => 1.0,
            "s" | "sec" | "second" | "seconds" => 1e3,
            "m" | "min" | "minute" | "minutes" => 6e4,
            "h" | "hour" | "hours" => 3.6e6,
            _ => return Err(error()),
        };
        millis += count * unit;
        rest = after[end..].trim_start();
    }
    if text.is_empty() { Err(error()) } else { Ok(millis) }
}

impl Agent {
    /// Lets the agent's reply wait when nothing speaks against it.
    ///
    /// # Errors
    ///
    /// Says why it is refused (`B-WAIT-2`).
    pub(super) fn admit_wait(&self, arguments: &str) -> Result<WaitRequest, String> {
        let request = WaitRequest::parse(arguments)?;
        if request.duration.as_secs() == 0 && self.live.short_waits >= MAX_SHORT_WAITS {
            return Err(
                "waits of less than a second, or refused ones, came in a row: looking again and again \
                        finds nothing sooner, since anything addressed to you ends a wait at once. Wait for \
                        longer"
                    .to_owned(),
            );
        }
        Ok(request)
    }

    pub(super) fn end_wait(&mut self, end: WaitEnd) {
        let Phase::Waiting(wait) = &self.state.phase else { return };
        let now = self.now();
        let waited = Human(now.since(wait.since));
        let mut text = match &end {
            WaitEnd::TimedOut => format!("Waited {waited}; nothing came. It is {now}."),
            WaitEnd::Woken { by } => format!("Woken after {waited} by {by}. It is {now}."),
            WaitEnd::Commanded { by } => format!("Ended after {waited} by the operator's {by}. It is {now}."),
        };
        if let Some(reason) = &wait.reason {
            text.push_str(&format!(" You waited for: {reason}."));
        }
        if wait.shortened {
            text.push_str(&format!(" You had asked for longer; a wait is at most {}.", Human(MAX_WAIT)));
        }
        let count = self.state.idle_waits + 1;
        if end == WaitEnd::TimedOut && count >= 5 && count.is_multiple_of(5) {
            text.push_str(&format!(
                " This was wait number {count} in a row without anything else done. Wait for longer next time, \
                 such as {{\"duration\": \"10m\"}}."
            ));
        }
        if let Some(told) = &wait.told {
            text = format!("{told}\n\n{text}");
        }
        let action = wait.action;
        let result = self.result(&Answer::text(text));
        self.record(Record::WaitEnded { action, end, result });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(arguments: &str) -> Result<u128, String> {
        WaitRequest::parse(arguments).map(|request| request.duration.as_millis())
    }

    #[test]
    fn durations_are_read_in_every_form() {
        for (arguments, expected) in [
            (r#"{"timeout_ms": 1500}"#, 1500),
            (r#"{"seconds": 1.5}"#, 1500),
            (r#"{"duration": "10m"}"#, 600_000),
            (r#"{"duration": "1m 30s"}"#, 90_000),
            (r#"{"duration": "250ms"}"#, 250),
            (r#"{"duration": "45"}"#, 45_000),
            (r#"{"timeout_ms": 2000, "seconds": 2, "duration": null}"#, 2000),
        ] {
            assert_eq!(millis(arguments), Ok(expected), "{arguments}");
        }
    }

    #[test]
    fn longer_than_allowed_is_cut_and_said() {
        let request = WaitRequest::parse(r#"{"duration": "2h"}"#).unwrap();
        assert_eq!((request.duration, request.shortened), (MAX_WAIT, true));
        assert!(!WaitRequest::parse(r#"{"timeout_ms": 600000}"#).unwrap().shortened);
    }

    #[test]
    fn what_is_no_time_to_wait_is_refused_with_its_name() {
        for (arguments, word) in [
            ("", "how long"),
            ("{}", "how long"),
            ("[]", "object"),
            ("{", "JSON"),
            (r#"{"seconds": 0}"#, "seconds"),
            (r#"{"seconds": -5}"#, "seconds"),
            (r#"{"seconds": 1e999}"#, "JSON"),
            (r#"{"seconds": "NaN"}"#, "not a number"),
            (r#"{"duration": "NaN"}"#, "duration"),
            (r#"{"duration": "inf"}"#, "duration"),
            (r#"{"duration": ""}"#, "duration"),
            (r#"{"duration": "soon"}"#, "duration"),
            (r#"{"duration": "5 parsecs"}"#, "duration"),
            (r#"{"timeout_ms": 1000, "seconds": 2}"#, "contradict"),
        ] {
            let error = millis(arguments).unwrap_err();
            assert!(error.contains(word), "{arguments}: {error}");
        }
    }
}
