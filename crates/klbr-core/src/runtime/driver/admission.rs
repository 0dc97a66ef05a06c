//! Requests from handles: admission in batches, and questions.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Driver;
use crate::event::EventKey;
use crate::ids::EventId;
use crate::input::Input;
use crate::policy::Observed;
use crate::runtime::handle::{Admission, AdmitError, Offered, Request};

/// Everyone who waits for one admission; those after the first offered the same happening again.
#[derive(Default)]
pub(super) struct Ticket {
    replies: Vec<oneshot::Sender<Result<Admission, AdmitError>>>,
}

impl Ticket {
    pub(super) fn acknowledge(self, event: EventId) {
        for (n, reply) in self.replies.into_iter().enumerate() {
            // Whoever asked may have gone; the event is durable all the same.
            let _ = reply.send(Ok(Admission { event, repeated: n > 0 }));
        }
    }

    pub(super) fn refuse(self, why: &str) {
        for reply in self.replies {
            let _ = reply.send(Err(AdmitError::Store(why.to_owned())));
        }
    }
}

impl Driver {
    pub(super) async fn take_requests(&mut self, requests: impl Iterator<Item = Request>) {
        let mut offered = Vec::new();
        for request in requests {
            match request {
                Request::Admit(events) => offered.extend(events),
                // Whoever asked a question may have gone before its answer.
                Request::Status(reply) => drop(reply.send(self.agent.status())),
                Request::Waiting { limit, reply } => drop(reply.send(self.agent.waiting(limit))),
                Request::Attention { limit, reply } => drop(reply.send(self.agent.attention(limit))),
                Request::Conversations(reply) => drop(reply.send(self.agent.conversations().clone())),
                Request::Observed { observed, reply } => {
                    self.observe(*observed).await;
                    drop(reply.send(self.poison.clone().map_or(Ok(()), |why| Err(AdmitError::Store(why)))));
                }
                Request::Observers(reply) => drop(reply.send(self.agent.observers().clone())),
                Request::Soul(reply) => drop(reply.send(self.agent.soul())),
                Request::Epochs(reply) => drop(reply.send(self.agent.epochs())),
                Request::Asked(reply) => drop(reply.send(self.agent.take_asked())),
                Request::ModelFound { model, context_tokens, reply } => {
                    // Also for the agent that is restored after the store has failed.
                    Arc::make_mut(&mut self.ports.config).model_found(&model, context_tokens);
                    if self.poison.is_none() {
                        self.handle(Input::ModelFound { model, context_tokens });
                    }
                    let _ = reply.send(());
                }
                Request::Shutdown(reply) => self.stopping = Some(reply),
            }
        }
        if !offered.is_empty() {
            self.admit(offered).await;
        }
    }

    /// Takes an observer's report in, and commits it.
    async fn observe(&mut self, observed: Observed) {
        if self.poison.is_none() {
            self.handle(Input::Observed { observed: Box::new(observed) });
            self.flush().await;
        }
    }

    /// Admits what is new, and answers repeats with the first one's id.
    async fn admit(&mut self, offered: Vec<Offered>) {
        if let Some(why) = &self.poison {
            for Offered { reply, .. } in offered {
                let _ = reply.send(Err(AdmitError::Store(why.clone())));
            }
            return;
        }
        let keys: Vec<EventKey> = offered.iter().map(|offered| offered.event.key()).collect();
        let known = match self.ports.store.find(&self.ports.config.agent, &keys).await {
            Ok(known) => known,
            Err(error) => {
                for Offered { reply, .. } in offered {
                    let _ = reply.send(Err(AdmitError::Store(error.to_string())));
                }
                return;
            }
        };
        let mut batch: HashMap<EventKey, u64> = HashMap::new();
        for ((Offered { event, reply }, key), known) in offered.into_iter().zip(keys).zip(known) {
            if let Some(event) = known {
                let _ = reply.send(Ok(Admission { event, repeated: true }));
                continue;
            }
            if let Some(ticket) = batch.get(&key).and_then(|ticket| self.tickets.get_mut(ticket)) {
                ticket.replies.push(reply);
                continue;
            }
            self.last_ticket += 1;
            let ticket = self.last_ticket;
            batch.insert(key, ticket);
            self.tickets.insert(ticket, Ticket { replies: vec![reply] });
            self.handle(Input::Admit { ticket, event });
        }
    }
}
