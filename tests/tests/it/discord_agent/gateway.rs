//! What survives the gateway's connections and processes (B-DIS-10).

use std::collections::BTreeSet;
use std::sync::Arc;

use klbr_core::testkit::MemoryStore;
use klbr_discord::{Fatal, RunError};
use klbr_tests::discord_double::{Answer, Command, CutHow, NewThread, Say, Snowflake, What};
use serde_json::json;
use tokio::time::timeout;

use super::super::discord::{MESSAGES, Scene, WATCHDOG};
use super::{Life, settings};

/// Waits for so many sessions that went on.
async fn resumed(scene: &Scene, times: u64) {
    let wait = async {
        loop {
            scene.happened("a resume", |what| matches!(what, What::Resumed { .. })).await;
            if scene.control().summary().await.unwrap().resumed >= times {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(WATCHDOG, wait).await.expect("it resumes");
}

#[tokio::test]
async fn b_dis_10_a_connection_that_breaks_is_resumed_and_nothing_is_missed() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    let mut said = vec![scene.say("before").await];
    life.hears(&format!("msg:{}", said[0])).await;
    let ways =
        [CutHow::Cut, CutHow::Reconnect, CutHow::Invalid(true), CutHow::Close(4000), CutHow::Close(1001)];
    for (number, how) in ways.into_iter().enumerate() {
        scene.control().cut(how).await.unwrap();
        said.push(scene.say("between").await);
        resumed(&scene, number as u64 + 1).await;
        life.hears(&format!("msg:{}", said[number + 1])).await;
    }
    let admitted = life.admitted().await;
    assert_eq!(admitted, said.iter().map(|id| format!("msg:{id}")).collect::<Vec<_>>());
    assert_eq!(scene.control().summary().await.unwrap().identified, 1);
    let gateway = scene.control().gateway().await.unwrap();
    let elsewhere =
        gateway.iter().filter(|noted| matches!(noted.what, What::Connected { resume_url: false, .. }));
    assert_eq!(elsewhere.count(), 1, "a resume goes where READY said");
}

#[tokio::test]
async fn b_dis_10_a_session_is_resumed_by_the_next_process() {
    let scene = Scene::new().await;
    let store = MemoryStore::new();
    let life = Life::begin(&scene, &store, []).await;
    life.is_listening(&scene).await;
    let before = scene.say("before").await;
    life.hears(&format!("msg:{before}")).await;
    life.stop().await;
    let meanwhile = scene.say("meanwhile").await;
    let life = Life::begin(&scene, &store, []).await;
    resumed(&scene, 1).await;
    life.hears(&format!("msg:{meanwhile}")).await;
    assert_eq!(scene.control().summary().await.unwrap().identified, 1);
    let fetched = scene.control().requests().await.unwrap();
    assert!(
        fetched.iter().all(|asked| !asked.is("GET", MESSAGES)),
        "nothing has to be fetched after a resume"
    );
    assert_eq!(life.admitted().await.len(), 2);
}

#[tokio::test]
async fn b_dis_10_what_was_missed_is_fetched_after_the_cursor_once() {
    let scene = Scene::new().await;
    let store = MemoryStore::new();
    let life = Life::begin(&scene, &store, []).await;
    life.is_listening(&scene).await;
    let direct = scene.control().direct(scene.person).await.unwrap();
    let before =
        [scene.say("before").await, scene.control().say(scene.person, direct, "psst").await.unwrap()];
    for id in before {
        life.hears(&format!("msg:{id}")).await;
    }
    life.stop().await;
    scene.control().expire().await.unwrap();
    let mut missed = Vec::new();
    for number in 0..150 {
        missed.push(scene.say(&format!("missed {number}")).await);
    }
    missed.push(scene.control().say(scene.person, direct, "are you there?").await.unwrap());
    let life = Life::begin(&scene, &store, []).await;
    for id in &missed {
        life.hears(&format!("msg:{id}")).await;
    }
    let mut admitted = life.admitted().await;
    let count = admitted.len();
    admitted.sort();
    admitted.dedup();
    assert_eq!((admitted.len(), count), (153, 153), "each once");
    let after: Vec<String> = scene
        .control()
        .requests()
        .await
        .unwrap()
        .into_iter()
        .filter(|asked| asked.is("GET", MESSAGES))
        .map(|asked| asked.query)
        .collect();
    // A cursor that had not been kept when the process ended stands a little earlier, never later: what is told again
    // is known by its name.
    let first: u64 = before[0].to_string().parse().unwrap();
    let cursor = |query: &String| query.strip_prefix("after=")?.split('&').next()?.parse::<u64>().ok();
    assert!(
        after.iter().filter_map(cursor).any(|cursor| first - 1 <= cursor && cursor <= first),
        "{after:?}"
    );
    assert_eq!(after.len(), 3, "two pages of the channel, one of the direct messages: {after:?}");
}

#[tokio::test]
async fn b_dis_10_the_first_words_ever_said_in_a_channel_are_not_missed() {
    let scene = Scene::new().await;
    let store = MemoryStore::new();
    let life = Life::begin(&scene, &store, []).await;
    life.is_listening(&scene).await;
    // Nothing was ever said there. A thread is told after the guild that the channel was told with.
    let (channel, owner) = (scene.channel, Some(scene.person));
    let plans = Command::Thread(NewThread { channel, name: "plans".to_owned(), message: None, owner });
    let thread: Snowflake = scene.control().command(&plans).await.unwrap();
    life.hears(&format!("thread:{thread}")).await;
    life.stop().await;
    scene.control().expire().await.unwrap();
    let missed = scene.say("is anyone there?").await;
    let life = Life::begin(&scene, &store, []).await;
    life.hears(&format!("msg:{missed}")).await;
}

#[tokio::test]
async fn b_dis_10_a_gap_within_one_process_is_filled_too() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    let before = scene.say("before").await;
    life.hears(&format!("msg:{before}")).await;
    let missed = Say {
        author: scene.person,
        channel: scene.channel,
        content: "missed".into(),
        missed: true,
        ..Say::default()
    };
    let missed = scene.control().say_with(missed).await.unwrap();
    scene.control().cut(CutHow::Invalid(false)).await.unwrap();
    life.hears(&format!("msg:{missed}")).await;
    let later = scene.say("later").await;
    life.hears(&format!("msg:{later}")).await;
    assert_eq!(life.admitted().await.len(), 3);
    assert_eq!(scene.control().summary().await.unwrap().identified, 2);
}

#[tokio::test]
async fn a_gateway_that_closes_is_never_asked_in_a_hot_loop() {
    let scene = Scene::new().await;
    scene.control().on_identify(&[Answer::Close(4002), Answer::Cut]).await.unwrap();
    scene.control().set(json!({"turn_away": 2})).await.unwrap();
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    let said = scene.say("hello").await;
    life.hears(&format!("msg:{said}")).await;
    let summary = scene.control().summary().await.unwrap();
    assert!(summary.most_connects_per_second <= 6, "{summary:?}");
    let gateway = scene.control().gateway().await.unwrap();
    let too_soon =
        gateway.iter().filter(|noted| matches!(noted.what, What::Identified { too_soon: true, .. }));
    assert_eq!(too_soon.count(), 0, "sessions begin as far apart as Discord asks");
}

#[tokio::test]
async fn a_resume_that_cannot_reach_its_own_address_goes_to_the_gateway() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    let before = scene.say("before").await;
    life.hears(&format!("msg:{before}")).await;
    scene.control().set(json!({"turn_away": 1})).await.unwrap();
    scene.control().cut(CutHow::Cut).await.unwrap();
    let during = scene.say("during").await;
    resumed(&scene, 1).await;
    life.hears(&format!("msg:{during}")).await;
    assert_eq!(
        scene.control().summary().await.unwrap().identified,
        1,
        "one refused connect loses no session"
    );
}

