//! A client that is told every update once, across any number of daemons on one home.
//!
//! Owns the resuming with the last id that it saw. A second telling, and a step back, are noted as faults.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use klbr_core::update::Update;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Api;
use crate::clock::Stamp;

/// How long a lost stream is left alone before it is asked for again.
const AGAIN: Duration = Duration::from_millis(10);

/// Follows the durable updates of one agent. Dropping it ends the following.
#[derive(Debug)]
pub struct Follower {
    told: Arc<Mutex<Told>>,
    news: watch::Receiver<usize>,
    daemon: watch::Sender<Option<Api>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Told {
    last: u64,
    updates: Vec<(Stamp, Update)>,
    faults: Vec<String>,
}

impl Follower {
    /// Begins, without a daemon; to be called within a runtime.
    pub fn new() -> Follower {
        let told = Arc::<Mutex<Told>>::default();
        let (daemon, mut daemons) = watch::channel(None::<Api>);
        let (sender, news) = watch::channel(0);
        let kept = Arc::clone(&told);
        let task = tokio::spawn(async move {
            loop {
                let api = daemons.borrow_and_update().clone();
                let follow = async {
                    let Some(api) = api else { return std::future::pending().await };
                    loop {
                        follow(&api, &kept, &sender).await;
                        tokio::time::sleep(AGAIN).await;
                    }
                };
                tokio::select! {
                    () = follow => {}
                    changed = daemons.changed() => if changed.is_err() { return },
                }
            }
        });
        Follower { told, news, daemon, task }
    }

    /// From now on this daemon is listened to.
    pub fn attach(&self, api: &Api) {
        self.daemon.send_replace(Some(api.clone()));
    }

    /// No daemon is listened to; what was told is kept.
    pub fn detach(&self) {
        self.daemon.send_replace(None);
    }

    /// Everything told so far, each with the moment when it was read.
    pub fn stamped(&self) -> Vec<(Stamp, Update)> {
        lock(&self.told).updates.clone()
    }

    /// Everything told so far.
    pub fn updates(&self) -> Vec<Update> {
        lock(&self.told).updates.iter().map(|(_, update)| update.clone()).collect()
    }

    /// What was told twice or out of order since this was asked last.
    pub fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.told).faults)
    }

    /// Waits until what was told after the first `from` updates says so; the place of the update that does.
    ///
    /// # Errors
    /// Fails when the watchdog rings first.
    pub async fn until(
        &mut self,
        what: &str,
        from: usize,
        watchdog: Duration,
        wanted: impl Fn(&Update) -> bool,
    ) -> Result<usize, String> {
        let waiting = async {
            let mut seen = from;
            loop {
                self.news.mark_unchanged();
                {
                    let told = lock(&self.told);
                    let new = told.updates.get(seen..).unwrap_or_default();
                    if let Some(place) = new.iter().position(|(_, update)| wanted(update)) {
                        return seen + place;
                    }
                    seen = seen.max(told.updates.len());
                }
                if self.news.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::time::timeout(watchdog, waiting)
            .await
            .map_err(|_| format!("{what} was not told within {} ms", watchdog.as_millis()))
    }
}

impl Default for Follower {
    fn default() -> Follower {
        Follower::new()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads one stream to its end.
async fn follow(api: &Api, told: &Mutex<Told>, news: &watch::Sender<usize>) {
    let after = lock(told).last;
    let Ok(mut stream) = api.updates(after).await else { return };
    let mut buffer = Vec::new();
    while let Ok(Some(chunk)) = stream.chunk().await {
        buffer.extend_from_slice(&chunk);
        let at = Stamp::now();
        while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = buffer.drain(..end + 2).collect();
            note(&mut lock(told), at, &String::from_utf8_lossy(&event));
        }
        news.send_modify(|count| *count += 1);
    }
}

fn note(told: &mut Told, at: Stamp, event: &str) {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let Some(data) = field("data: ") else { return };
    let update: Update = match serde_json::from_str(data) {
        Ok(update) => update,
        Err(error) => return told.faults.push(format!("an update cannot be read: {error}: {data}")),
    };
    // A live piece is replaced by a durable update.
    let Some(id) = update.id else { return };
    if field("id: ") != Some(id.to_string().as_str()) {
        told.faults.push(format!("the update of record {id} came under the id {:?}", field("id: ")));
    }
    if id.0 <= told.last {
        told.faults.push(format!("the update of record {id} was told after that of record {}", told.last));
    }
    told.last = told.last.max(id.0);
    told.updates.push((at, update));
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}
