//! A call's result as it is kept: each text once, and what later results depend on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::context::{Entry, Insertion, ResultId, Trace};

/// What a call is answered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The result's number, as `recall` knows it; 0 of a call that an action made, whose answer no model is shown.
    pub id: u64,
    /// The whole text, without the id that it is inserted with.
    pub full: Arc<str>,
    /// What the model is shown, when that is not the whole text behind its head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Arc<str>>,
    /// What stands in front of the whole text, when that is more than its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Arc<str>>,
    /// What of it later results depend on.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub trace: Trace,
}

impl CallResult {
    /// A text that is shown whole.
    pub fn plain(id: u64, full: impl Into<Arc<str>>) -> Self {
        CallResult { id, full: full.into(), shown: None, head: None, trace: Trace::Plain }
    }

    /// What the caller of an action is answered, as the whole of a result that would be inserted. A file that was
    /// read or changed is known as it is from then on; nothing else is remembered of what no request has.
    pub(crate) fn unseen(result: CallResult) -> Self {
        let trace = match result.trace {
            Trace::Read(row) => Trace::Glimpse { file: row.file, hash: row.hash },
            trace @ (Trace::Glimpse { .. } | Trace::Changes { .. }) => trace,
            Trace::Plain | Trace::Listing { .. } | Trace::Remembered { .. } => Trace::Plain,
        };
        CallResult { id: 0, full: result.full, shown: None, head: None, trace }
    }

    /// What the model is shown.
    pub fn inserted(&self) -> Arc<str> {
        match (&self.shown, &self.head) {
            (Some(shown), _) => shown.clone(),
            (None, Some(head)) => format!("{head}{}", self.full).into(),
            (None, None) => format!("{}{}", bare_head(self.id), self.full).into(),
        }
    }

    /// What is remembered of it.
    pub(crate) fn entry(&self) -> Entry {
        Entry { id: ResultId::new(self.id), trace: self.trace.clone() }
    }
}

impl From<Insertion> for CallResult {
    /// Keeps each text once.
    fn from(insertion: Insertion) -> Self {
        let id = insertion.id().number();
        let head = insertion.head().filter(|head| *head != bare_head(id)).map(Into::into);
        let shown = insertion.head().is_none().then(|| insertion.text.as_str().into());
        CallResult { id, full: insertion.stored().into(), shown, head, trace: insertion.entry.trace }
    }
}

fn bare_head(id: u64) -> String {
    format!("[{}]\n", ResultId::new(id))
}

fn is_plain(trace: &Trace) -> bool {
    *trace == Trace::Plain
}