#[tokio::test]
async fn b_dis_10_a_session_whose_resumes_come_to_nothing_is_followed_by_another() {
    let scene = Scene::new().await;
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    life.is_listening(&scene).await;
    let before = scene.say("before").await;
    life.hears(&format!("msg:{before}")).await;
    // More of them than there would be tries within the watchdog's time.
    scene.control().on_resume(&[Answer::Close(1000); 20]).await.unwrap();
    scene.control().cut(CutHow::Cut).await.unwrap();
    let during = scene.say("during").await;
    life.hears(&format!("msg:{during}")).await;
    identified(&scene, 2).await;
    assert_eq!(scene.control().summary().await.unwrap().resumed, 0);
}

#[tokio::test]
async fn b_dis_10_each_shard_hears_its_guilds_and_resumes_its_own_session() {
    let scene = Scene::new().await;
    scene.control().set(json!({"shards": 2})).await.unwrap();
    let of_shard = |guild: Snowflake| (guild.0 >> 22) % 2;
    let mut channels = vec![(of_shard(scene.guild), scene.channel)];
    // Which shard a guild belongs to is in its id, and that is given out by the clock.
    while channels.iter().all(|(shard, _)| *shard == channels[0].0) {
        let guild = scene.control().guild("another", &[scene.person]).await.unwrap();
        channels.push((of_shard(guild), scene.control().channel(guild, "general").await.unwrap()));
    }
    let direct = scene.control().direct(scene.person).await.unwrap();
    let places = [channels[0].1, channels[channels.len() - 1].1, direct];
    let store = MemoryStore::new();
    let life = Life::begin(&scene, &store, []).await;
    let mut said = 0;
    identified(&scene, 2).await;
    hears_in_each(&scene, &life, places, &mut said).await;
    scene.control().cut(CutHow::Cut).await.unwrap();
    resumed(&scene, 2).await;
    hears_in_each(&scene, &life, places, &mut said).await;
    life.stop().await;
    let life = Life::begin(&scene, &store, []).await;
    resumed(&scene, 4).await;
    hears_in_each(&scene, &life, places, &mut said).await;
    life.stop().await;
    let begun = |what: &What| match what {
        What::Identified { shard, too_soon, .. } => Some((*shard, *too_soon)),
        _ => None,
    };
    let gateway = scene.control().gateway().await.unwrap();
    let sessions: BTreeSet<_> = gateway.iter().filter_map(|noted| begun(&noted.what)).collect();
    assert_eq!(sessions, BTreeSet::from([([0, 2], false), ([1, 2], false)]), "one session each, in time");

    // Another number of shards divides the guilds anew: no session of before is worth anything.
    scene.control().set(json!({"shards": 1})).await.unwrap();
    let life = Life::begin(&scene, &store, []).await;
    identified(&scene, 3).await;
    hears_in_each(&scene, &life, places, &mut said).await;
    assert_eq!(life.admitted().await.len(), said);
    assert_eq!(scene.control().summary().await.unwrap().resumed, 4);
}

