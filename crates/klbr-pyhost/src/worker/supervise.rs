//! The loop that keeps a worker alive: start, serve, kill, pause, start again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{Change, Loaded, Patience, Spec, State, Watch};
use crate::host::HostCalls;
use crate::process::output::Kept;
use crate::protocol::{Hello, PROTOCOL, ToPython};
use crate::session::wire::Wire;
use crate::session::{End, Session, serve};

/// Runs until `stop` says so.
pub(super) async fn run(
    spec: Spec,
    host: Arc<dyn HostCalls>,
    watch: Arc<dyn Watch>,
    state: watch::Sender<State>,
    mut stop: watch::Receiver<bool>,
) {
    let mut deaths = 0;
    loop {
        let born = Instant::now();
        state.send_replace(State::Starting);
        let outcome = one_life(&spec, &host, &*watch, &state, &mut stop).await;
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
    host: &Arc<dyn HostCalls>,
    watch: &dyn Watch,
    state: &watch::Sender<State>,
    stop: &mut watch::Receiver<bool>,
) -> Option<Death> {
    if *stop.borrow() {
        return None;
    }
    let started = Instant::now();
    let mut process = match spec.program.start("klbr.worker") {
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
        role: "worker",
        epoch: spec.epoch,
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
        fresh: Box::new(|| (Kept::new(0), Kept::new(0))),
    };
    let mut on_ready = |ready: crate::session::Ready| {
        let took = started.elapsed();
        watch.changed(spec.epoch, Change::Ready { pid, took, failed: ready.failed.clone() });
        let (hooks, failed) = (ready.hooks, ready.failed);
        let loaded =
            Loaded { pid, python: ready.python.into(), hooks, failed, took, wire: Arc::clone(&wire) };
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
    let (status, stderr) = process.end().await;
    let reason = match end? {
        End::Gone => match status {
            Some(status) => format!("it ended by itself: {status}"),
            None => "it ended by itself".to_owned(),
        },
        End::Broken(reason) => format!("it broke the protocol: {reason}"),
        End::NotReady => format!("it was not ready within {:?}", spec.patience.start),
        End::Deaf(who) => format!("{who} missed its deadline and did not answer to being cancelled"),
        End::Asked(reason) => reason.to_string(),
    };
    Some(Death::Died { pid, reason: reason.into(), stderr: stderr.into() })
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
