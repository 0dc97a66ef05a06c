//! A conversation with one agent: its view, what comes in, what goes out.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use klbr_core::ids::Seq;
use klbr_core::runtime::clock::{Clock, SystemClock};
use klbr_core::time::Timestamp;
use klbr_core::update::{Happening, Update};

use super::outbox::{Outbox, Wish};
use crate::client::follow::{News, follow};
use crate::client::{CallError, Client};
use crate::view::{Kind, View};

pub(crate) struct Session {
    view: View,
    news: BoxStream<'static, News>,
    outbox: Outbox,
    lost: Option<String>,
    failures: u32,
}

impl Session {
    /// A conversation that begins with what happened after a record.
    pub(crate) fn new(client: &Client, after: Seq) -> Self {
        Session {
            view: View::default(),
            news: follow(client.clone(), after),
            outbox: Outbox::new(client.clone()),
            lost: None,
            failures: 0,
        }
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Why nothing comes in, while that is so.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// How often the model could not be asked since it last replied.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether everything that was said has been dealt with, as far as is known.
    pub(super) fn is_settled(&self) -> bool {
        self.outbox.is_empty() && self.view.pending().is_empty() && !self.view.in_turn()
    }

    /// Says something.
    pub(crate) fn say(&mut self, text: &str) {
        let key = self.outbox.put(Wish::Say(text.to_owned()));
        self.view.send(key, text.to_owned());
    }

    /// Asks for something that is not said.
    pub(super) fn ask(&mut self, wish: Wish) {
        self.outbox.put(wish);
    }

    /// Takes in the next thing that happens; gives the update, if it is a new one.
    ///
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Update> {
        tokio::select! {
            news = self.news.next() => match news? {
                News::Attached => {
                    self.lost = None;
                    None
                }
                News::Lost(error) => {
                    // What is underneath changes with each try and tells nobody anything.
                    self.lost = Some(error.to_string());
                    None
                }
                News::Update(update) => {
                    self.count(&update);
                    self.view.apply(&update).then_some(*update)
                }
            },
            (letter, answer) = self.outbox.next() => {
                match answer {
                    Ok(event) => self.view.sent(&letter.key, event),
                    Err(error) => self.view.refused(now(), &letter.key, &words(error)),
                }
                None
            }
        }
    }

    fn count(&mut self, update: &Update) {
        match update.happening {
            Happening::SamplingFailed { .. } => self.failures += 1,
            Happening::Replied { .. } | Happening::TurnStarted { .. } => self.failures = 0,
            _ => {}
        }
    }

    /// Adds a line of the client's own.
    pub(super) fn note(&mut self, text: &str) {
        self.view.note(now(), Kind::Note, text);
    }
}

/// The time, for what a client adds and counts down.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

fn words(error: CallError) -> String {
    crate::error::CommandError::from(error).message()
}
