//! Prints how fast events are admitted durably, beside bare syncs on the same disk in the same run.
//!
//! `cargo run --release -p klbr-store --example admission [folder]`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use klbr_core::runtime::store::{Search, Store};
use klbr_core::testkit::store_suite::fixtures::Script;
use klbr_core::testkit::store_suite::load::{admit_singly, admit_together, percentile, sync_singly};
use klbr_store::{Options, SqliteStore};

const EVENTS: usize = 20_000;
const SINGLE: usize = 1_000;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "printing is what it is for")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let home = tempfile::tempdir_in(folder)?;
    let path = home.path().join("klbr.db");
    let store = SqliteStore::open(&path, Options::default())?;
    let mut before = sync_singly(home.path(), 12 << 10, SINGLE / 2)?;
    let single = admit_singly(&store, SINGLE).await?;
    before.extend(sync_singly(home.path(), 12 << 10, SINGLE / 2)?);
    for writers in [16, 64, 256] {
        let took = admit_together(&store, writers, EVENTS).await?;
        println!("admission, {writers:3} at once: {:.0} events/s", EVENTS as f64 / took.as_secs_f64());
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    for percent in [50, 99] {
        let (one, bare) = (percentile(&single, percent), percentile(&before, percent));
        println!(
            "single event p{percent}: {:.2} ms, bare write+fdatasync p{percent}: {:.2} ms, ratio {:.2}",
            millis(one),
            millis(bare),
            one.as_secs_f64() / bare.as_secs_f64()
        );
    }
    let begun = Instant::now();
    let search = |text: &str| Search { text: text.into(), limit: 10, ..Search::default() };
    let agent = "single".parse()?;
    store.search(&agent, search("nightly")).await?;
    println!("the index caught up after {:.0} ms", millis(begun.elapsed()));
    for text in ["nightly importer", "mporte", "absent words"] {
        let begun = Instant::now();
        let hits = store.search(&agent, search(text)).await?.len();
        println!("search for {text:?}: {hits} hits in {:.1} ms", millis(begun.elapsed()));
    }

    let mut script = Script::new("restart");
    for _ in 0..10_000 {
        script.admit("discord", "c1", "Grace", "one of many that wait");
    }
    let agent = script.agent().clone();
    store.commit(script.take()).await?;
    store.close().await?;
    drop(store);
    let begun = Instant::now();
    let store = SqliteStore::open(&path, Options::default())?;
    let records = store.load(&agent).await?.records.len();
    println!("opened and loaded {records} records in {:.0} ms", millis(begun.elapsed()));
    store.close().await?;
    Ok(())
}
