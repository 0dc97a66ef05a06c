//! One process's life on the wire: from hello until it is gone. Owns the calls that are out; refuses to restart anything.

pub(crate) mod logs;
pub(crate) mod pulse;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout};

use crate::frame::{Decoder, FrameError};
use crate::host::HostCalls;
use crate::process::Process;
use crate::process::output::Kept;
use crate::protocol::{FailedHook, FromPython, HostReply, LoadedHook, Logged, PROTOCOL, ToPython};
use logs::Logs;
use pulse::{Beat, Heart, Pulse};
use wire::{Ask, CellEnded, Reply, Wire, within};

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process is gone, by itself or by somebody else's hand.
    Gone,
    /// It speaks another protocol, or none.
    Broken(String),
    /// It was not ready in time.
    NotReady,
    /// It missed a deadline and then did not answer to being cancelled.
    Deaf(Arc<str>),
    /// It had nothing to do, and did not say that it is there.
    Silent,
    /// The host wants no more of it.
    Asked(Arc<str>),
}

/// What the process says once, when it can be used.
pub(crate) struct Ready {
    pub(crate) python: String,
    pub(crate) hooks: Vec<LoadedHook>,
    pub(crate) failed: Vec<FailedHook>,
}

/// How a session is held.
pub(crate) struct Session {
    pub(crate) wire: Arc<Wire>,
    pub(crate) outgoing: UnboundedReceiver<Vec<u8>>,
    pub(crate) asks: UnboundedReceiver<Ask>,
    pub(crate) host: Arc<dyn HostCalls>,
    /// By when it must be ready.
    pub(crate) start_by: Instant,
    /// How long it may take to answer a cancellation.
    pub(crate) grace: Duration,
    /// How it is felt for while it has nothing to do; `None` where nobody asks.
    pub(crate) pulse: Option<Pulse>,
    /// Hears what user code logs.
    pub(crate) logged: Arc<dyn Fn(Logged) + Send + Sync>,
    /// Makes what keeps the output of one cell and of the time until the next ends: standard output, then error.
    pub(crate) fresh: Arc<dyn Fn() -> (Kept, Kept) + Send + Sync>,
}

/// Host calls that are answered at once, over all calls of a process.
const HOST_CALLS_AT_ONCE: usize = 64;

