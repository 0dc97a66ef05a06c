//! `klbr doctor`: looks at everything that has to be right, and says what to do where it is not.
//!
//! Changes nothing; asks the model's server one small question.

mod home;
mod server;
mod trust;

use serde::Serialize;

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::text::clean_line;
use crate::wiring;

/// How a finding is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Good,
    /// Worth knowing; nothing fails.
    Note,
    /// Something will fail.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    verdict: Verdict,
    what: &'static str,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    fn good(what: &'static str, found: impl Into<String>) -> Self {
        Finding { verdict: Verdict::Good, what, found: found.into(), hint: None }
    }

    fn note(what: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Finding { verdict: Verdict::Note, what, found: found.into(), hint: Some(hint.into()) }
    }

    fn bad(what: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Finding { verdict: Verdict::Bad, what, found: found.into(), hint: Some(hint.into()) }
    }

    /// What an error tells.
    fn of(what: &'static str, error: &CommandError) -> Self {
        Finding::bad(what, error.message(), error.hints().join("; "))
    }
}

/// Looks at everything.
///
/// # Errors
///
/// Fails when something is bad, after everything was told.
pub(super) async fn run(context: &Context) -> Outcome {
    let mut findings = home::look(context);
    match context.config() {
        Ok(config) => {
            findings.push(Finding::good("settings", format!("the agent is {}", config.agent.name)));
            findings.extend(server::look(&config).await);
            findings.extend(trust::look(&config));
        }
        Err(error) => findings.push(Finding::of("settings", &error)),
    }
    findings.push(terminal());
    context.print(&findings, || findings.iter().map(line).collect())?;
    match findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count() {
        0 => Ok(()),
        count => Err(CommandError::config(
            format!("{count} of {} findings are bad", findings.len()),
            "each has its own hint above",
        )),
    }
}

fn line(finding: &Finding) -> String {
    let mark = match finding.verdict {
        Verdict::Good => "good",
        Verdict::Note => "note",
        Verdict::Bad => "BAD ",
    };
    let hint = finding.hint.as_ref().map(|hint| format!("{:17}hint: {}\n", "", clean_line(hint)));
    format!("{mark} {:<12}{}\n{}", finding.what, clean_line(&finding.found), hint.unwrap_or_default())
}

fn terminal() -> Finding {
    let facts = wiring::terminal();
    let term = facts.term.unwrap_or_else(|| "unknown".to_owned());
    let locale = facts.locale.unwrap_or_default();
    let utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    match (facts.is_interactive, utf8) {
        (true, true) => Finding::good("terminal", format!("{term}, {locale}")),
        (true, false) => Finding::note(
            "terminal",
            format!("{term}, and the locale {locale:?} is not UTF-8"),
            "set LANG=C.UTF-8 where other scripts and emoji look wrong",
        ),
        (false, _) => Finding::note(
            "terminal",
            "none: this is a pipe or a file",
            "klbr chat prints a line for each event then",
        ),
    }
}