/// Waits for so many sessions that began.
async fn identified(scene: &Scene, times: u64) {
    let wait = async {
        while scene.control().summary().await.unwrap().identified < times {
            tokio::task::yield_now().await;
        }
    };
    timeout(WATCHDOG, wait).await.expect("it identifies");
}

/// Says something in each place, and waits until it is heard.
async fn hears_in_each(scene: &Scene, life: &Life, places: [Snowflake; 3], said: &mut usize) {
    for place in places {
        let message = scene.control().say(scene.person, place, "here").await.unwrap();
        life.hears(&format!("msg:{message}")).await;
        *said += 1;
    }
}

#[tokio::test]
async fn fatal_codes_end_it_and_say_what_to_enable() {
    for (code, wanted) in [(4004, Fatal::Token), (4013, Fatal::Intents), (4014, Fatal::Intents)] {
        let scene = Scene::new().await;
        scene.control().on_identify(&[Answer::Close(code)]).await.unwrap();
        let mut life = Life::begin(&scene, &MemoryStore::new(), []).await;
        let ended = timeout(WATCHDOG, life.listening.take().unwrap()).await.expect("it ends").unwrap();
        match ended {
            Err(RunError::Refused(fatal)) => assert_eq!(fatal, wanted),
            other => panic!("{code}: {other:?}"),
        }
    }
    let scene = Scene::new().await;
    let mut wrong = settings(&scene);
    wrong.token = klbr_discord::settings::Token::new("another").unwrap();
    let mut life = Life::with(wrong, Arc::new(MemoryStore::new()), []).await;
    let ended = timeout(WATCHDOG, life.listening.take().unwrap()).await.expect("it ends").unwrap();
    assert!(matches!(ended, Err(RunError::Refused(Fatal::Token))), "{ended:?}");
}

#[tokio::test]
async fn a_zombie_connection_is_noticed_and_resumed() {
    let scene = Scene::new().await;
    scene.control().set(json!({"heartbeat_ms": 300, "acknowledge": false})).await.unwrap();
    let life = Life::begin(&scene, &MemoryStore::new(), []).await;
    resumed(&scene, 1).await;
    scene.control().set(json!({"acknowledge": true})).await.unwrap();
    let said = scene.say("hello").await;
    life.hears(&format!("msg:{said}")).await;
}
