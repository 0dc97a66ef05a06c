//! What the agent hears, and how it is shown (B-DIS-2, B-DIS-5, B-DIS-11, B-ATT-1, B-ATT-6).

use std::sync::Arc;

use klbr_core::event::Bucket;
use klbr_core::testkit::{MemoryStore, Scripted};
use klbr_tests::discord_double::{Command, NewUser, React, Say, Snowflake, Tricks};
use serde_json::json;

use super::super::discord::{Scene, WATCHDOG};
use super::{Life, mention, send, settings, wait};

#[tokio::test]
async fn b_att_1_direct_messages_and_mentions_become_items_and_chatter_none() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    let robot = NewUser { name: "robot".into(), bot: true, guilds: vec![scene.guild], ..NewUser::default() };
    let bot: Snowflake = scene.control().command(&Command::User(robot)).await.unwrap();
    let direct = scene.control().direct(scene.person).await.unwrap();
    let chatter = scene.say("nothing special").await;
    let robot = scene.control().say(bot, scene.channel, &format!("<@{}> beep", scene.bot())).await.unwrap();
    let asked = mention(&scene, "hello").await;
    let private = scene.control().say(scene.person, direct, "psst").await.unwrap();
    life.hears(&format!("msg:{private}")).await;
    life.hears(&format!("msg:{asked}")).await;
    life.hears(&format!("msg:{chatter}")).await;
    assert!(!life.admitted().await.contains(&format!("msg:{robot}")), "B-DIS-2: bots are dropped");
    let mut items: Vec<(String, Bucket)> = Vec::new();
    for item in life.handle.attention(10).await.unwrap() {
        items.push((item.item.to_string(), item.bucket));
    }
    items.sort_by_key(|(name, _)| name.clone());
    assert_eq!(items, [(format!("msg:{asked}"), Bucket::Mention), (format!("msg:{private}"), Bucket::Dm)]);
}

#[tokio::test]
async fn b_dis_11_what_happens_to_messages_is_shown() {
    let scene = Scene::new().await;
    let life = Life::begin(
        &scene,
        &MemoryStore::new(),
        [send(r#"{"content": "hi"}"#), wait(), wait(), wait(), wait(), wait(), wait(), wait()],
    )
    .await;
    life.is_listening(&scene).await;
    let asked = mention(&scene, "hello").await;
    life.request(2).await;
    let mine = scene.control().wait_message("an answer", WATCHDOG, |_| true).await.unwrap();
    let react = React {
        channel: mine.channel,
        message: mine.id,
        user: scene.person,
        emoji: "👍".into(),
        removes: false,
    };
    assert!(scene.control().react(react).await.unwrap());
    life.hears(&format!("react:{}:{}:👍:1", mine.id, scene.person)).await;
    let thread = scene.control().thread(scene.channel, "plans", None).await.unwrap();
    let say = Say {
        author: scene.person,
        channel: thread,
        content: format!("<@{}> look", scene.bot()),
        attachments: vec![
            json!({"id": "1", "filename": "../a.txt", "size": 3, "url": "http://cdn/1", "proxy_url": "http://cdn/1"}),
        ],
        ..Say::default()
    };
    let said = scene.control().say_with(say).await.unwrap();
    life.hears(&format!("msg:{said}")).await;
    scene.control().edit(scene.channel, asked, "hello again").await.unwrap();
    let wanted = |happening: &klbr_core::update::Happening| matches!(happening, klbr_core::update::Happening::Admitted { external_id, .. } if external_id.starts_with(&format!("edit:{asked}:")));
    life.sees("the edit", wanted).await;
    scene.control().delete(scene.channel, asked).await.unwrap();
    life.hears(&format!("del:{asked}")).await;
    // A deletion of something that was never heard means nothing.
    let unheard = json!({"id": "77", "channel_id": scene.channel, "guild_id": scene.guild});
    scene.control().dispatch("MESSAGE_DELETE", unheard).await.unwrap();
    let last = mention(&scene, "the last one").await;
    life.hears(&format!("msg:{last}")).await;
    assert!(!life.admitted().await.contains(&"del:77".to_owned()));
    let shown = |name: &'static str| {
        life.sees(name, move |happening| {
            matches!(happening, klbr_core::update::Happening::Shown { text, .. } if text.contains(name))
        })
    };
    shown("thread=\"plans\"").await;
    shown("attachment=\"../a.txt (unknown type, 3 bytes) http://cdn/1\"").await;
    shown("reacted=\"msg:").await;
    shown("deleted=\"msg:").await;
}

#[tokio::test]
async fn b_dis_11_strange_frames_never_stop_the_gateway() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    for raw in
        ["{\"op\": 99, \"d\": null}", "not json", "{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"d\":{}}", "[]", "{}"]
    {
        scene.control().raw(raw).await.unwrap();
    }
    for (name, data) in [
        ("MESSAGE_CREATE", json!({"id": "not a snowflake", "channel_id": scene.channel})),
        ("MESSAGE_CREATE", json!(null)),
        ("MESSAGE_UPDATE", json!({"id": 5})),
        ("GUILD_CREATE", json!({"id": "77", "channels": "none"})),
        ("A_NEW_KIND_OF_EVENT", json!({"deep": {"er": [1, null]}})),
        ("INTERACTION_CREATE", json!({"id": "1"})),
    ] {
        scene.control().dispatch(name, data).await.unwrap();
    }
    let said = scene.say("still there?").await;
    life.hears(&format!("msg:{said}")).await;
    assert_eq!(scene.control().summary().await.unwrap().connects, 1);
}

