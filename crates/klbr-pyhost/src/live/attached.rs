//! What goes on beside the answering while an agent lives: its updates are followed, its observers hear, and a policy
//! whose worker keeps dying goes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::event::{Body, NewEvent, Priority, Source, SourceKind};
use klbr_core::ids::Epoch;
use klbr_core::runtime::AgentHandle;
use klbr_core::runtime::clock::{Clock as _, SystemClock};
use klbr_core::status::Activity;
use klbr_core::update::Happening;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Shared, admit};
use crate::history::{Deaths, History};
use crate::journal::{LAG, Records};
use crate::observers::{Journal, Observers, place};
use crate::worker::Change;

/// The instance name of what policy itself admits.
const INSTANCE: &str = "policy";

/// Under which key it is kept which activation's observers were put where they begin.
const PLACED: &str = "placed";

/// How often at most the agent is told of deaths of one epoch's worker.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The pause before something that the store refused is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// A policy at work on an agent. Dropping it stops its tasks and its workers.
pub struct Attached {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Attached {
    pub(super) fn start(shared: Arc<Shared>, agent: AgentHandle) -> Self {
        let mut tasks = JoinSet::new();
        let newest = watch::Sender::new(0);
        let records = Arc::new(Records::new(agent.clone(), newest.subscribe(), LAG));
        shared.reads.of(agent.store().clone(), agent.agent().clone());
        shared.agent.send_replace(Some(agent.clone()));
        tasks.spawn(follow(shared.clone(), agent.clone(), newest));
        tasks.spawn(observe(shared.clone(), agent.clone(), records));
        let died = shared.died.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(died) = died {
            tasks.spawn(guard(shared.clone(), agent, died));
        }
        Attached { shared, tasks }
    }

    /// Stops it, and waits until no task is left.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let at_work = {
            let mut at_work = self.shared.at_work.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::take(&mut *at_work)
        };
        drop(at_work);
    }
}

/// Hears what becomes durable: observers wait for it, old epochs go by it, and what was asked is kept by it.
async fn follow(shared: Arc<Shared>, agent: AgentHandle, newest: watch::Sender<u64>) {
    let mut updates = loop {
        match agent.updates(None).await {
            Ok(updates) => break updates,
            Err(_) => sleep(PAUSE).await,
        }
    };
    if let Ok(last) = agent.store().last(agent.agent()).await {
        newest.send_replace(last.0);
    }
    let is_turning = |activity: &Activity| match activity {
        Activity::Resting { .. } | Activity::Waiting { .. } => false,
        Activity::Sampling { .. } | Activity::Acting { .. } | Activity::Turning { .. } => true,
    };
    let (mut turns, mut newest_epoch) = match agent.status().await {
        Ok(status) => (is_turning(&status.activity), status.epoch),
        Err(_) => return,
    };
    loop {
        let update = match updates.next().await {
            Ok(Some(update)) => update,
            Ok(None) => return,
            Err(_) => {
                sleep(PAUSE).await;
                continue;
            }
        };
        match update.happening {
            Happening::TurnStarted { .. } => turns = true,
            Happening::TurnEnded { .. } => {
                turns = false;
                shared.retire(newest_epoch);
                shared.flush_questions().await;
            }
            Happening::Activated { epoch, .. } => {
                newest_epoch = epoch;
                // Nothing runs that began under an earlier one.
                if !turns {
                    shared.retire(epoch);
                }
            }
            _ => {}
        }
        if let Some(id) = update.id {
            newest.send_if_modified(|newest| {
                let is_news = id.0 > *newest;
                *newest = id.0.max(*newest);
                is_news
            });
        }
    }
}

/// Has the observers of what is in force hear, and puts them where their activation says, once.
async fn observe(shared: Arc<Shared>, agent: AgentHandle, records: Arc<Records>) {
    let mut announced = shared.announced.subscribe();
    loop {
        let epoch = *announced.borrow_and_update();
        let hearing = match epoch {
            Some(epoch) => hearing(&shared, &agent, &records, epoch).await,
            None => None,
        };
        if announced.changed().await.is_err() {
            return;
        }
        if let Some(hearing) = hearing {
            hearing.stop().await;
        }
    }
}

