//! Bursts: as many as are wanted, at the rate that is wanted.

use std::time::Instant;

use klbr_tests::discord_double::NewBurst;
use serde_json::Value;

use super::{Scene, text};

#[tokio::test]
async fn a_burst_says_all_of_it_in_turn_and_in_time() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let other = scene.control().channel(scene.guild, "other").await.unwrap();
    let burst = NewBurst {
        authors: vec![scene.person],
        channels: vec![scene.channel, other],
        count: 300,
        per_second: 1_000,
        content: "tick".into(),
        mention_every: 100,
    };
    let began = Instant::now();
    let said = scene.control().burst(burst).await.unwrap();
    assert!(began.elapsed().as_millis() >= 250 && said.took_us >= 250_000, "{} µs", said.took_us);
    assert_eq!((said.ids.len(), said.mentions.len()), (300, 3));
    for n in 0..300 {
        let is_message = |value: &Value| value["t"] == "MESSAGE_CREATE";
        let message = text(&mut shard, is_message).await;
        assert_eq!(message["d"]["id"], said.ids[n].to_string());
    }
    assert_eq!(scene.control().history(other).await.unwrap().len(), 150);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zz_measure() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let mut channels = Vec::new();
    for n in 0..50 {
        channels.push(scene.control().channel(scene.guild, &format!("c{n}")).await.unwrap());
    }
    for per_second in [3_000, 0] {
        let burst = NewBurst {
            authors: vec![scene.person],
            channels: channels.clone(),
            count: 12_000,
            per_second,
            content: "x".repeat(60),
            mention_every: 20,
        };
        let began = Instant::now();
        let control = scene.control().clone();
        let task = tokio::spawn(async move { control.burst(burst).await.unwrap() });
        for _ in 0..12_000 {
            text(&mut shard, |value: &Value| value["t"] == "MESSAGE_CREATE").await;
        }
        let got = began.elapsed();
        let said = task.await.unwrap();
        println!(
            "MEASURE per_second {per_second}: said in {} ms, all read {} ms",
            said.took_us / 1000,
            got.as_millis()
        );
    }
}
