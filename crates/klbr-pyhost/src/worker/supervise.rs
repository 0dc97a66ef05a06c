//! The loop that keeps a worker alive: start, serve, kill, pause, start again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{Change, Loaded, Patience, Spec, State, Watch};
use crate::host::HostCalls;
use crate::process::output::Kept;
use crate::protocol::{Hello, PROTOCOL, ToPython};
use crate::session::pulse::Pulse;
use crate::session::wire::Wire;
use crate::session::{End, Session, serve};

/// What a supervised process is for.
#[derive(Clone)]
pub(crate) enum Role {
    /// It answers calls; one epoch for all its lives.
    Worker,
    /// It runs cells; each life is a generation of its own. Makes what keeps the output of one cell.
    Workbench(Arc<dyn Fn() -> (Kept, Kept) + Send + Sync>),
}

/// Runs until `stop` says so.
pub(super) async fn run(
    spec: Spec,
    role: Role,
    host: Arc<dyn HostCalls>,
    watch: Arc<dyn Watch>,
    state: watch::Sender<State>,
    mut stop: watch::Receiver<bool>,
) {
    let mut deaths = 0;
    for life in 1.. {
        let born = Instant::now();
        state.send_replace(State::Starting);
        let outcome = one_life(&spec, (&role, life), &host, &watch, &state, &mut stop).await;
        let Some(death) = outcome else { break };
        deaths = if born.elapsed() > spec.patience.calm { 1 } else { deaths + 1 };
        let pause = pause(&spec.patience, deaths);
        state.send_replace(State::BackingOff { reason: death.reason(), until: Instant::now() + pause });
        watch.changed(spec.epoch, death.into_change(pause));
        tokio::select! {
            () = sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    state.send_replace(State::Stopped);
}

/// The pause before the next start. The first death costs nothing: the next call should find a worker.
fn pause(patience: &Patience, deaths: u32) -> Duration {
    match deaths {
        0 | 1 => Duration::ZERO,
        n => (patience.back_off * 2u32.saturating_pow((n - 2).min(16))).min(patience.back_off_max),
    }
}

/// What a process left behind when it was gone, with everything that came of it.
pub(crate) struct LastWords {
    pub(crate) reason: Arc<str>,
    pub(crate) stdout: Kept,
    pub(crate) stderr: Kept,
}

enum Death {
    NotStarted { reason: Arc<str> },
    Died { pid: u32, reason: Arc<str>, stderr: Arc<str> },
}

impl Death {
    fn reason(&self) -> Arc<str> {
        match self {
            Death::NotStarted { reason } | Death::Died { reason, .. } => Arc::clone(reason),
        }
    }

    fn into_change(self, pause: Duration) -> Change {
        match self {
            Death::NotStarted { reason } => Change::NotStarted { reason, pause },
            Death::Died { pid, reason, stderr } => Change::Died { pid, reason, stderr, pause },
        }
    }
}

/// One process, from its start to its end; `None` when it was told to stop.
async fn one_life(
    spec: &Spec,
    (role, life): (&Role, u64),
    host: &Arc<dyn HostCalls>,
    watch: &Arc<dyn Watch>,
    state: &watch::Sender<State>,
    stop: &mut watch::Receiver<bool>,
) -> Option<Death> {
    if *stop.borrow() {
        return None;
    }
    let started = Instant::now();
    let (name, module, number): (_, _, u64) = match role {
        Role::Worker => ("worker", "klbr.worker", spec.epoch),
        Role::Workbench(_) => ("workbench", "klbr.workbench", life),
    };
    let fresh: Arc<dyn Fn() -> (Kept, Kept) + Send + Sync> = match role {
        Role::Worker => Arc::new(|| (Kept::new(0), Kept::new(0))),
        Role::Workbench(fresh) => Arc::clone(fresh),
    };
    let mut process = match spec.program.start(module) {
        Ok(process) => process,
        Err(error) => {
            let reason = format!("{} did not start: {error}", spec.program.python.display());
            return Some(Death::NotStarted { reason: reason.into() });
        }
    };
    let pid = process.pid();
    watch.changed(spec.epoch, Change::Started { pid });
    let (wire, outgoing, asks) = Wire::new();
    wire.send(&ToPython::Hello(Hello {
        protocol: PROTOCOL,
        role: name,
        epoch: number,
        paths: spec.paths.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        hooks: spec.hello_hooks(),
        reads: host.offers().into(),
    }));
    let session = Session {
        wire: Arc::clone(&wire),
        outgoing,
        asks,
        host: Arc::clone(host),
        start_by: started + spec.patience.start,
        grace: spec.patience.grace,
        // A workbench that is busy with what a cell left behind is worth more than a fresh one: its next cell tells.
        pulse: matches!(role, Role::Worker)
            .then_some(Pulse { every: spec.patience.heartbeat, patience: spec.patience.silence }),
        logged: {
            let (watch, epoch) = (Arc::clone(watch), spec.epoch);
            Arc::new(move |logged| watch.logged(epoch, logged))
        },
        fresh: Arc::clone(&fresh),
    };
    if matches!(role, Role::Workbench(_)) {
        (process.stdout.kept, process.stderr.kept) = fresh();
    }
    let (tell, ended) = watch::channel(None);
    let mut on_ready = |ready: crate::session::Ready| {
        let took = started.elapsed();
        watch.changed(spec.epoch, Change::Ready { pid, took, failed: ready.failed.clone() });
        let (hooks, failed) = (ready.hooks, ready.failed);
        let loaded = Loaded {
            pid,
            python: ready.python.into(),
            hooks,
            failed,
            took,
            generation: number,
            wire: Arc::clone(&wire),
            ended: ended.clone(),
        };
        state.send_replace(State::Ready(Arc::new(loaded)));
    };
    let end = {
        let serving = std::pin::pin!(serve(&mut process, session, &mut on_ready));
        tokio::select! {
            end = serving => Some(end),
            _ = stop.wait_for(|stop| *stop) => None,
        }
    };
    // New calls wait for the next one from here on.
    state.send_replace(State::Starting);
    wire.close();
    let left = process.end().await;
    let (status, stderr) = (left.status, left.stderr.last(4096));
    let reason = match end.unwrap_or(End::Asked("it was stopped".into())) {
        End::Gone => match status {
            Some(status) => format!("it ended by itself: {status}"),
            None => "it ended by itself".to_owned(),
        },
        End::Broken(reason) => format!("it broke the protocol: {reason}"),
        End::NotReady => format!("it was not ready within {:?}", spec.patience.start),
        End::Deaf(who) => format!("{who} missed its deadline and did not answer to being cancelled"),
        End::Silent => {
            format!(
                "it had nothing to do and did not answer its heartbeat within {:?}",
                spec.patience.silence
            )
        }
        End::Asked(reason) => reason.to_string(),
    };
    let reason: Arc<str> = reason.into();
    tell.send_replace(Some(Arc::new(LastWords {
        reason: reason.clone(),
        stdout: left.stdout,
        stderr: left.stderr,
    })));
    match *stop.borrow() {
        true => None,
        false => Some(Death::Died { pid, reason, stderr: stderr.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_the_first_is_none() {
        let patience = Patience { back_off_max: Duration::from_millis(300), ..Patience::default() };
        let pauses: Vec<u128> = (1..7).map(|n| pause(&patience, n).as_millis()).collect();
        assert_eq!(pauses, [0, 50, 100, 200, 300, 300]);
    }
}
