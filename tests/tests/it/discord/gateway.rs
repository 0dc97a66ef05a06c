//! From HELLO to the last close code, and what is asked for in between.

use klbr_tests::discord_double::{Answer, CutHow, Tricks, What};
use serde_json::json;
use twilight_gateway::{ConfigBuilder, Event, Intents, Shard, ShardId, ShardState};
use twilight_model::channel::message::MessageType;
use twilight_model::gateway::payload::incoming::GuildCreate;

use super::{Scene, end, heard, text, until};

#[tokio::test]
async fn a_shard_identifies_and_hears() {
    let scene = Scene::new().await;
    let mut shard = scene.shard();
    let Event::Ready(ready) = until(&mut shard, |event| matches!(event, Event::Ready(_))).await else {
        unreachable!("nothing else was wanted")
    };
    assert_eq!((ready.version, ready.guilds.len()), (10, 1));
    assert_eq!(ready.user.id.get(), scene.bot().0);
    assert_eq!(ready.resume_gateway_url, format!("{}/resume", scene.double.ready().gateway));
    let created = until(&mut shard, |event| matches!(event, Event::GuildCreate(_))).await;
    let Event::GuildCreate(created) = created else { unreachable!("nothing else was wanted") };
    let GuildCreate::Available(guild) = *created else { panic!("the guild is not there") };
    assert_eq!((guild.channels.len(), guild.members.len(), guild.roles.len()), (1, 3, 1));
    let said = scene.say("hello <@1>").await;
    let event = until(&mut shard, |event| matches!(event, Event::MessageCreate(_))).await;
    let Event::MessageCreate(message) = event else { unreachable!("nothing else was wanted") };
    assert_eq!((message.id.get(), message.content.as_str()), (said.0, "hello <@1>"));
    let guild = message.guild_id.map(|id| id.get());
    assert_eq!((message.kind, guild), (MessageType::Regular, Some(scene.guild.0)));
    assert!(message.member.is_some() && !message.author.bot);
    let noted = scene.happened("identify", |what| matches!(what, What::Identified { .. })).await;
    let What::Identified { shard: [0, 1], intents, too_soon: false, .. } = noted.what else {
        panic!("{noted:?}")
    };
    assert_eq!(intents, Intents::all().bits());
}

/// The code that a shard with these settings is closed with, and what becomes of the shard.
async fn closed(scene: &Scene, mut shard: Shard) -> (u16, ShardState) {
    let state = end(&mut shard).await;
    let noted = scene.happened("a close", |what| matches!(what, What::Closed { .. })).await;
    let What::Closed { code, .. } = noted.what else { unreachable!("nothing else was wanted") };
    (code, state)
}

#[tokio::test]
async fn what_may_not_identify_is_closed_for_good() {
    let scene = Scene::new().await;
    let gateway = scene.double.ready().gateway.clone();
    let wrong = ConfigBuilder::new("wrong".into(), Intents::GUILDS).proxy_url(gateway).build();
    let shard = Shard::with_config(ShardId::ONE, wrong);
    assert_eq!(closed(&scene, shard).await, (4004, ShardState::FatallyClosed));
    scene.control().clear_record().await.unwrap();
    scene.control().set(json!({"application_flags": 0})).await.unwrap();
    assert_eq!(closed(&scene, scene.shard()).await, (4014, ShardState::FatallyClosed));
}

#[tokio::test]
async fn without_the_intent_for_content_only_what_is_directed_has_words() {
    let scene = Scene::new().await;
    scene.control().set(json!({"application_flags": 0})).await.unwrap();
    let ready = scene.double.ready();
    let intents = Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES;
    let config = ConfigBuilder::new(ready.token.clone(), intents).proxy_url(ready.gateway.clone());
    let mut shard = Shard::with_config(ShardId::ONE, config.build());
    until(&mut shard, |event| matches!(event, Event::GuildCreate(_))).await;
    scene.say("chatter").await;
    assert_eq!(heard(&mut shard).await, "");
    let directed = format!("hey <@{}>", scene.bot());
    scene.say(&directed).await;
    assert_eq!(heard(&mut shard).await, directed);
    let direct = scene.control().direct(scene.person).await.unwrap();
    scene.control().say(scene.person, direct, "between us").await.unwrap();
    assert_eq!(heard(&mut shard).await, "between us");
}

#[tokio::test]
async fn heartbeats_are_acknowledged_or_not() {
    let scene = Scene::new().await;
    scene.control().set(json!({"heartbeat_ms": 150})).await.unwrap();
    let mut shard = scene.identified().await;
    until(&mut shard, |event| matches!(event, Event::GatewayHeartbeatAck)).await;
    scene.control().set(json!({"acknowledge": false})).await.unwrap();
    // A zombie: twilight leaves by itself, and resumes.
    until(&mut shard, |event| matches!(event, Event::Resumed)).await;
    let silent = |what: &What| matches!(what, What::Heartbeat { acknowledged: false, .. });
    scene.happened("a heartbeat without an answer", silent).await;
    scene.happened("its going", |what| matches!(what, What::Gone { .. })).await;
}

#[tokio::test]
async fn who_stops_beating_is_closed() {
    let scene = Scene::new().await;
    scene.control().set(json!({"heartbeat_ms": 100})).await.unwrap();
    let shard = scene.identified().await;
    // Nobody polls it any more.
    let late = |what: &What| matches!(what, What::Closed { code: 4000, .. });
    scene.happened("the close", late).await;
    drop(shard);
}

