//! What goes wrong, as it was scripted.
//!
//! Owns the rules and their counts. Refuses to make a fault by itself: the API does.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A rule: which requests, and what goes wrong with them. The first one that holds is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which requests.
    #[serde(default)]
    pub on: On,
    /// How many of those are let through first.
    #[serde(default)]
    pub skip: u64,
    /// How many of those it happens to; 1.
    #[serde(default = "once")]
    pub times: u64,
    /// What happens.
    pub make: Make,
}

fn once() -> u64 {
    1
}

impl Fault {
    /// What happens to the next request.
    pub fn new(make: Make) -> Fault {
        Fault { on: On::default(), skip: 0, times: 1, make }
    }

    /// Only to requests of this method and route.
    pub fn on(mut self, method: &str, route: &str) -> Fault {
        self.on.method = Some(method.to_owned());
        self.on.route = Some(route.to_owned());
        self
    }

    /// To so many of them.
    pub fn times(mut self, times: u64) -> Fault {
        self.times = times;
        self
    }

    /// Only after so many of them.
    pub fn after(mut self, skip: u64) -> Fault {
        self.skip = skip;
        self
    }
}

/// Which requests; what is not said is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct On {
    /// The method.
    pub method: Option<String>,
    /// The route, as in [`Asked::route`](super::Asked::route).
    pub route: Option<String>,
    /// A part of the path.
    pub path: Option<String>,
    /// A part of the body.
    pub body: Option<String>,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Make {
    /// It is answered with this status, with nothing done.
    Fail {
        /// The status.
        status: u16,
        /// The body; Discord's for this status where it is left out.
        #[serde(default)]
        body: Option<Value>,
    },
    /// It is done, then answered with this status.
    FailAfter {
        /// The status.
        status: u16,
        /// The body; Discord's for this status where it is left out.
        #[serde(default)]
        body: Option<Value>,
    },
    /// It waits before it is done, in milliseconds.
    Delay(u64),
    /// It is done, and waits before it is answered, in milliseconds.
    DelayAfter(u64),
    /// It waits at a gate before it is done.
    Hold(String),
    /// It is done, and waits at a gate before it is answered.
    HoldAfter(String),
    /// The connection is cut with nothing done.
    Cut,
    /// It is done, and the connection is cut before the answer.
    CutAfter,
    /// It is done, and the connection is cut after so many bytes of the answer's body.
    CutBody(u32),
    /// It is done, and the answer's body cannot be read.
    Garble,
    /// It is over a limit, with nothing done; the limit holds for whoever comes too early.
    Limit {
        /// For how long, in milliseconds.
        retry_after_ms: u64,
        /// Whose limit.
        scope: Scope,
    },
}

impl Make {
    /// Its name, as the record tells it.
    pub fn name(&self) -> &'static str {
        match self {
            Make::Fail { .. } => "fail",
            Make::FailAfter { .. } => "fail_after",
            Make::Delay(_) => "delay",
            Make::DelayAfter(_) => "delay_after",
            Make::Hold(_) => "hold",
            Make::HoldAfter(_) => "hold_after",
            Make::Cut => "cut",
            Make::CutAfter => "cut_after",
            Make::CutBody(_) => "cut_body",
            Make::Garble => "garble",
            Make::Limit { .. } => "limit",
        }
    }
}

/// Whose limit was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The bot's, on this route.
    User,
    /// The bot's, on all.
    Global,
    /// Everyone's, on this resource.
    Shared,
}

/// The rules in force.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) rules: Vec<Fault>,
}

impl Faults {
    /// What happens to this request.
    pub(super) fn take(&mut self, method: &str, route: &str, path: &str, body: &[u8]) -> Option<Make> {
        let holds = |on: &On| {
            on.method.as_ref().is_none_or(|wanted| wanted == method)
                && on.route.as_ref().is_none_or(|wanted| wanted == route)
                && on.path.as_ref().is_none_or(|wanted| path.contains(wanted))
                && on.body.as_ref().is_none_or(|wanted| String::from_utf8_lossy(body).contains(wanted))
        };
        let rule = self.rules.iter_mut().find(|rule| rule.times > 0 && holds(&rule.on))?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        let make = rule.make.clone();
        self.rules.retain(|rule| rule.times > 0);
        Some(make)
    }
}