#[tokio::test]
async fn b_att_6_a_message_told_twice_or_out_of_order_is_one_event() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    scene.control().tricks(Tricks { duplicate: 2, ..Tricks::default() }).await.unwrap();
    let (first, second) = (mention(&scene, "one").await, mention(&scene, "two").await);
    scene.control().tricks(Tricks { reorder: 2, ..Tricks::default() }).await.unwrap();
    let (third, fourth) = (scene.say("three").await, scene.say("four").await);
    for id in [first, second, third, fourth] {
        life.hears(&format!("msg:{id}")).await;
    }
    let mut admitted = life.admitted().await;
    admitted.sort();
    admitted.dedup();
    assert_eq!((admitted.len(), life.admitted().await.len()), (4, 4));
    assert_eq!(life.handle.attention(10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn b_dis_5_a_conversation_keeps_its_alias_over_restarts() {
    let scene = Scene::new().await;
    let store = MemoryStore::new();
    let other = scene.control().channel(scene.guild, "other").await.unwrap();
    let life = Life::begin(&scene, &store, []).await;
    life.is_listening(&scene).await;
    let first = scene.say("one").await;
    life.hears(&format!("msg:{first}")).await;
    life.stop().await;
    let life = Life::begin(&scene, &store, [Scripted::text("…")]).await;
    let second = scene.control().say(scene.person, other, "two").await.unwrap();
    life.hears(&format!("msg:{second}")).await;
    let aliases = life.handle.conversations().await.unwrap();
    let named = |alias| aliases.named("discord", alias).map(|conversation| conversation.id.to_string());
    assert_eq!(named("d1"), Some(scene.channel.to_string()));
    assert_eq!(named("conv:d2"), Some(other.to_string()));
    let known = life.discord.conversations().await.unwrap();
    let names: Vec<_> =
        known.iter().map(|known| (&*known.kind, known.name.as_deref(), known.guild.as_deref())).collect();
    assert_eq!(names, [("guild", Some("other"), Some("house")), ("guild", Some("general"), Some("house"))]);
}

#[tokio::test]
async fn b_dis_3_a_mention_ends_an_ambient_delay_at_once() {
    let scene = Scene::new().await;
    let mut slow = settings(&scene);
    slow.batch = std::time::Duration::from_secs(3_600);
    let life = Life::with(slow, Arc::new(MemoryStore::new()), []).await;
    life.is_listening(&scene).await;
    let chatter = scene.say("chatter").await;
    life.hears(&format!("msg:{chatter}")).await;
    mention(&scene, "you there?").await;
    let frame = life.request(1).await;
    assert!(frame.contains("you there?"), "{frame}");
    assert!(frame.contains("discord_mark"), "B-DIS-4: the first batch has the instructions");
}
