//! Much at once: admission keeps up, and the gateway is never held up.

use std::sync::Arc;
use std::time::Instant;

use klbr_core::runtime::store::Store;
use klbr_store::{Options, SqliteStore};
use klbr_tests::discord_double::NewBurst;

use super::super::discord::{Scene, WATCHDOG};
use super::{Life, settings};

/// Messages of a test; `KLBR_BURST` sets another number, for figures.
const COUNT: usize = 2_000;

#[tokio::test]
async fn a_burst_over_fifty_channels_is_admitted_whole_and_in_order() {
    let count = std::env::var("KLBR_BURST").ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT);
    let scene = Scene::new().await;
    let mut channels = Vec::new();
    for number in 0..50 {
        channels.push(scene.control().channel(scene.guild, &format!("c{number}")).await.unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("klbr.db"), Options::default()).unwrap());
    let life = Life::with(settings(&scene), store, []).await;
    life.is_listening(&scene).await;
    let begun = Instant::now();
    let burst = NewBurst {
        authors: vec![scene.person],
        channels,
        count,
        content: "words".into(),
        mention_every: 100,
        ..NewBurst::default()
    };
    let burst = scene.control().burst(burst).await.unwrap();
    let admitted = async {
        let mut updates = life.handle.updates(Some(klbr_core::ids::Seq(0))).await.unwrap();
        let mut names = Vec::new();
        while names.len() < count {
            if let klbr_core::update::Happening::Admitted { external_id, .. } =
                updates.next().await.unwrap().unwrap().happening
            {
                names.push(external_id.to_string());
            }
        }
        names
    };
    let names = tokio::time::timeout(WATCHDOG * 6, admitted).await.expect("all are admitted");
    let took = begun.elapsed();
    println!("{count} messages in {took:?}: {:.0}/s", count as f64 / took.as_secs_f64());
    let wanted: Vec<String> = burst.ids.iter().map(|id| format!("msg:{id}")).collect();
    assert!(names == wanted, "all, once, in order");
    let summary = scene.control().summary().await.unwrap();
    println!("{} connections, {} resumed", summary.connects, summary.resumed);
    assert_eq!(summary.identified, 1);
    assert!(count > COUNT || summary.connects == 1, "so many fit the queue");
}
