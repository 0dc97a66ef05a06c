//! A cell's answer as the model reads it.

use std::fmt::Write as _;

use klbr_core::action::{FailureKind, Outcome};

use crate::protocol::Part;
use crate::workbench::{CellAnswer, CellEnd, Printed};

/// What a cell came to, and how it reads.
pub(super) fn outcome(answer: &CellAnswer) -> Outcome {
    let text = render(answer);
    match &answer.end {
        CellEnd::Done => Outcome::confirmed(text),
        CellEnd::Waits(wait) => {
            let arguments = serde_json::json!({ "timeout_ms": wait.timeout_ms, "reason": wait.reason });
            Outcome::waits(text, arguments.to_string())
        }
        CellEnd::Raised | CellEnd::Died { .. } => Outcome::failed(FailureKind::Refused, text),
        CellEnd::Interrupted { .. } => Outcome::failed(FailureKind::Cancelled, text),
        CellEnd::TimedOut { .. } => Outcome::failed(FailureKind::TimedOut, text),
        CellEnd::Aborted { .. } | CellEnd::Unavailable { .. } => Outcome::failed(FailureKind::NotRun, text),
    }
}

fn render(answer: &CellAnswer) -> String {
    let mut out = match &answer.end {
        CellEnd::Done => "Done".to_owned(),
        CellEnd::Raised => "The cell raised".to_owned(),
        CellEnd::Waits(_) => "The cell ended with a wait".to_owned(),
        CellEnd::Interrupted { .. } => "The cell was interrupted".to_owned(),
        CellEnd::TimedOut { .. } => format!("The cell was stopped: it ran {} s", answer.took.as_secs()),
        CellEnd::Died { reason } => format!("The workbench died under the cell: {reason}"),
        CellEnd::Aborted { .. } => "Not run: the workbench was started anew before".to_owned(),
        CellEnd::Unavailable { reason } => format!("Not run: there is no workbench: {reason}"),
    };
    // Writing to a String never fails.
    if answer.generation > 0 {
        let _ = write!(out, " (workbench {})", answer.generation);
    }
    out.push('.');
    if let Some(names) = &answer.state_lost {
        let names = if names.is_empty() { "there were none".to_owned() } else { names.join(", ") };
        let _ = write!(
            out,
            "\nThe workbench was started anew since the last cell; its variables are gone: {names}."
        );
    }
    match answer.survivors {
        0 => {}
        1 => out.push_str("\nA process that it had left behind was killed."),
        more => drop(write!(out, "\n{more} processes that it had left behind were killed.")),
    }
    printed(&mut out, "stdout", &answer.stdout);
    printed(&mut out, "stderr", &answer.stderr);
    for one in &answer.parts {
        out.push_str("\n\n");
        part(&mut out, one);
    }
    out
}

fn printed(out: &mut String, stream: &str, printed: &Printed) {
    if printed.text.is_empty() {
        return;
    }
    let _ = write!(out, "\n\n[{stream}]\n{}", printed.text.trim_end_matches('\n'));
    if let Some(whole) = &printed.whole {
        let _ = write!(out, "\n[all {} bytes of it are in {}]", printed.bytes, whole.display());
    }
}

fn part(out: &mut String, part: &Part) {
    let _ = match part {
        Part::Value { type_name, repr } => write!(out, "[{type_name}]\n{repr}"),
        Part::Text { text } => write!(out, "{text}"),
        Part::Json { data } => write!(out, "{data}"),
        Part::Image { media_type, path: Some(path), .. } => write!(out, "[{media_type} in {path}]"),
        Part::Image { media_type, base64, path: None } => {
            let bytes = base64.as_ref().map_or(0, |text| text.len() / 4 * 3);
            write!(out, "[{media_type} of about {bytes} bytes, which was not kept]")
        }
        Part::Exception(error) => write!(out, "{}", error.traceback.trim_end()),
    };
}
