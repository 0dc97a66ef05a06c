//! A model that says what it is told to say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::sync::watch;

use crate::model::{Delta, Failure, Finish, RawCall, Request, Sampled};
use crate::runtime::model::{Model, Piece, Reply};

/// One scripted reply.
#[derive(Clone, Debug)]
pub enum Scripted {
    /// A whole reply; its text and reasoning stream first.
    Says(Sampled),
    /// A failure instead of a reply.
    Fails(Failure),
    /// A piece of text, and then nothing more for ever.
    Stalls(String),
}

impl Scripted {
    /// A reply of text alone.
    pub fn text(text: &str) -> Self {
        Scripted::Says(Sampled { text: text.to_owned(), ..Sampled::default() })
    }

    /// A reply of calls: names and arguments.
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let call = |(name, arguments): &(&str, &str)| RawCall {
            id: None,
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        Scripted::Says(Sampled {
            calls: calls.iter().map(call).collect(),
            finish: Finish::ToolCalls,
            ..Sampled::default()
        })
    }
}

/// A model that gives its scripted replies in order, and stalls when there are none left. Clones share the
/// script and what was asked.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    script: Arc<Mutex<VecDeque<Scripted>>>,
    requests: watch::Sender<Vec<Request>>,
}

impl ScriptedModel {
    /// A model with these replies.
    pub fn new(script: impl IntoIterator<Item = Scripted>) -> Self {
        ScriptedModel {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            requests: watch::Sender::default(),
        }
    }

    /// Adds a reply at the end of the script.
    pub fn then(&self, reply: Scripted) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).push_back(reply);
    }

    /// Waits until `count` requests have been made, and returns all of them.
    pub async fn requests(&self, count: usize) -> Vec<Request> {
        let mut requests = self.requests.subscribe();
        // The model holds the sender, so that it cannot have been dropped.
        requests.wait_for(|requests| requests.len() >= count).await.map(|r| r.clone()).unwrap_or_default()
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn sample(&self, request: Request) -> Result<Reply, Failure> {
        let next = self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        self.requests.send_modify(|requests| requests.push(request));
        let piece = |delta| Ok(Piece::Delta(delta));
        Ok(match next {
            Some(Scripted::Says(sampled)) => {
                let think = sampled.reasoning.clone().map(Delta::Think).map(piece);
                let text = (!sampled.text.is_empty()).then(|| piece(Delta::Scratch(sampled.text.clone())));
                stream::iter(think.into_iter().chain(text).chain([Ok(Piece::Finished(sampled))])).boxed()
            }
            Some(Scripted::Fails(failure)) => return Err(failure),
            Some(Scripted::Stalls(text)) => {
                stream::iter([piece(Delta::Scratch(text))]).chain(stream::pending()).boxed()
            }
            None => stream::pending().boxed(),
        })
    }
}
