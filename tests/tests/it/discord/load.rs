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
