//! How fast a store admits, beside what its disk can do.
#![expect(clippy::disallowed_methods, reason = "a measurement looks at the clock")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::fixtures::Script;
use crate::runtime::store::{Store, StoreError};

/// A message of ordinary length.
const MESSAGE: &str = "Could someone look at why the nightly build of the importer takes twice as long since \
                       Tuesday? The log says nothing, and the machine is idle most of the time.";

/// Admits `events` single events, one commit each, from `writers` new agents at once; answers how long it took.
///
/// # Errors
///
/// Fails when a commit does.
pub async fn admit_together(
    store: &dyn Store,
    writers: usize,
    events: usize,
) -> Result<Duration, StoreError> {
    let begun = Instant::now();
    let lives = (0..writers).map(|writer| async move {
        let mut script = Script::new(&format!("writer-{writer}-of-{writers}"));
        for _ in 0..events / writers {
            script.admit("discord", "c1", "Grace", MESSAGE);
            store.commit(script.take()).await?;
        }
        Ok(())
    });
    join_all(lives).await.into_iter().collect::<Result<(), StoreError>>()?;
    Ok(begun.elapsed())
}

/// Admits `events` single events one after the other; answers how long each took.
///
/// # Errors
///
/// Fails when a commit does.
pub async fn admit_singly(store: &dyn Store, events: usize) -> Result<Vec<Duration>, StoreError> {
    let mut script = Script::new("single");
    let mut times = Vec::with_capacity(events);
    for _ in 0..events {
        script.admit("discord", "c1", "Grace", MESSAGE);
        let begun = Instant::now();
        store.commit(script.take()).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Appends `bytes` to a file in `folder` and syncs its data, `count` times; answers how long each took.
///
/// # Errors
///
/// Fails when the file cannot be made, written or synced.
pub fn sync_singly(folder: &Path, bytes: usize, count: usize) -> std::io::Result<Vec<Duration>> {
    let path = folder.join("sync-probe");
    let mut file = File::create(&path)?;
    let block = vec![7; bytes];
    // Like a write-ahead log that has its size: the syncs after the first pass change data alone.
    file.write_all(&vec![0; bytes * count])?;
    file.sync_all()?;
    let mut file = File::options().write(true).open(&path)?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    drop(file);
    std::fs::remove_file(path)?;
    Ok(times)
}

/// The time that `percent` of these do not exceed; zero when there are none.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}
