//! Sessions that outlive their connections, and those that do not.

use klbr_tests::discord_double::{Answer, CutHow, Tricks, What};
use serde_json::json;
use twilight_gateway::{Event, Shard, ShardId};

use super::{Scene, heard, until};

fn is_resumed(event: &Event) -> bool {
    matches!(event, Event::Resumed)
}

fn is_ready(event: &Event) -> bool {
    matches!(event, Event::Ready(_))
}

/// What the record tells of the resume: the last number seen, and how many were sent again.
async fn resumed(scene: &Scene) -> (u64, usize) {
    let noted = scene.happened("the resume", |what| matches!(what, What::Resumed { .. })).await;
    let What::Resumed { after, replayed, .. } = noted.what else { unreachable!("nothing else was wanted") };
    (after, replayed)
}

#[tokio::test]
async fn a_cut_is_resumed_with_what_was_missed() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let seen = shard.session().unwrap().sequence();
    assert_eq!(scene.control().cut(CutHow::Cut).await.unwrap(), 1);
    scene.happened("the cut", |what| matches!(what, What::Cut)).await;
    for words in ["one", "two"] {
        scene.say(words).await;
    }
    assert_eq!([heard(&mut shard).await, heard(&mut shard).await], ["one", "two"]);
    until(&mut shard, is_resumed).await;
    assert_eq!(resumed(&scene).await, (seen, 2));
    let connected = |what: &What| matches!(what, What::Connected { resume_url: true, .. });
    scene.happened("the resume's connection", connected).await;
}

#[tokio::test]
async fn a_session_is_resumed_by_another_process() {
    let scene = Scene::new().await;
    let shard = scene.identified().await;
    let (session, url) = (shard.session().unwrap().clone(), shard.resume_url().unwrap().to_owned());
    drop(shard);
    scene.happened("its going", |what| matches!(what, What::Gone { code: None })).await;
    scene.say("while away").await;
    let config = scene.config().session(session).resume_url(url).build();
    let mut shard = Shard::with_config(ShardId::ONE, config);
    assert_eq!(heard(&mut shard).await, "while away");
    until(&mut shard, is_resumed).await;
    assert_eq!(scene.control().sessions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_reconnect_is_asked_for_and_resumed() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    scene.control().cut(CutHow::Reconnect).await.unwrap();
    until(&mut shard, is_resumed).await;
    assert_eq!(resumed(&scene).await.1, 0);
}

#[tokio::test]
async fn a_close_code_is_resumed_too() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    scene.control().cut(CutHow::Close(4008)).await.unwrap();
    until(&mut shard, is_resumed).await;
    let closed = |what: &What| matches!(what, What::Closed { code: 4008, .. });
    scene.happened("the close", closed).await;
}

#[tokio::test]
async fn an_invalid_session_is_resumed_or_begun_anew() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    scene.control().cut(CutHow::Invalid(true)).await.unwrap();
    until(&mut shard, is_resumed).await;
    let first = shard.session().unwrap().id().to_owned();
    scene.control().cut(CutHow::Invalid(false)).await.unwrap();
    until(&mut shard, is_ready).await;
    assert_ne!(shard.session().unwrap().id(), first);
}

#[tokio::test]
async fn what_is_lost_on_the_way_comes_with_the_resume() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let tricks = Tricks { lose: 1, ..Default::default() };
    scene.control().tricks(tricks).await.unwrap();
    let seen = shard.session().unwrap().sequence();
    scene.say("lost").await;
    // What was written after it comes; it does not.
    scene.control().cut(CutHow::Heartbeat).await.unwrap();
    until(&mut shard, |event| matches!(event, Event::GatewayHeartbeatAck)).await;
    assert_eq!(shard.session().unwrap().sequence(), seen);
    scene.control().cut(CutHow::Cut).await.unwrap();
    assert_eq!(heard(&mut shard).await, "lost");
}

#[tokio::test]
async fn a_cut_comes_after_so_many_dispatches() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let tricks = Tricks { cut_after: 2, ..Default::default() };
    scene.control().tricks(tricks).await.unwrap();
    for words in ["one", "two", "three"] {
        scene.say(words).await;
    }
    let all = [heard(&mut shard).await, heard(&mut shard).await, heard(&mut shard).await];
    assert_eq!(all, ["one", "two", "three"]);
    until(&mut shard, is_resumed).await;
    assert_eq!(resumed(&scene).await.1, 1);
}

#[tokio::test]
async fn a_resume_is_refused_and_the_gap_stays() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    scene.control().on_resume(&[Answer::Invalid(false)]).await.unwrap();
    scene.control().cut(CutHow::Cut).await.unwrap();
    scene.happened("the cut", |what| matches!(what, What::Cut)).await;
    scene.say("in the gap").await;
    until(&mut shard, is_ready).await;
    scene.say("after it").await;
    assert_eq!(heard(&mut shard).await, "after it");
}

#[tokio::test]
async fn an_expired_session_is_not_resumed() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    scene.control().set(json!({"session_ms": 0})).await.unwrap();
    scene.control().cut(CutHow::Cut).await.unwrap();
    until(&mut shard, is_ready).await;
    let refused = |what: &What| matches!(what, What::Invalid { resumable: false, .. });
    scene.happened("the refusal", refused).await;
    scene.control().expire().await.unwrap();
    let closed = |what: &What| matches!(what, What::Closed { code: 4009, .. });
    scene.happened("the close", closed).await;
    until(&mut shard, is_ready).await;
}

#[tokio::test]
async fn what_is_no_longer_kept_is_not_resumed() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    scene.control().set(json!({"replay": 1})).await.unwrap();
    scene.control().cut(CutHow::Cut).await.unwrap();
    scene.happened("the cut", |what| matches!(what, What::Cut)).await;
    for words in ["one", "two"] {
        scene.say(words).await;
    }
    until(&mut shard, is_ready).await;
    let summary = scene.control().summary().await.unwrap();
    assert_eq!((summary.identified, summary.resumed), (2, 0));
}

#[tokio::test]
async fn a_number_that_was_never_given_out_is_refused() {
    let scene = Scene::new().await;
    let shard = scene.identified().await;
    let session = shard.session().unwrap().id().to_owned();
    let url = shard.resume_url().unwrap().to_owned();
    drop(shard);
    let session = twilight_gateway::Session::new(9_999, session);
    scene.control().on_identify(&[Answer::Close(4010)]).await.unwrap();
    let mut shard = Shard::with_config(ShardId::ONE, scene.config().session(session).resume_url(url).build());
    let closed = |what: &What| matches!(what, What::Closed { code: 4007, .. });
    let poll = async {
        loop {
            let _ = futures_util::StreamExt::next(&mut shard).await;
        }
    };
    tokio::select! {
        () = poll => {}
        _ = scene.happened("the close", closed) => {}
    }
}
