//! What a crash in the middle of a message leaves (C-EFF-5).

use std::sync::Arc;
use std::time::Duration;

use klbr_core::attention::Status;
use klbr_core::testkit::MemoryStore;
use klbr_tests::discord_double::{Fault, Make};
use serde_json::json;

use super::super::discord::{MESSAGES, Scene, WATCHDOG};
use super::{Life, mention, posts, send, settings, wait};

/// An agent that dies while Discord has not answered its message.
async fn dies_in_mid_send(scene: &Scene, make: Make) -> MemoryStore {
    let store = MemoryStore::new();
    let life = Life::begin(scene, &store, [send(r#"{"content": "hello"}"#)]).await;
    life.is_listening(scene).await;
    scene.control().faults([Fault::new(make).on("POST", MESSAGES)]).await.unwrap();
    mention(scene, "are you there?").await;
    scene.request("the message", |asked| asked.is("POST", MESSAGES)).await;
    life.kill();
    store
}

/// The life after it, with the nonce trusted for so long.
async fn next_life(scene: &Scene, store: &MemoryStore, window: Duration) -> Life {
    scene.control().clear_faults().await.unwrap();
    let mut settings = settings(scene);
    settings.nonce_window = window;
    Life::with(settings, Arc::new(store.clone()), [wait(), wait()]).await
}

#[tokio::test]
async fn c_eff_5_within_the_window_it_is_sent_again_under_the_same_nonce() {
    for make in [Make::HoldAfter("gate".into()), Make::Hold("gate".into())] {
        let scene = Scene::new().await;
        let store = dies_in_mid_send(&scene, make.clone()).await;
        let life = next_life(&scene, &store, Duration::from_secs(120)).await;
        let result = life.request(1).await;
        assert!(result.contains("sent conv:d1 msg:"), "{make:?}: {result}");
        assert_eq!(scene.control().messages().await.unwrap().len(), 1, "{make:?}");
        let posts = posts(&scene).await;
        assert_eq!(posts.len(), 2, "{make:?}");
        assert_eq!(posts[0].body["nonce"], posts[1].body["nonce"]);
        assert_eq!(life.handle.attention(5).await.unwrap()[0].status, Status::Acted);
    }
}

#[tokio::test]
async fn c_eff_5_later_one_equal_own_message_confirms_it() {
    let scene = Scene::new().await;
    let store = dies_in_mid_send(&scene, Make::HoldAfter("gate".into())).await;
    let made = scene.control().wait_message("the message", WATCHDOG, |_| true).await.unwrap();
    let life = next_life(&scene, &store, Duration::ZERO).await;
    let result = life.request(1).await;
    assert!(result.contains(&format!("sent conv:d1 msg:{}", made.id)), "{result}");
    assert_eq!(posts(&scene).await.len(), 1, "it is not sent again");
}

#[tokio::test]
async fn c_eff_5_later_none_or_several_leave_it_unknown() {
    let scene = Scene::new().await;
    let store = dies_in_mid_send(&scene, Make::Cut).await;
    let life = next_life(&scene, &store, Duration::ZERO).await;
    let result = life.request(1).await;
    // Cut off at once, it may have been asked for again before the end: then it was made.
    let made = scene.control().messages().await.unwrap().len();
    let wanted = if made == 1 { "sent conv:d1" } else { "the channel has no such message" };
    assert!(result.contains(wanted), "{made} made: {result}");

    let scene = Scene::new().await;
    let store = dies_in_mid_send(&scene, Make::HoldAfter("gate".into())).await;
    scene.control().wait_message("the message", WATCHDOG, |_| true).await.unwrap();
    let http = scene.http();
    scene.post(&http, json!({"content": "hello"})).await.unwrap();
    let life = next_life(&scene, &store, Duration::ZERO).await;
    let result = life.request(1).await;
    assert!(result.contains("the channel has several such messages"), "{result}");
    let items = life.handle.attention(5).await.unwrap();
    assert_ne!(items[0].status, Status::Acted, "B-ATT-3: an unknown send marks nothing");
}