/// The observers of an activation at work, if it has any.
async fn hearing(
    shared: &Shared,
    agent: &AgentHandle,
    records: &Arc<Records>,
    epoch: Epoch,
) -> Option<Observers> {
    let at_work = shared.resolve(epoch).await.ok()?;
    let built = at_work.built()?;
    let hooks = built.hooks.as_ref()?;
    let manifest = built.manifest.clone();
    let observers = manifest.observers();
    if observers.is_empty() {
        return None;
    }
    let kept = agent.adapter(INSTANCE);
    let done = epoch.to_string();
    while kept.get(PLACED).await.ok().flatten().as_deref() != Some(done.as_bytes()) {
        let mut is_placed = true;
        for observer in &observers {
            is_placed &= place(observer, &**records).await.is_ok();
        }
        if is_placed && kept.put(&[(PLACED, Some(done.as_bytes()))]).await.is_ok() {
            break;
        }
        sleep(PAUSE).await;
    }
    let journal: Arc<dyn Journal> = records.clone();
    Some(Observers::start(hooks.worker().clone(), observers, journal, shared.recorder.clone()))
}

/// What is known of the deaths of one epoch's worker.
#[derive(Default)]
struct Dying {
    deaths: Deaths,
    told: Option<Instant>,
    untold: u32,
}

/// Tells of each death, and sends a policy back whose worker keeps dying.
async fn guard(shared: Arc<Shared>, agent: AgentHandle, mut died: mpsc::UnboundedReceiver<(Epoch, Change)>) {
    let started = Instant::now();
    let mut dying: BTreeMap<Epoch, Dying> = BTreeMap::new();
    while let Some((epoch, change)) = died.recv().await {
        let of_epoch = dying.entry(epoch).or_default();
        if of_epoch.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            let untold = std::mem::take(&mut of_epoch.untold);
            of_epoch.told = Some(Instant::now());
            // A store that refuses is heard of elsewhere.
            let _ = agent.admit(death(epoch, &change, untold)).await;
        } else {
            of_epoch.untold += 1;
        }
        let Change::Died { reason, stderr, .. } = change else {
            // Nothing could be started at all: that is this machine's fault, and an older policy would fare no better.
            continue;
        };
        if !of_epoch.deaths.note(started.elapsed(), shared.probation) {
            continue;
        }
        let reason = match stderr.trim() {
            "" => reason,
            words => format!("{reason}\n{words}").into(),
        };
        let Ok(epochs) = agent.epochs().await else { return };
        if let Some(activation) = History(&epochs).back_from(epoch, reason) {
            let key = format!("failed-{}-{}", epoch.0, SystemClock.now().0);
            // An agent that cannot commit leaves the epoch in force, backing off; the next death tries again.
            let _ = admit(&agent, &key, None, activation).await;
        }
    }
}

/// The event that tells of a death, with the last 4 KiB of standard error.
fn death(epoch: Epoch, change: &Change, untold: u32) -> NewEvent {
    let (how, stderr) = match change {
        Change::Died { reason, stderr, .. } => (format!("died: {reason}"), stderr.trim()),
        Change::NotStarted { reason, .. } => (format!("cannot be started: {reason}"), ""),
        Change::Started { .. } | Change::Ready { .. } => ("is well".to_owned(), ""),
    };
    let mut text = format!("The hook worker of {epoch} {how}.");
    if untold > 0 {
        text.push_str(&format!(" It had ended {untold} more times since this was last told."));
    }
    if !stderr.is_empty() {
        text.push_str(&format!(" The end of its standard error:\n{stderr}"));
    }
    let key = format!("worker:{}:{}", epoch.0, SystemClock.now().0);
    NewEvent::external(Source::new(SourceKind::System, INSTANCE), key, Priority::Ambient, Body::text(text))
}
