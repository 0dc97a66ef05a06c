//! The calls that are out on one connection. Owns their ids, their answers, and who they were made for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::frame;
use crate::host::Caller;
use crate::process::output::Kept;
use crate::protocol::{CellReply, HookError, HostReply, ToPython, Variable};

/// Calls that may be out at once.
const MAX_PENDING: usize = 1024;

/// An answer.
pub(crate) enum Reply {
    Result(Result<Value, HookError>),
    Cell(Box<CellEnded>),
    Vars(Vec<Variable>),
}

/// A cell's answer, and what the host saw of it.
pub(crate) struct CellEnded {
    pub(crate) reply: CellReply,
    pub(crate) stdout: Kept,
    pub(crate) stderr: Kept,
    /// Whether it left children behind.
    pub(crate) has_children: bool,
}

/// What the loop that serves the process is asked.
pub(crate) enum Ask {
    /// A call was given up; its answer is awaited for a little while.
    Overdue(u64),
    /// Send SIGINT.
    Interrupt,
    /// Kill everything that the process started; answers with how many there were.
    Sweep(oneshot::Sender<usize>),
    /// End the session.
    End(Arc<str>),
}

/// For whom a call is made, and how much it may ask of the host.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) who: Arc<str>,
    pub(crate) owner: Arc<str>,
    pub(crate) host_calls: u64,
}

/// The calling side of a connection.
pub(crate) struct Wire {
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    asks: mpsc::UnboundedSender<Ask>,
    /// `None` once the connection is over.
    pending: Mutex<Option<HashMap<u64, Pending>>>,
    next: AtomicU64,
}

struct Pending {
    /// `None` once the caller gave up.
    reply: Option<oneshot::Sender<Reply>>,
    context: Context,
    /// Whose hooks are at work above this call, this one included.
    chain: Chain,
    asked: u64,
}

type Chain = Vec<Arc<str>>;

tokio::task_local! {
    /// The hooks on whose behalf this task works.
    static CHAIN: Chain;
}

/// Runs host work on behalf of the hooks in `chain`.
pub(crate) fn within<F: Future>(chain: Chain, work: F) -> impl Future<Output = F::Output> {
    CHAIN.scope(chain, work)
}

/// Why a call could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    #[error("the process is gone")]
    Closed,
    #[error("{MAX_PENDING} calls are out already")]
    Full,
    #[error("{0} would ask itself")]
    Recursive(Arc<str>),
    #[error("the question cannot be sent: {0}")]
    Unsendable(#[from] frame::FrameError),
}

impl Wire {
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>, mpsc::UnboundedReceiver<Ask>) {
        let (outgoing, sent) = mpsc::unbounded_channel();
        let (asks, asked) = mpsc::unbounded_channel();
        let pending = Mutex::new(Some(HashMap::new()));
        (Arc::new(Wire { outgoing, asks, pending, next: AtomicU64::new(1) }), sent, asked)
    }

    fn pending(&self) -> MutexGuard<'_, Option<HashMap<u64, Pending>>> {
        // Nothing that holds the lock can panic in the middle of a change.
        self.pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sends a message; a connection that is over swallows it.
    pub(crate) fn send(&self, message: &ToPython) {
        let bytes = frame::encode(message).or_else(|error| match message {
            ToPython::HostResult { id, n, .. } => {
                let result = HostReply::Error { code: "too_large", message: error.to_string() };
                frame::encode(&ToPython::HostResult { id: *id, n: *n, result })
            }
            _ => Err(error),
        });
        if let Ok(bytes) = bytes {
            let _ = self.outgoing.send(bytes);
        }
    }

    pub(crate) fn ask(&self, ask: Ask) {
        let _ = self.asks.send(ask);
    }

    /// Makes a call.
    pub(crate) fn begin(
        self: &Arc<Self>,
        context: Context,
        message: impl FnOnce(u64) -> ToPython,
    ) -> Result<Waiting, BeginError> {
        let mut chain = CHAIN.try_with(Clone::clone).unwrap_or_default();
        if chain.contains(&context.who) {
            return Err(BeginError::Recursive(context.who));
        }
        chain.push(Arc::clone(&context.who));
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let bytes = frame::encode(&message(id))?;
        let (reply, answer) = oneshot::channel();
        {
            let mut pending = self.pending();
            let pending = pending.as_mut().ok_or(BeginError::Closed)?;
            if pending.len() >= MAX_PENDING {
                return Err(BeginError::Full);
            }
            pending.insert(id, Pending { reply: Some(reply), context, chain, asked: 0 });
        }
        let _ = self.outgoing.send(bytes);
        Ok(Waiting { wire: Arc::clone(self), id, answer })
    }

    pub(crate) fn settle(&self, id: u64, reply: Reply) {
        let waiting = self.pending().as_mut().and_then(|pending| pending.remove(&id));
        // An answer after the deadline has no taker, and needs none.
        if let Some(waiting) = waiting.and_then(|waiting| waiting.reply) {
            let _ = waiting.send(reply);
        }
    }

    /// Who may make this host call; else what it is answered with.
    pub(crate) fn host_call(&self, id: u64, n: u64, is_full: bool) -> Result<(Caller, Chain), HostReply> {
        let refuse = |code, message: String| Err(HostReply::Error { code, message });
        let mut pending = self.pending();
        let Some(call) = pending.as_mut().and_then(|pending| pending.get_mut(&id)) else {
            return refuse("over", "the call that asks is over".to_owned());
        };
        if call.reply.is_none() {
            return refuse("over", "the call that asks has missed its deadline".to_owned());
        }
        call.asked += 1;
        if call.asked > call.context.host_calls {
            let message =
                format!("{} has asked the host {} times already", call.context.who, call.context.host_calls);
            return refuse("too_many", message);
        }
        if is_full {
            return refuse("busy", "too many calls of the host are under way".to_owned());
        }
        let caller = Caller { who: call.context.who.clone(), owner: call.context.owner.clone(), number: n };
        Ok((caller, call.chain.clone()))
    }

    pub(crate) fn who(&self, id: u64) -> Arc<str> {
        self.caller(id).unwrap_or_else(|| "a call".into())
    }

    /// For whom a call is made, while it is out.
    pub(crate) fn caller(&self, id: u64) -> Option<Arc<str>> {
        let pending = self.pending();
        pending.as_ref().and_then(|pending| pending.get(&id)).map(|call| call.context.who.clone())
    }

    /// Whether no call is out.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending().as_ref().is_none_or(HashMap::is_empty)
    }

    /// Ends every call that is out: its waiter hears that the process is gone.
    pub(crate) fn close(&self) {
        *self.pending() = None;
    }
}

/// A call that is out. Dropping it cancels it.
pub(crate) struct Waiting {
    wire: Arc<Wire>,
    id: u64,
    answer: oneshot::Receiver<Reply>,
}

impl Waiting {
    /// The answer; `None` when the process is gone. Cancel-safe.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        (&mut self.answer).await.ok()
    }

    /// Asks for the call to be cancelled, and goes on waiting.
    pub(crate) fn cancel(&self) {
        self.wire.send(&ToPython::Cancel { id: self.id });
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let is_out = match self.wire.pending().as_mut().and_then(|pending| pending.get_mut(&self.id)) {
            Some(call) => {
                call.reply = None;
                true
            }
            None => false,
        };
        if is_out {
            self.cancel();
            self.wire.ask(Ask::Overdue(self.id));
        }
    }
}