/// Serves a process until it is over. Nothing of it is killed here.
pub(crate) async fn serve(
    process: &mut Process,
    mut session: Session,
    on_ready: &mut (dyn FnMut(Ready) + Send),
) -> End {
    let Process { child, socket, stdout, stderr, guard, .. } = process;
    let raw = rustix::io::dup(&*socket);
    let (mut reader, mut writer) = socket.split();
    let mut decoder = Decoder::default();
    let mut state = State {
        session: &session.wire,
        python: None,
        is_ready: false,
        overdue: BTreeMap::new(),
        pulse: session.pulse,
        heart: None,
        logs: Logs::new(Instant::now(), Arc::clone(&session.logged)),
    };
    let mut host_calls = FuturesUnordered::new();
    let outgoing = &mut session.outgoing;
    let mut writing = pin!(async move {
        while let Some(bytes) = outgoing.recv().await {
            if writer.write_all(&bytes).await.is_err() {
                break;
            }
        }
        // The reader learns that the connection is gone, and says so.
        std::future::pending::<()>().await;
    });
    let end = loop {
        let alarm = match state.is_ready {
            false => Some(session.start_by),
            true => state.overdue.values().copied().chain(state.heart.as_ref().map(Heart::due)).min(),
        };
        tokio::select! {
            frame = decoder.read::<FromPython>(&mut reader) => match frame {
                Ok(FromPython::HostCall { id, n, name, arguments }) => {
                    let wire = Arc::clone(&session.wire);
                    let host = Arc::clone(&session.host);
                    let is_full = host_calls.len() >= HOST_CALLS_AT_ONCE;
                    match wire.host_call(id, n, is_full) {
                        Ok((caller, chain)) => host_calls.push(within(chain, async move {
                            let result = match host.call(caller, &name, arguments).await {
                                Ok(value) => HostReply::Ok(value),
                                Err(error) => HostReply::Error { code: error.code, message: error.message },
                            };
                            (id, n, result)
                        })),
                        Err(result) => wire.send(&ToPython::HostResult { id, n, result }),
                    }
                }
                Ok(FromPython::CellResult { id, result }) => {
                    stdout.drain_now();
                    stderr.drain_now();
                    let (fresh_out, fresh_err) = (session.fresh)();
                    let stdout = std::mem::replace(&mut stdout.kept, fresh_out);
                    let stderr = std::mem::replace(&mut stderr.kept, fresh_err);
                    let has_children = guard.tree().has_children();
                    let ended = CellEnded { reply: result, stdout, stderr, has_children };
                    session.wire.settle(id, Reply::Cell(Box::new(ended)));
                    state.overdue.remove(&id);
                }
                Ok(frame) => if let Some(end) = state.take(frame, on_ready) { break end },
                Err(FrameError::Ended | FrameError::Io(_)) => break End::Gone,
                Err(error) => break End::Broken(error.to_string()),
            },
            Some((id, n, result)) = host_calls.next(), if !host_calls.is_empty() => {
                session.wire.send(&ToPython::HostResult { id, n, result });
            }
            Some(ask) = session.asks.recv() => match ask {
                Ask::Overdue(id) => {
                    state.overdue.entry(id).or_insert(Instant::now() + session.grace);
                }
                Ask::Interrupt => guard.tree().interrupt(),
                Ask::Sweep(done) => {
                    let tree = guard.tree().clone();
                    let swept = tokio::task::spawn_blocking(move || {
                        tree.sweep(crate::process::tree::Reach::Descendants)
                    });
                    // A sweep takes milliseconds, and the process is idle meanwhile: nothing is lost by waiting.
                    let count = timeout(Duration::from_secs(5), swept).await.ok().and_then(Result::ok);
                    // Whoever asked may be gone.
                    let _ = done.send(count.unwrap_or_default());
                }
                Ask::End(reason) => break End::Asked(reason),
            },
            _ = child.wait() => {
                // What it said in its last moment counts.
                let mut last = [0; 16 * 1024];
                while let Some(length @ 1..) = raw.as_ref().ok().and_then(|raw| rustix::io::read(raw, &mut last).ok()) {
                    decoder.feed(&last[..length]);
                }
                let mut end = End::Gone;
                while let Ok(Some(frame)) = decoder.next::<FromPython>() {
                    if let Some(why) = state.take(frame, on_ready) {
                        end = why;
                        break;
                    }
                }
                break end;
            }
            () = &mut writing => {}
            () = stdout.drain() => {}
            () = stderr.drain() => {}
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                if !state.is_ready {
                    break End::NotReady;
                }
                let now = Instant::now();
                if let Some((id, _)) = state.overdue.iter().find(|(_, at)| **at <= now) {
                    break End::Deaf(session.wire.who(*id));
                }
                match state.heart.as_mut().map(|heart| heart.beat(now, session.wire.is_idle())) {
                    Some(Beat::Ask(n)) => session.wire.send(&ToPython::Ping { n }),
                    Some(Beat::Missed) => break End::Silent,
                    Some(Beat::Rest) | None => {}
                }
            }
        }
    };
    session.wire.close();
    end
}

struct State<'a> {
    session: &'a Wire,
    python: Option<String>,
    is_ready: bool,
    /// The calls that were cancelled, and when patience with them ends.
    overdue: BTreeMap<u64, Instant>,
    pulse: Option<Pulse>,
    /// There once it is ready.
    heart: Option<Heart>,
    logs: Logs,
}

impl State<'_> {
    fn take(&mut self, frame: FromPython, on_ready: &mut (dyn FnMut(Ready) + Send)) -> Option<End> {
        match frame {
            FromPython::Hello { protocol, .. } if protocol != PROTOCOL => {
                return Some(End::Broken(format!("it speaks protocol {protocol}, and the host {PROTOCOL}")));
            }
            FromPython::Hello { python, .. } => self.python = Some(python),
            FromPython::Ready { hooks, failed } => {
                let Some(python) = self.python.take() else {
                    return Some(End::Broken("it is ready without having said hello".to_owned()));
                };
                self.is_ready = true;
                self.heart = self.pulse.map(|pulse| Heart::new(Instant::now(), pulse));
                on_ready(Ready { python, hooks, failed });
            }
            FromPython::Result { id, ok, error } => {
                self.overdue.remove(&id);
                self.session.settle(id, Reply::Result(error.map_or(Ok(ok), Err)));
            }
            FromPython::VarsResult { id, vars } => {
                self.overdue.remove(&id);
                self.session.settle(id, Reply::Vars(vars));
            }
            FromPython::Log(record) => {
                let run = record.id.and_then(|id| self.session.caller(id));
                let (level, logger, message) = (record.level, record.logger, record.message);
                let (file, line, left_out) = (record.file, record.line, record.left_out);
                self.logs.take(Instant::now(), Logged { level, logger, message, file, line, run, left_out });
            }
            FromPython::Pong { n } => {
                if let Some(heart) = &mut self.heart {
                    heart.answered(Instant::now(), n);
                }
            }
            // These two need what only the loop has; from a process that is gone they have no answer.
            FromPython::CellResult { .. } | FromPython::HostCall { .. } => {}
        }
        None
    }
}