#[tokio::test]
async fn a_heartbeat_may_be_asked_for() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let clear = scene.control().clear_record();
    clear.await.unwrap();
    assert_eq!(scene.control().cut(CutHow::Heartbeat).await.unwrap(), 1);
    until(&mut shard, |event| matches!(event, Event::GatewayHeartbeatAck)).await;
    let beat = |what: &What| matches!(what, What::Heartbeat { acknowledged: true, .. });
    scene.happened("the heartbeat", beat).await;
}

#[tokio::test]
async fn dispatches_come_twice_late_or_in_another_order() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let trick = |tricks| scene.control().tricks(tricks);
    trick(Tricks { duplicate: 1, ..Tricks::default() }).await.unwrap();
    scene.say("twice").await;
    let is_message = |value: &serde_json::Value| value["t"] == "MESSAGE_CREATE";
    let (first, second) = (text(&mut shard, is_message).await, text(&mut shard, is_message).await);
    assert_eq!(first, second);
    trick(Tricks { reorder: 3, ..Tricks::default() }).await.unwrap();
    for words in ["a", "b", "c", "d"] {
        scene.say(words).await;
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let value = text(&mut shard, is_message).await;
        order.push((value["d"]["content"].as_str().unwrap().to_owned(), value["s"].as_u64().unwrap()));
    }
    let words: Vec<&str> = order.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(words, ["c", "b", "a", "d"]);
    assert!(order[0].1 > order[1].1 && order[1].1 > order[2].1 && order[3].1 > order[0].1);
    trick(Tricks { drop: 1, ..Tricks::default() }).await.unwrap();
    let missed = scene.say("missed").await;
    scene.say("heard").await;
    assert_eq!(heard(&mut shard).await, "heard");
    let history = scene.control().history(scene.channel).await.unwrap();
    assert!(history.iter().any(|message| message["id"] == missed.to_string()));
}

#[tokio::test]
async fn what_nobody_knows_is_written_all_the_same() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    for odd in [r#"{"op":77,"d":{"x":1},"s":null,"t":null}"#, "{\"op\":0,", "[]", ""] {
        assert_eq!(scene.control().raw(odd).await.unwrap(), 1);
    }
    assert_eq!(scene.control().dispatch("NO_SUCH_EVENT", json!({"a": null})).await.unwrap(), 1);
    let unknown = text(&mut shard, |value| value["t"] == "NO_SUCH_EVENT").await;
    assert_eq!(unknown["d"], json!({"a": null}));
    scene.say("still there").await;
    assert_eq!(heard(&mut shard).await, "still there");
}

#[tokio::test]
async fn a_client_that_breaks_the_rules_is_closed() {
    let long = format!(r#"{{"op":3,"d":"{}"}}"#, "x".repeat(4096));
    let payloads = [
        (r#"{"op":99,"d":null}"#, 4001),
        ("no json", 4002),
        (r#"{"d":null}"#, 4002),
        (long.as_str(), 4002),
        (r#"{"op":2,"d":{"token":"double-token","intents":0,"properties":{}}}"#, 4005),
    ];
    for (payload, wanted) in payloads {
        let scene = Scene::new().await;
        let mut shard = scene.identified().await;
        shard.send(payload.to_owned());
        let polled = async { until(&mut shard, |event| matches!(event, Event::Resumed)).await };
        let code = |what: &What| matches!(what, What::Closed { code, .. } if *code == wanted);
        tokio::join!(polled, scene.happened(payload, code));
    }
}

#[tokio::test]
async fn connections_may_be_turned_away_or_left_without_a_word() {
    let scene = Scene::new().await;
    scene.control().set(json!({"turn_away": 1})).await.unwrap();
    scene.control().on_identify(&[Answer::Close(4000), Answer::Cut]).await.unwrap();
    let mut shard = scene.identified().await;
    scene.say("at last").await;
    assert_eq!(heard(&mut shard).await, "at last");
    let summary = scene.control().summary().await.unwrap();
    assert_eq!((summary.connects, summary.identified), (4, 1));
    assert!(summary.most_connects_per_second >= 2);
}

#[tokio::test]
async fn shards_hear_their_own_guilds_alone() {
    let scene = Scene::new().await;
    let shards = [0, 1].map(|number| Shard::with_config(ShardId::new(number, 2), scene.config().build()));
    let [mut first, mut second] = shards;
    until(&mut first, |event| matches!(event, Event::Ready(_))).await;
    until(&mut second, |event| matches!(event, Event::Ready(_))).await;
    let its = (scene.guild.0 >> 22) % 2;
    scene.say("to one").await;
    let direct = scene.control().direct(scene.person).await.unwrap();
    scene.control().say(scene.person, direct, "to the first").await.unwrap();
    if its == 0 {
        assert_eq!(heard(&mut first).await, "to one");
    } else {
        assert_eq!(heard(&mut second).await, "to one");
    }
    assert_eq!(heard(&mut first).await, "to the first");
    let sessions = scene.control().sessions().await.unwrap();
    assert_eq!(sessions.iter().map(|session| session.shard).collect::<Vec<_>>(), [[0, 2], [1, 2]]);
}
