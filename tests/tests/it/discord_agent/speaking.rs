//! How the agent speaks (B-DIS-6 to B-DIS-10, C-EFF-4, C-EFF-5).

use klbr_core::attention::Status;
use klbr_core::testkit::MemoryStore;
use klbr_tests::discord_double::{Fault, Make, Scope};
use serde_json::json;

use super::super::discord::{MESSAGES, Scene, WATCHDOG};
use super::{Life, mention, posts, send, settings, wait};

/// An agent that answers a mention with one message, and then waits.
async fn answers(scene: &Scene) -> Life {
    let life =
        Life::begin(scene, &MemoryStore::new(), [send(r#"{"content": "hello @everyone"}"#), wait()]).await;
    life.is_listening(scene).await;
    life
}

#[tokio::test]
async fn b_dis_6_a_mention_is_answered_where_it_was_said_and_pings_nobody() {
    let scene = Scene::new().await;
    let life = answers(&scene).await;
    let asked = mention(&scene, "are you there?").await;
    let made = scene.control().wait_message("an answer", WATCHDOG, |_| true).await.unwrap();
    assert_eq!((made.channel, made.content.as_str()), (scene.channel, "hello @everyone"));
    assert_eq!(made.reference, None, "B-DIS-7: it was still the latest");
    assert!(made.enforced && made.nonce.as_ref().unwrap().as_str().unwrap().len() <= 25, "B-DIS-10");
    assert!(made.pings.is_empty(), "B-DIS-8");
    let frame = life.request(1).await;
    assert!(
        frame.contains(&format!("ref=\"msg:{asked}\"")) && frame.contains("context=\"mention\""),
        "{frame}"
    );
    assert!(frame.contains("channel=\"general\" guild=\"house\""), "{frame}");
    let result = life.request(2).await;
    assert!(result.contains(&format!("sent conv:d1 msg:{} reply_to:none time:2", made.id)), "{result}");
    let items = life.handle.attention(10).await.unwrap();
    assert_eq!((items.len(), items[0].status), (1, Status::Acted), "B-ATT-3");
}

#[tokio::test]
async fn b_dis_7_a_reply_refers_to_its_target_once_others_have_written() {
    let scene = Scene::new().await;
    let history = r#"{"limit": 5}"#;
    let life = Life::begin(
        &scene,
        &MemoryStore::new(),
        [
            klbr_core::testkit::Scripted::calls(&[("discord_fetch_history", history)]),
            send(r#"{"content": "here"}"#),
            wait(),
        ],
    )
    .await;
    life.is_listening(&scene).await;
    scene.control().faults([Fault::new(Make::Hold("read".into())).on("GET", MESSAGES)]).await.unwrap();
    let asked = mention(&scene, "anyone?").await;
    scene.request("the history", |asked| asked.is("GET", MESSAGES)).await;
    let later = scene.say("something else").await;
    life.hears(&format!("msg:{later}")).await;
    scene.control().release("read").await.unwrap();
    let made = scene.control().wait_message("an answer", WATCHDOG, |_| true).await.unwrap();
    assert_eq!(made.reference, Some(asked));
    let result = life.request(3).await;
    assert!(result.contains(&format!("reply_to:{asked}")), "{result}");
}

#[tokio::test]
async fn b_dis_6_without_one_conversation_the_call_has_to_name_one() {
    let scene = Scene::new().await;
    let other = scene.control().channel(scene.guild, "other").await.unwrap();
    let store = MemoryStore::new();
    let life = Life::begin(
        &scene,
        &store,
        [
            wait(),
            wait(),
            send(r#"{"content": "to whom?"}"#),
            send(r#"{"content": "to the second", "conversation_id": "conv:d2"}"#),
            send(r#"{"content": "to nobody", "conversation_id": "d9"}"#),
            wait(),
        ],
    )
    .await;
    life.is_listening(&scene).await;
    scene.say("first").await;
    life.request(1).await;
    scene.control().say(scene.person, other, "second").await.unwrap();
    life.request(2).await;
    life.handle.say("k", "say something on Discord").await.unwrap();
    let refused = life.request(4).await;
    assert!(refused.contains("conversation_id is needed"), "{refused}");
    assert!(refused.contains("known are d1, d2"), "{refused}");
    let made = scene.control().wait_message("a message", WATCHDOG, |_| true).await.unwrap();
    assert_eq!((made.channel, made.content.as_str()), (other, "to the second"));
    let unknown = life.request(6).await;
    assert!(
        unknown.contains("there is no conversation &quot;d9&quot;")
            || unknown.contains("there is no conversation \"d9\"")
    );
    assert_eq!(posts(&scene).await.len(), 1);
}

#[tokio::test]
async fn b_dis_9_a_long_text_is_refused_or_sent_in_parts_with_one_receipt() {
    let scene = Scene::new().await;
    let long = format!("{}\n\n{}", "a".repeat(1_500), "b".repeat(1_500));
    let arguments = |split: bool| json!({"content": long, "split": split}).to_string();
    let life =
        Life::begin(&scene, &MemoryStore::new(), [send(&arguments(false)), send(&arguments(true)), wait()])
            .await;
    life.is_listening(&scene).await;
    mention(&scene, "tell me all").await;
    let refused = life.request(2).await;
    assert!(refused.contains("3002 characters"), "{refused}");
    let result = life.request(3).await;
    let posts = posts(&scene).await;
    assert_eq!(posts.len(), 2);
    assert_ne!(posts[0].body["nonce"], posts[1].body["nonce"]);
    let made = scene.control().messages().await.unwrap();
    assert!(
        result.contains(&format!("sent conv:d1 msg:{} msg:{} reply_to:none", made[0].id, made[1].id)),
        "{result}"
    );
}

#[tokio::test]
async fn c_eff_4_a_part_that_fails_is_told_and_the_first_part_has_marked_the_item() {
    let scene = Scene::new().await;
    let long = format!("{}\n\n{}", "a".repeat(1_500), "b".repeat(1_500));
    let arguments = json!({"content": long, "split": true}).to_string();
    let life = Life::begin(&scene, &MemoryStore::new(), [send(&arguments), wait(), wait()]).await;
    life.is_listening(&scene).await;
    let refusal = json!({"code": 50013, "message": "Missing Permissions"});
    let fault = Fault::new(Make::Fail { status: 403, body: Some(refusal) }).on("POST", MESSAGES).after(1);
    scene.control().faults([fault]).await.unwrap();
    mention(&scene, "tell me all").await;
    let result = life.request(2).await;
    assert!(result.contains("Failed after 1 of 2 messages"), "{result}");
    assert!(result.contains("Missing Permissions (code 50013"), "{result}");
    assert_eq!(life.handle.attention(10).await.unwrap()[0].status, Status::Acted);
}

#[tokio::test]
async fn b_dis_10_a_lost_answer_is_asked_for_again_with_the_same_nonce() {
    for make in [
        Make::CutAfter,
        Make::Cut,
        Make::CutBody(5),
        Make::Garble,
        Make::Fail { status: 502, body: None },
        Make::FailAfter { status: 500, body: None },
    ] {
        let scene = Scene::new().await;
        let life = answers(&scene).await;
        scene.control().faults([Fault::new(make.clone()).on("POST", MESSAGES)]).await.unwrap();
        mention(&scene, "are you there?").await;
        let result = life.request(2).await;
        assert!(result.contains("sent conv:d1 msg:"), "{make:?}: {result}");
        let messages = scene.control().messages().await.unwrap();
        assert_eq!(messages.len(), 1, "{make:?}");
        assert!(result.contains(&format!("msg:{}", messages[0].id)), "{make:?}: {result}");
        let posts = posts(&scene).await;
        assert!(posts.iter().all(|post| post.body["nonce"] == posts[0].body["nonce"]), "{make:?}");
        if matches!(make, Make::Garble | Make::CutBody(_)) {
            assert_eq!(posts.len(), 1, "{make:?}: an answer that cannot be read is no reason to send again");
        }
    }
}

#[tokio::test]
async fn c_eff_5_an_answer_that_the_message_is_gone_means_that_it_was_made() {
    let scene = Scene::new().await;
    let life = answers(&scene).await;
    let faults = [
        Fault::new(Make::CutAfter).on("POST", MESSAGES),
        Fault::new(Make::Hold("again".into())).on("POST", MESSAGES),
    ];
    scene.control().faults(faults).await.unwrap();
    mention(&scene, "are you there?").await;
    let made = scene.control().wait_message("a message", WATCHDOG, |_| true).await.unwrap();
    scene.control().delete(made.channel, made.id).await.unwrap();
    scene.control().release("again").await.unwrap();
    let result = life.request(2).await;
    assert!(result.contains("sent conv:d1 msg:unknown"), "{result}");
    assert_eq!(scene.control().messages().await.unwrap().len(), 1);
}

#[tokio::test]
async fn b_dis_10_rate_limits_are_waited_for() {
    let scene = Scene::new().await;
    let life = answers(&scene).await;
    let limit = |scope| Fault::new(Make::Limit { retry_after_ms: 700, scope }).on("POST", MESSAGES);
    scene.control().faults([limit(Scope::Global), limit(Scope::User), limit(Scope::Shared)]).await.unwrap();
    mention(&scene, "are you there?").await;
    let result = life.request(2).await;
    assert!(result.contains("sent conv:d1"), "{result}");
    let summary = scene.control().summary().await.unwrap();
    assert_eq!((summary.violations, summary.created), (0, 1));
    assert_eq!(summary.statuses.get(&429), Some(&3));
}

#[tokio::test]
async fn refusals_are_told_in_words_and_nothing_is_sent_again() {
    let scene = Scene::new().await;
    let life = answers(&scene).await;
    mention(&scene, "first").await;
    life.request(2).await;
    scene.control().delete_channel(scene.channel).await.unwrap();
    life.model.then(send(&json!({"content": "late", "conversation_id": "d1"}).to_string()));
    life.handle.say("k", "say it").await.unwrap();
    life.model.then(wait());
    let result = life.request(4).await;
    assert!(result.contains("there is no such channel, or it was deleted"), "{result}");
    assert_eq!(posts(&scene).await.len(), 2);
}

#[tokio::test]
async fn the_typing_indicator_shows_while_an_addressed_turn_composes() {
    const TYPING: &str = "/channels/{channel}/typing";
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    mention(&scene, "think about it").await;
    let shown = scene.request("typing", |asked| asked.is("POST", TYPING)).await;
    assert!(shown.path.contains(&scene.channel.to_string()));

    let quiet = Scene::new().await;
    let mut off = settings(&quiet);
    off.typing = false;
    let script = [send(r#"{"content": "done"}"#), wait()];
    let life = Life::with(off, std::sync::Arc::new(MemoryStore::new()), script).await;
    life.is_listening(&quiet).await;
    mention(&quiet, "think about it").await;
    life.request(2).await;
    let requests = quiet.control().requests().await.unwrap();
    assert!(requests.iter().all(|asked| !asked.is("POST", TYPING)));
}
