//! One connection of one shard, from its first byte to its end.

use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, timeout_at};
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::{Message, Shard, ShardState};

use super::{End, Now, Position};
use crate::backoff::Backoff;
use crate::discord::Inner;
use crate::kept::Session;
use crate::payload::{Dispatch, Envelope};
use crate::pump::{Item, What};

/// How long a connection may take until its session has begun or is resumed.
const BEGINNING: Duration = Duration::from_secs(60);
/// How long a live connection may be silent: heartbeats are answered every 45 seconds or so.
const SILENCE: Duration = Duration::from_secs(100);
/// How long a session that began has to last, so that the next one comes without a longer pause.
const PROVEN: Duration = Duration::from_secs(30);
/// The operation that greets.
const HELLO: u64 = 10;

pub(super) struct Connection<'a> {
    inner: &'a Inner,
    number: u32,
    total: u32,
    items: &'a mpsc::Sender<Item>,
    position: &'a mut Position,
    backoff: &'a mut Backoff,
    /// When its session began or was resumed.
    live: Option<Instant>,
    /// Whether the gateway has greeted.
    is_greeted: bool,
}

impl<'a> Connection<'a> {
    pub(super) fn new(
        inner: &'a Inner,
        number: u32,
        total: u32,
        items: &'a mpsc::Sender<Item>,
        position: &'a mut Position,
        backoff: &'a mut Backoff,
    ) -> Self {
        Connection { inner, number, total, items, position, backoff, live: None, is_greeted: false }
    }

    /// Whether it came so far that a session could begin.
    pub(super) fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// Whether its session began or was resumed.
    pub(super) fn was_live(&self) -> bool {
        self.live.is_some()
    }

    /// Takes in what is told until the connection ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the connection. What was told and not admitted is told or fetched again.
    pub(super) async fn run(&mut self, mut shard: Shard<Now>) -> End {
        let begin_by = Instant::now() + BEGINNING;
        let end = loop {
            let until = if self.live.is_some() { Instant::now() + SILENCE } else { begin_by };
            let told = match timeout_at(until, shard.next()).await {
                Ok(told) => told,
                Err(_) => break End::Lost("nothing was heard for too long".to_owned()),
            };
            match told {
                Some(Ok(Message::Text(frame))) => {
                    if let Some(end) = self.take(&frame, &shard) {
                        break end;
                    }
                    if matches!(shard.state(), ShardState::Disconnected { .. }) {
                        break self.told_to_go(&mut shard).await;
                    }
                }
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.as_ref().map(|frame| frame.reason.as_ref()).unwrap_or_default();
                    break End::of_close(frame.as_ref().map(|frame| frame.code), reason);
                }
                Some(Err(error)) => match error.kind() {
                    ReceiveMessageErrorType::Deserializing { event } => {
                        let event: String = event.chars().take(200).collect();
                        tracing::warn!(
                            shard = self.number,
                            event,
                            "a frame that cannot be read is passed over"
                        );
                    }
                    ReceiveMessageErrorType::Reconnect => {
                        let source = error.into_source().map(|source| source.to_string());
                        break End::Unreachable(source.unwrap_or_default());
                    }
                    _ => break End::Lost(error.to_string()),
                },
                None => break End::Lost("the connection is over".to_owned()),
            }
        };
        if self.live.is_some_and(|live| live.elapsed() >= PROVEN) {
            self.backoff.reset();
        }
        if matches!(end, End::Invalid(_)) {
            self.backoff.at_least_a_second();
        }
        end
    }

    /// The gateway wants another connection, or another session: says good-bye, without waiting for an answer.
    async fn told_to_go(&mut self, shard: &mut Shard<Now>) -> End {
        // One look at the shard sends its close frame; another one might connect anew.
        std::future::poll_fn(|context| {
            let _ = shard.poll_next_unpin(context);
            Poll::Ready(())
        })
        .await;
        match shard.session().is_some() {
            true => End::Lost("the gateway asks for another connection".to_owned()),
            false => End::Invalid("the gateway calls the session invalid".to_owned()),
        }
    }

    /// Takes one frame in; an end, if it brings one.
    fn take(&mut self, frame: &str, shard: &Shard<Now>) -> Option<End> {
        let envelope: Envelope = match serde_json::from_str(frame) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::warn!(shard = self.number, %error, "a frame that cannot be read is passed over");
                return None;
            }
        };
        // A shard whose connection ends without a word makes another one by itself and at once. Its greeting is the
        // first sign of that, before anything was sent there; the next connection is made here, after a pause.
        if envelope.op == HELLO && std::mem::replace(&mut self.is_greeted, true) {
            return Some(End::Lost("the connection ended without a word".to_owned()));
        }
        let (Some(name), Some(sequence)) = (envelope.name, envelope.sequence) else { return None };
        let Some(dispatch) = Dispatch::read(&name, &envelope.data) else {
            tracing::warn!(
                shard = self.number,
                name,
                sequence,
                "a dispatch that cannot be read is passed over"
            );
            return self.enqueue(sequence, What::Heard(Default::default()));
        };
        if let Dispatch::Ready(_) = dispatch {
            self.hear(dispatch);
            return self.begin(shard, sequence);
        }
        if let Dispatch::Resumed = dispatch {
            tracing::info!(shard = self.number, "the gateway's session is resumed");
            self.live = Some(Instant::now());
            self.position.is_url_bad = false;
            self.backoff.reset();
        }
        let tells_of_gaps = matches!(dispatch, Dispatch::Guild(_));
        let heard = self.hear(dispatch);
        if tells_of_gaps {
            self.inner.gaps.notify_one();
        }
        self.enqueue(sequence, What::Heard(heard))
    }

    fn hear(&self, dispatch: Dispatch) -> crate::intake::Heard {
        let mut world = self.inner.world();
        self.inner.intake().handle(&mut world, dispatch)
    }

    /// Takes in that a session has begun. One that the pump has no room for is not: it begins anew.
    fn begin(&mut self, shard: &Shard<Now>, sequence: u64) -> Option<End> {
        let id = shard.session()?.id().to_owned();
        let url = shard.resume_url().map(str::to_owned);
        let session = Session { id, url, sequence, shards: self.total };
        *self.position = Position::default();
        // Now, before anything is told: what this session tells of was not missed.
        self.inner.world().begin(self.number, self.total);
        self.inner.gaps.notify_one();
        let end = self.enqueue(sequence, What::Began(session.clone()));
        if end.is_none() {
            tracing::info!(shard = self.number, "the gateway's session has begun");
            self.live = Some(Instant::now());
            self.position.session = Some(session);
        }
        end
    }

    /// Hands a dispatch to the pump. What it has no room for is not taken in: it is told again after a resume.
    fn enqueue(&mut self, sequence: u64, what: What) -> Option<End> {
        match self.items.try_send(Item { shard: self.number, sequence, what }) {
            Ok(()) => {
                if let Some(session) = &mut self.position.session {
                    session.sequence = session.sequence.max(sequence);
                }
                None
            }
            Err(TrySendError::Full(_)) => Some(End::Overflow),
            Err(TrySendError::Closed(_)) => Some(End::Closed),
        }
    }
}
