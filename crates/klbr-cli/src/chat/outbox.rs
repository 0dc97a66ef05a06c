//! What the operator asks for, on its way: in order, under a key each, tried again until somebody answers.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use klbr_core::ids::{ActionId, EventId};
use klbr_server::api::path;

use crate::client::{CallError, Client, fresh_key};

/// The first pause before another try; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause between tries.
const LONGEST: Duration = Duration::from_secs(3);

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To say this.
    Say(String),
    /// To end the turn.
    Interrupt,
    /// To let a held effect happen, or not.
    Resolve(ActionId, bool),
}

/// A wish under its key.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) key: String,
    pub(super) wish: Wish,
}

pub(super) struct Outbox {
    client: Client,
    letters: VecDeque<Letter>,
    flight: Option<BoxFuture<'static, Result<EventId, CallError>>>,
    pause: Duration,
}

impl Outbox {
    pub(super) fn new(client: Client) -> Self {
        Outbox { client, letters: VecDeque::new(), flight: None, pause: Duration::ZERO }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Puts a wish in; answers with its key.
    pub(super) fn put(&mut self, wish: Wish) -> String {
        let key = fresh_key("chat");
        self.letters.push_back(Letter { key: key.clone(), wish });
        key
    }

    /// The next letter that was answered, and how. Pends while there is none.
    ///
    /// Cancel safe: what is on its way stays on its way.
    pub(super) async fn next(&mut self) -> (Letter, Result<EventId, CallError>) {
        loop {
            let Some(letter) = self.letters.front() else { return std::future::pending().await };
            let flight = self
                .flight
                .get_or_insert_with(|| deliver(self.client.clone(), letter.clone(), self.pause).boxed());
            let answer = flight.await;
            self.flight = None;
            if answer.as_ref().is_err_and(CallError::is_transient) {
                self.pause = (self.pause * 2).clamp(FIRST, LONGEST);
                continue;
            }
            self.pause = Duration::ZERO;
            let letter = self.letters.pop_front().expect("the front is still the one that was sent");
            return (letter, answer);
        }
    }
}

async fn deliver(client: Client, letter: Letter, pause: Duration) -> Result<EventId, CallError> {
    tokio::time::sleep(pause).await;
    match &letter.wish {
        Wish::Say(text) => client.say(&letter.key, text).await,
        Wish::Interrupt => client.command(path::INTERRUPT, &letter.key).await,
        Wish::Resolve(action, allow) => client.resolve(&letter.key, *action, *allow).await,
    }
}
