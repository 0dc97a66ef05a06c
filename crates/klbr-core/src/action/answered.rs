//! What a call made by a running action is answered.

use std::sync::Arc;

use super::{End, FailureKind, Sent};
use crate::context::Answer;
use crate::ids::ActionId;

/// The answer to a call that a running action made. Its records are committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The action that it was; none when it was refused before it became one.
    pub action: Option<ActionId>,
    /// How it ended; none while the operator decides about it, or while it runs on without its caller.
    pub end: Option<End>,
    /// What a model would be told, in full.
    pub told: Arc<str>,
    /// What it answers, where that is more than a text.
    pub answer: Option<Box<Answer>>,
    /// What a delivery has said where.
    pub sent: Option<Box<Sent>>,
}

impl Answered {
    /// It never became an action.
    pub(crate) fn refused(told: impl Into<Arc<str>>) -> Self {
        let end = Some(End::failed(FailureKind::NotRun));
        Answered { action: None, end, told: told.into(), answer: None, sent: None }
    }

    /// It has its answer, and its end is known or still to come.
    pub(crate) fn of(action: ActionId, end: Option<End>, told: Arc<str>) -> Self {
        Answered { action: Some(action), end, told, answer: None, sent: None }
    }

    /// What became of it, in a word for programs: `confirmed`, `held`, `unknown`, or why it failed.
    pub fn code(&self) -> &'static str {
        match &self.end {
            None => "held",
            Some(End::Confirmed) => "confirmed",
            Some(End::Unknown) => "unknown",
            Some(End::Failed { why }) => why.as_str(),
        }
    }
}
