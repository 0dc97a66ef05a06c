//! How work over files is done for a call: off the runtime's threads, ended when the call is dropped.

use std::fmt::Write as _;

use klbr_codeintel::{Cancel, Coverage, IndexError, IndexOptions};
use klbr_core::action::{FailureKind, Outcome};
use klbr_core::context::{Answer, Dedupe, Output};
use klbr_core::runtime::tool::CallContext;

use super::Code;
use crate::view::Denied;

/// How many files that were left out are named.
const NAMED: usize = 20;

/// Why a call is refused, in the words that the model reads.
pub(super) struct Refusal(pub(super) FailureKind, pub(super) String);

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Refusal(FailureKind::Denied, denied.to_string())
    }
}

impl From<IndexError> for Refusal {
    fn from(error: IndexError) -> Self {
        Refusal(FailureKind::Refused, format!("Not done: {error}."))
    }
}

/// Raises the flag when the call that waits for the work is dropped.
struct Raise(Cancel);

impl Drop for Raise {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Does the work on a thread that may block.
pub(super) async fn off(work: impl FnOnce(&Cancel) -> Result<Answer, Refusal> + Send + 'static) -> Outcome {
    let cancel = Cancel::new();
    let _raise = Raise(cancel.clone());
    match tokio::task::spawn_blocking(move || work(&cancel)).await {
        Ok(Ok(answer)) => Outcome::answered(answer),
        Ok(Err(Refusal(why, text))) => Outcome::failed(why, text),
        Err(_) => Outcome::unknown("The work did not end. Look at what is there before doing it again."),
    }
}

/// A text for the model, the same one said once.
pub(super) fn said(context: &CallContext, text: String) -> Answer {
    let attempt = &context.attempt;
    let (tool, args) = (attempt.name.to_string(), attempt.arguments.to_string());
    Answer::Output(Output { tool, args, text, dedupe: Dedupe::SameResult })
}

/// What an answer rests on, at its end (B-CODE-4).
pub(super) fn rests_on(text: &mut String, coverage: &Coverage) {
    if coverage.searched == 1 && coverage.left == 0 && coverage.skipped.is_empty() {
        return;
    }
    // A text takes what is written.
    let _ = write!(text, "({coverage})");
    for skipped in coverage.skipped.first.iter().take(NAMED) {
        let _ = write!(text, "\n  {}: {}", skipped.path.display(), skipped.reason);
    }
}

impl Code {
    pub(super) fn options(&self) -> IndexOptions {
        IndexOptions { isolation: self.0.isolation.clone(), ..IndexOptions::default() }
    }
}
